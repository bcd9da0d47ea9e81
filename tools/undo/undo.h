/* undo.h - private to `redoubt undo`: takes back what commands did.
 *
 *     undo.c     the tool: options, and the phases
 *     choose.c   which commands are taken back, and which keys they changed
 *     trace.c    replays these keys: each before and after the commands
 *     target.c   the keys as they are now, and the transactions that change them
 *     nodes.c    the server that has a key: the only one, or a master of a cluster
 *     report.c   the plan, as text and as JSON
 */
#ifndef TOOLS_UNDO_UNDO_H
#define TOOLS_UNDO_UNDO_H

#include "client/peer.h"
#include "history/merge.h"
#include "tools/cli/peer_options.h"
#include "tools/recorded/recorded.h"
#include "tools/recorded/values.h"

enum { UNDO_BATCH = 20000, UNDO_CUT = 128, UNDO_TRIES = 20 };

/* A key that the commands changed. */
struct undo_key {
    unsigned db;
    struct rd_slice name;                  /* in run->in.names */
    bool unknown;                          /* what it held is not known */
    struct history_mirror *before, *after; /* NULL: absent */
    struct rd_buf dump_before;             /* DUMP, of streams and opaque values */
};

struct undo {
    struct cli *cli;
    struct recorded in;
    const char *command; /* --command */
    int64_t from_ms, until_ms;
    const char *to; /* URL or file */
    struct peer_opts peer;
    bool dry_run, ours, theirs, json, force;
    const char *save;
    char save_name[64]; /* if none is given */

    /* choose.c */
    bool by_place;
    struct history_place first, last; /* of the commands, if by_place */
    bool any;                         /* a command changed keys that it does not name */
    uint64_t n_commands;
    struct history_names names; /* of all changed keys */

    /* trace.c: one batch */
    struct history_mirrors mirrors;
    struct undo_key *keys;
    size_t n_keys, cap_keys;
    struct history_names found; /* "DB NAME" of each of them */

    /* target.c */
    struct client_target server;
    struct client_peer *member;   /* the connection to it */
    struct client_peer *peer_now; /* to the server that has the key */
    bool cluster, asking;         /* the next commands are for a slot that is being moved */
    struct undo_node **nodes;     /* of a cluster, as far as they are connected */
    size_t n_nodes;
    uint16_t *owners; /* of each slot: the number of the node + 1; 0: not known */
    size_t node_now;
    struct rebuild_data scratch;
    bool has_scratch;
    unsigned peer_db;
    int save_fd;
    uint64_t save_len;
    unsigned save_db;
    struct rd_sink *out;    /* --to FILE */
    struct rd_buf dump_now; /* of the key that was read last */
    size_t traced;          /* where the batch in memory begins in names; SIZE_MAX: none */

    /* report.c */
    struct rd_sink *report;
    struct rd_buf conflict_text; /* of one key */

    /* Totals. */
    uint64_t changed, conflicts, unknown, refused, applied;
};

/* choose.c. RD_ERR_USAGE: no command is there. */
bool undo_choose(struct undo *u, struct rd_err *err);
bool undo_is_chosen(const struct undo *u, struct history_place place, int64_t time_us);

/* trace.c: the keys with these names, `n` from `at` on in u->names. */
bool undo_trace(struct undo *u, size_t at, size_t n, struct rd_err *err);
void undo_trace_done(struct undo *u);
/* What DUMP gives of a stream or an opaque value; of others nothing. m may be NULL. */
bool undo_dump(struct rebuild_data *data, const struct history_mirror *m, struct rd_buf *ret,
               struct rd_err *err);

/* target.c */
bool undo_target_open(struct undo *u, struct rd_err *err);
/* The plan for a key: merges it with what it is now. */
bool undo_target_plan(struct undo *u, const struct undo_key *key, struct history_merge *ret,
                      struct history_mirror **ret_now, struct rd_err *err);
/* Does it. */
bool undo_target_apply(struct undo *u, const struct undo_key *key, struct rd_err *err);
/* Creates the file for what takes it back, before the first change; and ends it. */
bool undo_target_begin(struct undo *u, struct rd_err *err);
bool undo_target_end(struct undo *u, struct rd_err *err);
void undo_target_done(struct undo *u);

/* nodes.c. Connects, and asks whether it is a cluster. */
bool undo_nodes_open(struct undo *u, struct rd_err *err);
/* u->peer_now becomes the connection for a key, with its database selected. */
bool undo_nodes_choose(struct undo *u, unsigned db, struct rd_slice name, struct rd_err *err);
/* Whether a failure says that another server has the key. Then that one is chosen next, after a
 * while if there were several such failures before. */
bool undo_nodes_follow(struct undo *u, const struct rd_err *why, unsigned tries);
void undo_nodes_done(struct undo *u);

/* report.c */
/* The commands as lines of redis-cli. */
bool undo_put_lines(const struct history_commands *commands, struct rd_buf *out);
bool undo_report_key(struct undo *u, const struct undo_key *key, const struct history_merge *merge);
bool undo_report_conflict(void *ctx, const struct history_conflict *conflict, struct rd_err *err);
void undo_report_refused(struct undo *u, const struct undo_key *key, const char *why);

#endif
