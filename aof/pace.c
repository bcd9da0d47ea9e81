#include "aof/pace.h"

void aof_pace_init(struct aof_pace *pace, enum aof_fsync fsync, int64_t now_ms)
{
    *pace = (struct aof_pace){.fsync = fsync, .last_sync_ms = now_ms, .waiting_since = AOF_NO_TIME};
}

enum aof_pace_write aof_pace_write(struct aof_pace *pace, int64_t now_ms, bool busy)
{
    bool waited = pace->waiting_since != AOF_NO_TIME;
    if (pace->fsync != AOF_FSYNC_EVERYSEC || !busy) {
        pace->waiting_since = AOF_NO_TIME;
        return AOF_WRITE_NOW;
    }
    /* If the clock was set back, the wait begins again, so that none is too long. */
    if (!waited || now_ms < pace->waiting_since) {
        pace->waiting_since = now_ms;
        return AOF_WRITE_LATER;
    }
    if (now_ms - pace->waiting_since < AOF_PACE_POSTPONE_MS)
        return AOF_WRITE_LATER;
    pace->waiting_since = AOF_NO_TIME;
    pace->n_delayed++;
    return AOF_WRITE_FORCED;
}

static bool sync_due(const struct aof_pace *pace, int64_t now_ms)
{
    switch (pace->fsync) {
    case AOF_FSYNC_ALWAYS:
        return true;
    case AOF_FSYNC_EVERYSEC:
        return now_ms < pace->last_sync_ms || now_ms - pace->last_sync_ms >= AOF_PACE_SYNC_MS;
    case AOF_FSYNC_NO:
        break;
    }
    return false;
}

bool aof_pace_sync(struct aof_pace *pace, int64_t now_ms, bool busy, bool unsynced)
{
    if (busy || !unsynced || !sync_due(pace, now_ms))
        return false;
    pace->last_sync_ms = now_ms;
    return true;
}

bool aof_pace_rewrite(uint64_t size, uint64_t base, unsigned percentage, uint64_t min_size)
{
    if (percentage == 0 || size <= min_size)
        return false;
    if (base == 0)
        base = 1;
    /* 128 bits: a size times a hundred may exceed 64 bits. */
    __extension__ typedef unsigned __int128 u128;
    return (u128)size * 100 >= (u128)base * (100 + (u128)percentage);
}

void aof_retry_failed(struct aof_retry *retry, int64_t now_ms)
{
    if (retry->failures < UINT32_MAX)
        retry->failures++;
    if (retry->failures < AOF_RETRY_FREE)
        return;
    unsigned doublings = retry->failures - AOF_RETRY_FREE;
    int64_t delay = doublings < 6 ? (int64_t)60 * 1000 << doublings : AOF_RETRY_MAX_MS;
    retry->not_before_ms = now_ms + delay;
}

void aof_retry_succeeded(struct aof_retry *retry)
{
    *retry = (struct aof_retry){0};
}

bool aof_retry_allows(const struct aof_retry *retry, int64_t now_ms)
{
    return retry->failures < AOF_RETRY_FREE || now_ms >= retry->not_before_ms;
}
