#include "stat/expiry.h"

#include "rdb/event.h"

static const struct {
    const char *words;
    int64_t seconds;
} classes[STAT_EXPIRY_COUNT] = {
#define X(name, words, seconds) {words, seconds},
    STAT_EXPIRY(X)
#undef X
};

const char *stat_expiry_words(enum stat_expiry class)
{
    return classes[class].words;
}

int64_t stat_expiry_seconds(enum stat_expiry class)
{
    return class == STAT_EXPIRY_LATER ? 0 : classes[class].seconds;
}

enum stat_expiry stat_expiry_of(int64_t expire_ms, int64_t now_ms)
{
    if (expire_ms == RDB_NO_EXPIRE)
        return STAT_EXPIRY_NEVER;
    if (expire_ms <= now_ms)
        return STAT_EXPIRY_PASSED;
    uint64_t left = (uint64_t)expire_ms - (uint64_t)now_ms;
    enum stat_expiry class = STAT_EXPIRY_HOUR;
    while (class < STAT_EXPIRY_LATER && left > (uint64_t)classes[class].seconds * 1000)
        class ++;
    return class;
}
