/* replay_impl.h - private to replay*.c. */
#ifndef HISTORY_REPLAY_IMPL_H
#define HISTORY_REPLAY_IMPL_H

#include "history/replay.h"

/* A command of a transaction, until its EXEC: a copy. */
struct queued {
    struct history_command command;
    struct resp_command line;
    struct rd_slice *argv; /* one block, with the bytes after it */
};

struct replay {
    const struct history_replay_opts *opts;
    struct rebuild_data data;
    struct history_names names; /* those of the caller, and those that were pulled in */
    bool begun;                 /* data is */
    bool again;                 /* names were added: this pass only looks for more */
    bool unknown_start;         /* what keys hold is not known until they are written */
    struct history_names
        known;              /* with unknown_start: "DB name" of keys that were looked at since */
    uint64_t chapter, next; /* offset after the last command that was taken in a chapter */
    struct queued *queue;
    size_t n_queue, cap_queue;
    struct rd_err *err;
};

/* Whether a command changes one of the keys. */
bool history_replay_is_written(const struct replay *r, const struct rebuild_line *line,
                               const struct rebuild_line_keys *keys);
bool history_replay_visit(struct replay *r, enum history_moment moment,
                          const struct history_command *command, const struct rebuild_line *line,
                          bool for_any);
/* Another key is read by a script. */
void history_replay_pull_in_script(void *ctx, unsigned db, const struct rebuild_line *line);
/* Runs a command that is of interest. */
bool history_replay_take(struct replay *r, const struct history_command *command);

/* replay_queue.c: the commands of a transaction wait for its EXEC. */
bool history_replay_queue_add(struct replay *r, const struct history_command *command);
bool history_replay_queue_run(struct replay *r);
void history_replay_queue_empty(struct replay *r);

/* replay_snapshot.c: an empty data set, and the records of the keys in a snapshot. */
void history_replay_begin_data(struct replay *r);
bool history_replay_load(struct replay *r, size_t part, const struct history_spans *spans,
                         bool whole);

#endif
