/* data.h - a dataset that is rebuilt: snapshots and commands in, a snapshot out.
 *
 *     struct rebuild_data data;
 *     rebuild_data_begin(&data, now_us);
 *     ok = rebuild_data_load(&data, reader, name, NULL, &err) &&
 *          rebuild_data_apply(&data, &step, &err) && rebuild_data_save(&data, sink, &err);
 *     rebuild_data_end(&data);
 *
 * The dataset is on an engine (engine/engine.h), in memory as a whole. When memory is exhausted,
 * the handler of engine_mem_on_exhausted() is called.
 */
#ifndef REBUILD_DATA_H
#define REBUILD_DATA_H

#include "base/prefault.h"
#include "base/sink.h"
#include "engine/db.h"
#include "engine/session.h"
#include "rdb/reader.h"
#include "rebuild/unknown.h"

enum { REBUILD_DATABASES = 1024 };

/* How the user can react to an error. */
enum rebuild_advice {
    REBUILD_NO_ADVICE,
    REBUILD_LOG_DAMAGED, /* repair or salvage the log, or end before the damage */
    REBUILD_NEEDS_SERVER /* end before the command, or skip it */
};

struct rebuild_counts {
    uint64_t commands; /* run */
    uint64_t skipped;
    uint64_t refused; /* by the engine, because of the data: a server would have done the same */
    uint64_t keys;    /* saved */
    char first_refused[RD_ERR_TEXT_MAX]; /* position and error */

    /* Commands that the engine does not know, or not in this form: the keys that they name are
     * unknown from there on. */
    uint64_t unsupported;
    char first_unsupported[RD_ERR_TEXT_MAX]; /* position and reason */
    uint64_t unknown; /* keys at the end; they are not saved unless keep_unknown is set */
    char unknown_names[RD_ERR_TEXT_MAX]; /* the first of them, quoted */
    bool lost; /* with keep_unknown: the arguments of such a command do not say which keys it
                  changed, so that every key may differ */
};

/* Commands of a transaction: copies. A log may end in it, and then none of them has run. */
struct rebuild_queue {
    bool open;
    size_t n, cap;
    struct rebuild_queued *list;
};

struct rebuild_data {
    struct rebuild_counts counts;
    enum rebuild_advice advice; /* with an error */
    int64_t now_us;             /* of commands without a time; may be changed */
    /* Unknown keys are saved with the last value that is known, and a command that can have changed
     * any key is not an error. */
    bool keep_unknown;
    /* Called for each command of a script before it runs; NULL: not called. */
    void (*on_script_line)(void *ctx, unsigned db, const struct rebuild_line *line);
    void *ctx;
    struct engine *engine; /* private from here on, except for session.db */
    struct engine_session session;
    struct rd_prefault *ahead;
    struct engine_db_ahead keys_ahead;
    struct engine_reply reply;
    struct engine_effects effects;
    struct rebuild_unknown unknown;
    struct rebuild_queue queue; /* in MULTI */
    int64_t step_us;            /* of the command that runs */
    bool script_ended;
    bool script_ran_foreign; /* a command that the engine cannot run */
    bool script_tainted;     /* by an unknown key */
    unsigned script_db;      /* of its session */
};

/* A command and its position. */
struct rebuild_step {
    const struct resp_command *command;
    const char *name; /* of the file or folder */
    uint64_t offset;
    int64_t now_us;
};

void rebuild_data_begin(struct rebuild_data *data, int64_t now_us);
void rebuild_data_end(struct rebuild_data *data);

/* Loads a snapshot. *ret_saved_s, which may be NULL: the time at which it was saved, if recorded.
 */
bool rebuild_data_load(struct rebuild_data *data, struct rdb_reader *snapshot, const char *name,
                       int64_t *ret_saved_s, struct rd_err *err);

/* Runs a command. If the engine does not know it, or not in this form, the keys that it names
 * become unknown (rebuild/unknown.h). RD_ERR_UNSUPPORTED: its arguments do not say which keys it
 * changes, so that nothing would be known any more. */
bool rebuild_data_apply(struct rebuild_data *data, const struct rebuild_step *step,
                        struct rd_err *err);

/* Removes a key. */
void rebuild_data_drop(struct rebuild_data *data, unsigned db, struct rd_slice key);

/* Prefetches the key of a later command. */
void rebuild_data_ahead(struct rebuild_data *data, struct rd_slice key);

bool rebuild_data_save(struct rebuild_data *data, struct rd_sink *out, struct rd_err *err);

#endif
