/* diff.h - private to tools/diff.
 *
 *     diff.c      options and the sequence of steps
 *     open.c      files, logs and servers
 *     report.c    prints the differences
 *     html.c      writes them as a page
 *
 * The comparison is a job: jobs/diff.h.
 */
#ifndef TOOLS_DIFF_DIFF_H
#define TOOLS_DIFF_DIFF_H

#include "jobs/diff.h"
#include "tools/cli/filter.h"
#include "tools/cli/peer_options.h"
#include "tools/input/live_in.h"
#include "tools/input/snapshot_in.h"

struct diff_tool;

/* A side, as an input of the job. */
struct diff_input {
    struct diff_tool *tool;
    enum diff_side side;
};

struct diff_tool {
    struct cli *cli;
    bool lines;
    bool all;              /* list every difference on a terminal, too */
    const char *html_path; /* NULL: no page */
    const char *out_path;  /* -o; of --ndjson, or as html_path */
    bool force;
    struct filter filter;
    struct snapshot_in_opts log;
    struct peer_opts servers;
    struct diff_opts opts;
    struct diff_result result;

    const char *path[2]; /* as shown; NULL: the server that the options name */
    const char *url[2];  /* of a server, with its password */
    struct diff_input input[2];
    struct client_target target[2];
    struct live_in_opts live[2];
    struct client_live_result live_result[2]; /* of a server */
    struct diff_facts facts[2];
    bool is_server[2];
    uint64_t listed[3]; /* on a terminal: keys only in A, only in B, different */
    bool begun;         /* the report */
    struct rd_sink *out;
    struct json_write json; /* the output of --json and --ndjson */
    struct diff_page *page;
};

/* diff.c: the whole comparison, also for a tool that ends with one. The report goes to standard
 * output, or into the open JSON object. The caller zeroes *diff and fills in the options, path and
 * url. */
bool diff_tool_work(struct diff_tool *diff, struct rd_err *err);
void diff_tool_done(struct diff_tool *diff);

/* open.c: makes the inputs of the job. Opening them prints the notes about servers, and the hints
 * for their errors. */
void diff_tool_inputs(struct diff_tool *diff);

/* Whether keys were left out because they could not be read. */
bool diff_tool_is_partial(const struct diff_tool *diff);

/* Prints one difference; value is NULL if the values were not compared. */
void diff_report_key(struct diff_tool *diff, const struct diff_found *found, struct rd_slice name,
                     const struct diff_value *value);
void diff_report_begin(struct diff_tool *diff);
void diff_report_end(struct diff_tool *diff);

/* The objects of JSON: one difference, and the members of the summary. */
void diff_put_key(struct diff_tool *diff, struct json_write *json, const struct diff_found *found,
                  struct rd_slice name, const struct diff_value *value);
void diff_put_summary(const struct diff_tool *diff, struct json_write *json);

/* html.c: the page of --html. It is opened and written at the end. */
bool diff_page_begin(struct diff_tool *diff, struct rd_err *err);
void diff_page_key(struct diff_tool *diff, const struct diff_found *found, struct rd_slice name,
                   const struct diff_value *value);
bool diff_page_write(struct diff_tool *diff, struct rd_err *err);
void diff_page_done(struct diff_tool *diff);

#endif
