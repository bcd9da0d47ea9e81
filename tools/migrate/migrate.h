/* migrate.h - private to tools/migrate.
 *
 *     migrate.c    options, and the sequence of steps
 *     position.c   how far the target has come
 *     plan.c       what becomes of a command in the target
 *     source.c     the capture that receives the data, on a thread of its own
 *     target.c     the servers of the target
 *     attach.c     connects, reads the positions, and finds where to continue
 *     copy.c       sends a snapshot
 *     round.c      groups commands into transactions, and reads their replies
 *     apply.c      the loop: reads the stream, and sends it round by round
 *     owners.c     the order between the streams of several masters
 *     everywhere.c commands that concern more than a group of keys
 *     cut_over.c   pauses the source, and waits for the target
 *     compare.c    compares source and target
 *     trim.c       removes what is not needed from the spool
 *     report.c     messages, progress and the result
 *
 * The source is captured into a folder, the spool, as `redoubt capture` does. The applier reads the
 * spool and writes to the target. Each transaction also sets the position (position.h), so after
 * any failure of either side the applier connects again, reads the positions, and continues there.
 */
#ifndef TOOLS_MIGRATE_MIGRATE_H
#define TOOLS_MIGRATE_MIGRATE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "capture/capture.h"
#include "rebuild/stream.h"
#include "tools/capture/servers.h"
#include "tools/cli/filter.h"
#include "tools/cli/peer_options.h"
#include "tools/migrate/plan.h"
#include "tools/migrate/position.h"
#include "tools/replay/replay.h"

enum {
    MIGRATE_EVENTS = 32,
    MIGRATE_STREAMS_MAX = 1024,
    MIGRATE_ERRORS = 10, /* that are reported */
    MIGRATE_PATH_MAX = 4096,
    MIGRATE_RETRY_MAX_MS = 2000,
    MIGRATE_CHECKPOINT_MS = 5000
};

/* ---- the source ---- */

/* What the capture reports of a master. */
struct migrate_link {
    char folder[CAPTURE_FOLDER_MAX];
    char name[CLIENT_HOST_MAX + 10];
    uint64_t received; /* offset */
    bool up, gone;
    struct capture_slots slots; /* of a cluster */
};

struct migrate_event {
    bool trouble;
    char text[800];
};

struct migrate_source {
    struct capture capture;
    pthread_t thread;
    bool has_thread;
    volatile sig_atomic_t stop;

    /* Protected by the mutex. */
    pthread_mutex_t mutex;
    struct migrate_link *links;
    size_t n_links, cap_links;
    struct migrate_event events[MIGRATE_EVENTS];
    size_t n_events;
    bool ended, ok;
    struct rd_err err;
};

/* Finds the masters, and begins to receive. */
bool migrate_source_begin(struct migrate_source *s, struct rd_err *err);
void migrate_source_end(struct migrate_source *s);
/* Copies what the capture reported last. False: it has ended with an error. */
bool migrate_source_look(struct migrate_source *s, struct migrate_link *ret, size_t max,
                         size_t *ret_n, struct rd_err *err);
size_t migrate_source_events(struct migrate_source *s, struct migrate_event ret[MIGRATE_EVENTS]);
/* Begins an empty spool at a position, so that the master is asked to continue there. */
bool migrate_source_resume(const char *spool, const struct migrate_position *at,
                           struct rd_err *err);

/* ---- the target ---- */

struct migrate_node {
    struct client_target target;
    struct client_peer *peer; /* NULL: not connected */
};

struct migrate_target {
    struct client_target first; /* as the user named it */
    bool clustered;
    bool several_dbs;
    struct migrate_node *nodes;
    size_t n_nodes;
    uint16_t node_of[RD_HASH_SLOTS];
    size_t n_groups; /* 1, or RD_HASH_SLOTS */
};

/* Connects to all masters. The servers close connections of an earlier run of the migration of this
 * name, so that nothing that they sent is applied later. */
bool migrate_target_connect(struct migrate_target *t, const char *name, struct rd_err *err);
void migrate_target_disconnect(struct migrate_target *t);
void migrate_target_done(struct migrate_target *t);
/* Whether an error reply is temporary: the same command can succeed later, or elsewhere. */
bool migrate_is_temporary(struct rd_slice reply);

static inline struct migrate_node *migrate_target_node(struct migrate_target *t, size_t group)
{
    return &t->nodes[t->clustered ? t->node_of[group] : 0];
}

/* ---- the streams ---- */

/* A place in the spool. Chapter 0: none. */
struct migrate_place {
    uint64_t chapter, offset;
};

/* One source master. */
struct migrate_stream {
    int index; /* in m->streams */
    char folder[CAPTURE_FOLDER_MAX];
    char path[MIGRATE_PATH_MAX];
    char name[CLIENT_HOST_MAX + 10];
    uint64_t received;
    bool up, gone;
    struct capture_slots slots; /* of a cluster */
    bool is_open;
    struct rebuild_stream in;
    struct migrate_place *applied; /* of each group */
    struct migrate_place read;     /* the end of the last event */
    struct migrate_place safe;     /* the same, outside of transactions */
    struct repl_replid replid;     /* of the chapter */
    uint64_t db;                   /* selected at `safe` */
    int64_t time_us;               /* of the last command that was applied; 0: none */
    bool in_multi;                 /* at `read` */
    bool caught_up;                /* all that the spool had was read */

    /* owners.c */
    uint64_t clear;      /* commands before this offset need not wait */
    uint64_t owned_from; /* where the owners of now began */
    bool blocked;        /* the next command waits; it arrived at blocked_us */
    bool waits;          /* `need` is known */
    bool known;          /* a master since the beginning, or its slots were adopted */
    bool late, joins;    /* a master that joined later, and whether it can be copied */
    int64_t blocked_us;
    uint64_t ask_ms;
    uint64_t clear_next;
    struct capture_slots slots_next;
    uint64_t need[MIGRATE_STREAMS_MAX]; /* where the other streams must be */
};

/* A key that moved, by its hash: the stream that has it, and the one that has deleted it; or -1. */
struct migrate_seen {
    uint64_t hash;
    int holder, left;
};

enum { MIGRATE_SEEN = 65536 };

/* The streams whose commands for a slot need not wait; -1: none. */
struct migrate_owners {
    int now[RD_HASH_SLOTS], before[RD_HASH_SLOTS];
    uint64_t changed_ms;
    bool begun;
    struct migrate_seen seen[MIGRATE_SEEN];
    uint64_t stuck; /* streams that could not go on, since one did */
};

/* ---- rounds ---- */

struct migrate_mark {
    uint64_t offset;
    size_t at; /* in the bytes */
};

/* Commands for one group. */
struct migrate_batch {
    unsigned group;
    uint64_t db; /* selected */
    size_t n;    /* commands between MULTI and EXEC */
    bool remark; /* the position key was lost: all of it is written again */
    struct rd_buf bytes;
    struct migrate_mark *marks;
    size_t cap_marks;
};

struct migrate_round {
    struct migrate_stream *stream;
    struct migrate_batch *batches;
    size_t n, cap;
    int32_t *of_group; /* the index of its batch; -1: none */
    size_t n_groups;
    uint64_t bytes, commands;
    struct migrate_place end;
    bool sent;
    bool cut;  /* the next command needs a target that has all before it */
    bool held; /* it waits for other streams */
    int64_t time_us;
};

struct migrate_refusal {
    uint64_t offset;
    char name[48];
    char text[RD_ERR_TEXT_MAX];
};

struct migrate_result {
    uint64_t copies, keys, commands, bytes, transactions, divided, filtered, attaches;
    uint64_t n_refused;
    struct migrate_refusal refused[MIGRATE_ERRORS];
};

/* ---- the end ---- */

/* A source master whose writes are paused. */
struct migrate_paused {
    struct client_target target;
    struct client_peer *peer;
    const struct migrate_stream *stream;
    uint64_t end; /* its offset */
};

struct migrate_verdict {
    bool done, same, functions_differ;
    uint64_t keys[2];  /* of the source, and of the target */
    uint64_t due;      /* keys that were left out because they expire soon */
    uint64_t n_differ; /* slots */
};

/* ---- the whole run ---- */

struct migrate {
    struct cli *cli;
    const char *name, *spool;
    bool flush, replace, recopy, until_caught_up, from_cluster;
    uint64_t spool_size;
    uint64_t rate; /* bytes a second; 0: no limit */
    uint64_t paced, paced_ms;
    struct capture_servers servers; /* of the source */
    struct filter filter;
    struct filter own_filter; /* drops position keys */
    struct migrate_rename renames[MIGRATE_RENAMES_MAX];
    size_t n_renames;

    struct migrate_source source;
    struct migrate_target target;
    struct migrate_tags *tags; /* of a cluster */
    struct migrate_stream **streams;
    size_t n_streams;
    struct migrate_plan plan;
    struct replay_args args;
    struct migrate_round rounds[2];
    size_t building; /* the round that is filled; the other one may be on its way */
    uint64_t checkpoint_ms, progress_ms;
    bool attached;
    bool again;     /* a temporary failure while a round was built */
    bool anew;      /* the copy cannot continue, and --recopy is given */
    bool connected; /* to the target, at least once */
    char mark[MIGRATE_POSITION_MAX + 16];
    bool has_mark;
    uint64_t wait_ms; /* before the next try */
    struct migrate_result result;
    struct migrate_owners owners;
    bool cut_over, remove_positions;
    uint64_t pause_ms; /* the bound of a cut-over */
    bool pausing;
    uint64_t paused_ms, renewed_ms;
    int64_t paused_unix_ms;
    struct migrate_paused *paused;
    size_t n_paused;
    struct migrate_verdict verdict;
    struct client_target source_like; /* the login of the source */
    const volatile sig_atomic_t *stop;
    sigset_t waiting;
};

/* attach.c. False with *ret_again: a temporary failure, try again later. */
bool migrate_attach(struct migrate *m, bool *ret_again, struct rd_err *err);
void migrate_detach(struct migrate *m);
/* NULL: there is none with this folder. */
struct migrate_stream *migrate_find_stream(const struct migrate *m, const char *folder);
/* Adds the masters that the capture has found. */
bool migrate_find_streams(struct migrate *m, struct rd_err *err);
/* The position of a migration from one server, from the target; *ret_found false: none. */
bool migrate_find_position(struct migrate *m, struct migrate_position *ret, bool *ret_found,
                           struct rd_err *err);
struct rd_slice migrate_group_key(const struct migrate *m, size_t group, char dst[MIGRATE_KEY_MAX]);

/* copy.c: sends the snapshot of a segment to the groups that have no position of the stream. */
bool migrate_copy(struct migrate *m, struct migrate_stream *stream,
                  const struct repl_capture_segment *segment, bool *ret_again, struct rd_err *err);

/* Empties the target, so that migrate_attach() begins a new copy. */
bool migrate_recopy(struct migrate *m, struct rd_err *err);

/* everywhere.c: what concerns more than one group of keys, in a cluster or for a part of the keys.
 * No round may be on its way. */
bool migrate_everywhere(struct migrate *m, const struct repl_capture_event *ev, bool *ret_again,
                        struct rd_err *err);
/* Removes the keys of FLUSHALL and FLUSHDB, except those of groups that have it already. */
bool migrate_flush(struct migrate *m, const struct migrate_stream *stream,
                   const struct repl_capture_event *ev, bool *ret_again, struct rd_err *err);
bool migrate_is_applied(const struct migrate_stream *stream, const struct repl_capture_event *ev,
                        unsigned group);

/* owners.c: reads the owners, or begins with the slots of now, as soon as the masters are known;
 * takes those of before if the positions are older; and whether a command goes on now. */
bool migrate_owners_begin(struct migrate *m, struct rd_err *err);
void migrate_owners_rewind(struct migrate *m);
/* Whether the snapshot of a master that joined later can be copied now: it may have keys that
 * others had before. */
bool migrate_owners_join(struct migrate *m, struct migrate_stream *stream);
bool migrate_owners_pass(struct migrate *m, struct migrate_stream *stream,
                         const struct repl_capture_event *ev, bool *ret_pass, struct rd_err *err);

/* The address of the master of a stream, with the login of the source. */
bool migrate_source_target(struct migrate *m, const struct migrate_stream *stream,
                           struct client_target *ret, struct rd_err *err);

/* cut_over.c */
/* Pauses the writes of the source, once the target has nearly everything. */
bool migrate_pause(struct migrate *m, struct rd_err *err);
/* RD_ERR_LIMIT: the pause lasts too long. */
bool migrate_pause_renew(struct migrate *m, struct rd_err *err);
/* Whether the target has all that the source wrote before the pause. */
bool migrate_is_drained(const struct migrate *m);
/* stays: until the bound. */
void migrate_pause_end(struct migrate *m, bool stays);
bool migrate_remove_positions(struct migrate *m, struct rd_err *err);

/* compare.c: of the paused source and the target, in m->verdict. */
bool migrate_compare(struct migrate *m, struct rd_err *err);

/* trim.c: removes the oldest segments of the spool that the target has, beyond spool_size. */
bool migrate_trim(struct migrate *m, struct migrate_stream *stream, struct rd_err *err);

/* round.c */
bool migrate_round_begin(struct migrate_round *round, struct migrate_stream *stream,
                         size_t n_groups, struct rd_err *err);
bool migrate_round_batch(struct migrate_round *round, unsigned group, struct migrate_batch **ret,
                         struct rd_err *err);
bool migrate_batch_add(struct migrate_batch *batch, const struct rd_slice *argv, size_t argc,
                       uint64_t offset, struct rd_err *err);
bool migrate_batch_add_bytes(struct migrate_batch *batch, struct rd_slice bytes, uint64_t offset,
                             struct rd_err *err);
bool migrate_batch_select(struct migrate_batch *batch, uint64_t db, uint64_t offset,
                          struct rd_err *err);
bool migrate_round_send(struct migrate *m, struct migrate_round *round, struct rd_err *err);
/* Reads the replies. False with *ret_again: the round must be sent again after migrate_attach(). */
bool migrate_round_finish(struct migrate *m, struct migrate_round *round, bool *ret_again,
                          struct rd_err *err);
void migrate_round_done(struct migrate_round *round);

/* apply.c */
bool migrate_apply(struct migrate *m, struct rd_err *err);
/* Waits, or returns at once if a signal came. */
void migrate_wait(struct migrate *m, uint64_t ms);
bool migrate_stopped(const struct migrate *m);
/* Waits as long as so many bytes take with --limit-rate. */
void migrate_pace(struct migrate *m, uint64_t bytes);

/* report.c */
void migrate_say(struct migrate *m, bool trouble, const char *fmt, ...) RD_PRINTF(3, 4);
void migrate_report_events(struct migrate *m);
void migrate_report_progress(struct migrate *m);
void migrate_report(struct migrate *m);

#endif
