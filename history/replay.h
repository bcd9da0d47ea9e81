/* replay.h - replays what concerns some keys, and nothing else.
 *
 *     struct history_replay_opts opts = {.tape = &tape, .indexes = &indexes, .names = &names,
 *                                        .visit = visit, .restart = restart, .ctx = ctx};
 *     if (!history_replay(&opts, &err))
 *         ...
 *
 * The commands that write the keys run on an engine that has only these keys, and the keys that
 * such commands read: RENAME, COPY, SUNIONSTORE, SORT … STORE, and what a script uses. When another
 * such key turns up, the replay begins again with it: then `restart` is called, and what was
 * visited before does not count.
 *
 * A name stands for the key of that name in every database.
 *
 * Memory: the values of these keys, and the largest command. Threads: one at a time.
 */
#ifndef HISTORY_REPLAY_H
#define HISTORY_REPLAY_H

#include "history/indexes.h"
#include "history/names.h"
#include "rebuild/data.h"

enum history_moment {
    HISTORY_LOADED, /* a snapshot was loaded: the data set is what it holds. command is NULL */
    HISTORY_BEFORE, /* a command that can change some of the keys is about to run */
    HISTORY_AFTER   /* it has run */
};

/* Where in a tape. */
struct history_place {
    size_t part;
    uint64_t offset; /* of the first byte of the command; of a snapshot 0 */
};

struct history_visit {
    enum history_moment moment;
    struct history_place place;
    int64_t time_us; /* INT64_MIN: not known */
    unsigned db;     /* selected */
    bool in_multi;
    uint64_t multi; /* of the transaction: offset of its MULTI */
    const struct rebuild_line *line;
    bool for_any;                      /* it does not name the keys that it changes */
    struct rebuild_data *data;         /* with the engine */
    const struct history_names *names; /* all that are replayed; those of the caller first */
};

/* False: ends, with an error if err is set. */
typedef bool (*history_visit_fn)(void *ctx, const struct history_visit *visit, struct rd_err *err);

struct history_replay_opts {
    struct history_tape *tape;
    struct history_indexes *indexes;
    const struct history_names *names;
    int64_t now_us;   /* for commands without a time */
    size_t max_names; /* that are pulled in, 0: no limit. More are RD_ERR_LIMIT */
    history_visit_fn visit;
    void (*restart)(void *ctx);
    void *ctx;
};

bool history_replay(const struct history_replay_opts *opts, struct rd_err *err);

/* What a key is, in a data set that is replayed. */
enum history_state { HISTORY_ABSENT, HISTORY_PRESENT, HISTORY_UNKNOWN };
enum history_state history_state_of(const struct rebuild_data *data, unsigned db,
                                    struct rd_slice name);

#endif
