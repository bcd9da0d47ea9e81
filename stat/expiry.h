/* expiry.h - classes of the time that a key has left.
 */
#ifndef STAT_EXPIRY_H
#define STAT_EXPIRY_H

#include <stdint.h>

#define STAT_EXPIRY(X)                                                                             \
    X(PASSED, "expired", 0)                                                                        \
    X(HOUR, "within 1 hour", 3600)                                                                 \
    X(DAY, "within 1 day", 86400)                                                                  \
    X(WEEK, "within 7 days", 604800)                                                               \
    X(MONTH, "within 30 days", 2592000)                                                            \
    X(QUARTER, "within 90 days", 7776000)                                                          \
    X(YEAR, "within 1 year", 31536000)                                                             \
    X(LATER, "later", INT64_MAX / 1000)                                                            \
    X(NEVER, "never", 0)

enum stat_expiry {
#define X(name, words, seconds) STAT_EXPIRY_##name,
    STAT_EXPIRY(X)
#undef X
        STAT_EXPIRY_COUNT
};

const char *stat_expiry_words(enum stat_expiry class);
/* Seconds from now to the end of the class; 0 if it has no end. */
int64_t stat_expiry_seconds(enum stat_expiry class);
enum stat_expiry stat_expiry_of(int64_t expire_ms, int64_t now_ms);

#endif
