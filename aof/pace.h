/* pace.h - decides when to write, to fsync and to rewrite a log, as a server does.
 *
 * All times are milliseconds of a clock that the caller reads. The rules are those of aof.c and
 * server.c of Redis 7.0.
 *
 *     struct aof_pace pace;
 *     aof_pace_init(&pace, AOF_FSYNC_EVERYSEC, now_ms);
 *     each turn of the loop, before the replies go out:
 *         if (aof_pace_write(&pace, now_ms, busy) != AOF_WRITE_LATER)
 *             aof_writer_flush(w, &err);
 *         unsynced = aof_writer_written(w) > aof_writer_durable(w) ||
 *                    aof_writer_state(w) == AOF_WRITER_SYNC_FAILED
 *         if (aof_pace_sync(&pace, now_ms, busy, unsynced))
 *             begin an fsync: at once under `always`, else on another thread
 * `busy`: an fsync is running on that thread.
 */
#ifndef AOF_PACE_H
#define AOF_PACE_H

#include "aof/aof.h"

enum aof_fsync { AOF_FSYNC_NO, AOF_FSYNC_EVERYSEC, AOF_FSYNC_ALWAYS };

enum {
    AOF_PACE_SYNC_MS = 1000,     /* everysec */
    AOF_PACE_POSTPONE_MS = 2000, /* the longest time that a write waits for an fsync */
    AOF_RETRY_FREE = 3,          /* failed rewrites before the first delay */
    AOF_RETRY_MAX_MS = 60 * 60 * 1000,
};

struct aof_pace {
    enum aof_fsync fsync;  /* may be changed at any time */
    int64_t last_sync_ms;  /* start of the last fsync */
    int64_t waiting_since; /* start of a postponed write, or AOF_NO_TIME */
    uint64_t n_delayed;    /* writes that timed out waiting (INFO: aof_delayed_fsync) */
};

void aof_pace_init(struct aof_pace *pace, enum aof_fsync fsync, int64_t now_ms);

enum aof_pace_write {
    AOF_WRITE_NOW,
    AOF_WRITE_LATER,  /* write(2) would block on the fsync: ask again in the next loop iteration */
    AOF_WRITE_FORCED, /* it waited two seconds: write, even though it blocks */
};

/* Call it when there is data to write. */
enum aof_pace_write aof_pace_write(struct aof_pace *pace, int64_t now_ms, bool busy);

/* Whether to start an fsync now; true records its start. `unsynced`: written bytes are not durable,
 * or the last fsync failed. With no-appendfsync-on-rewrite the caller does not call it while a
 * child process is running. */
bool aof_pace_sync(struct aof_pace *pace, int64_t now_ms, bool busy, bool unsynced);

/* auto-aof-rewrite-percentage and auto-aof-rewrite-min-size: whether a log of `size` bytes has
 * grown enough since the last rewrite (`base` bytes; 0 counts as 1). Percentage 0: never. */
bool aof_pace_rewrite(uint64_t size, uint64_t base, unsigned percentage, uint64_t min_size);

/* Each failed rewrite leaves one more incremental file. After three failures in a row the next
 * automatic rewrite waits 1 minute, then 2, 4, … up to 60. A rewrite requested by a user does not
 * wait. A zeroed struct has no failures. */
struct aof_retry {
    unsigned failures;     /* in a row */
    int64_t not_before_ms; /* with 3 failures and more */
};

void aof_retry_failed(struct aof_retry *retry, int64_t now_ms);
void aof_retry_succeeded(struct aof_retry *retry);
bool aof_retry_allows(const struct aof_retry *retry, int64_t now_ms);

#endif
