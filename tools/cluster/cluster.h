/* cluster.h - shared by the files of `redoubt cluster`.
 *
 *     cluster.c    options; which action
 *     check.c      check: asks the nodes; with ask.c and judge.c, see check.h
 *     files.c      nodes-conf: reads the files and compares them
 *     fix.c        nodes-conf: writes repaired files
 *     report.c     what was found, as text and JSON
 */
#ifndef TOOLS_CLUSTER_CLUSTER_H
#define TOOLS_CLUSTER_CLUSTER_H

#include "cluster/views.h"
#include "tools/cli/cli.h"
#include "tools/cli/peer_options.h"

#include <limits.h>

/* The new address of a node: --address ID=HOST:PORT[@BUSPORT]. */
struct cluster_address {
    const char *id; /* or the beginning of one; borrowed */
    size_t id_len;
    char host[CLUSTER_HOST_MAX + 1];
    unsigned port, bus_port; /* bus_port 0: as before, or port + 10000 */
};

struct cluster_tool_opts {
    struct peer_opts peer;
    bool fix, yes, force, no_copy;
    const char *output; /* a folder, or NULL */
    const char *prefer; /* a node, or NULL */
    struct cluster_address *addresses;
    size_t n_addresses;
};

/* A nodes.conf. */
struct cluster_file {
    const char *path;
    char given_id[CLUSTER_ID_LEN + 1]; /* by the user, as ID=FILE; or "" */
    struct cluster_conf conf;
    struct rd_buf bytes;
    size_t n_problems;
    bool fatal;             /* servers do not start with it */
    bool is_empty;          /* servers forget who they are */
    size_t node;            /* index in the views; CLUSTER_NONE: not known */
    char written[PATH_MAX]; /* the repaired file, or "" */
};

struct cluster_run {
    struct cli *cli;
    struct cluster_tool_opts opts;
    struct cluster_file *files;
    size_t n_files;
    struct cluster_view *views;
    struct cluster_views all;
    bool live; /* the views are answers of servers: a failed node is a problem of now */
};

/* Each returns an exit status. */
int cluster_check(struct cluster_run *run);
int cluster_nodes_conf(struct cluster_run *run);

/* Writes the files that differ from what they should be. *ret_n counts them, *ret_left the problems
 * that remain. Nothing is written if the user says no. */
bool cluster_fix(struct cluster_run *run, size_t *ret_n, size_t *ret_left, struct rd_err *err);

/* The node that an id, or the beginning of one, names. */
bool cluster_find_node(const struct cluster_run *run, struct rd_slice id, size_t *ret,
                       struct rd_err *err);

/* ---- report.c ---- */

void cluster_say_problem(struct cluster_run *run, const struct cluster_file *file,
                         enum cluster_conf_problem problem, uint64_t offset, unsigned line,
                         const char *text);
void cluster_report_nodes(const struct cluster_run *run);
void cluster_report_findings(const struct cluster_run *run);

const char *cluster_severity_word(enum cluster_severity severity);

/* The number of findings that are at least as severe. */
size_t cluster_count(const struct cluster_run *run, enum cluster_severity severity);

#endif
