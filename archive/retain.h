/* retain.h - which sets of a repository are kept.
 *
 *     struct archive_retention rules;
 *     if (!archive_retention_parse(&rules, "hourly 48, daily 60", &err))
 *         ...
 *     archive_retain(&rules, sets, n_sets, now_ms);
 *     ... sets[i].why == 0: may be removed ...
 *
 * The stream of a target has limits of its own, archive_retention_parse_stream("7d, 10gb"):
 * archive_stream_limit() of archive/stream.h applies them.
 *
 * Pure functions: no clock and no files. The rules, each of which keeps sets on its own:
 *
 *     count N     the N newest sets
 *     hourly N    of the N latest hours that have a set: the newest set of each
 *     daily N, weekly N, monthly N, yearly N
 *                 the same with days, weeks (from Monday on), months and years
 *     tag T       sets with this tag: NAME, or NAME=VALUE; may be given several times
 *     age D       sets that are at most D older than the newest one: 90m, 12h, 30d, 8w
 *
 * Hours and days are those of UTC. Hours without a set do not count: if backups stop, no set is
 * removed because time passes. For the same reason an age is relative to the newest set that is not
 * in the future, and not to the present.
 *
 * These are also kept: pinned sets, the newest good set, and all sets if none is good or no rule is
 * given. Sets in the future (a clock was wrong) are kept until that time, and do not count. A set
 * that is known to be damaged is kept only if it is pinned.
 * A set whose author is not known (it may be forged, or have an old key) is kept and does not
 * count.
 */
#ifndef ARCHIVE_RETAIN_H
#define ARCHIVE_RETAIN_H

#include "archive/tag.h"
#include "base/err.h"
#include "base/slice.h"

/* The reasons to keep a set, as bits of `why`. */
#define ARCHIVE_RULES(X)                                                                           \
    X(COUNT, "count")                                                                              \
    X(HOURLY, "hourly")                                                                            \
    X(DAILY, "daily")                                                                              \
    X(WEEKLY, "weekly")                                                                            \
    X(MONTHLY, "monthly")                                                                          \
    X(YEARLY, "yearly")                                                                            \
    X(AGE, "age")                                                                                  \
    X(TAG, "tag")                                                                                  \
    X(PIN, "pinned")                                                                               \
    X(LAST_GOOD, "last good")                                                                      \
    X(NO_RULE, "no rule")                                                                          \
    X(FUTURE, "in the future")                                                                     \
    X(UNPROVED, "not proved")

enum archive_rule {
#define X(name, word) ARCHIVE_RULE_##name,
    ARCHIVE_RULES(X)
#undef X
        ARCHIVE_RULE_COUNT_ALL
};

enum { ARCHIVE_RULES_GIVEN = ARCHIVE_RULE_AGE + 1 };

enum { ARCHIVE_RETAIN_TAGS = 8 };

struct archive_retention {
    uint64_t n[ARCHIVE_RULES_GIVEN]; /* 0: the rule is not given; of AGE: milliseconds */
    struct archive_tag_choice tags[ARCHIVE_RETAIN_TAGS];
    size_t n_tags;
    uint64_t stream_ms, stream_bytes; /* the limits of the stream; 0: none */
};

struct archive_retained {
    int64_t time_ms; /* unix time */
    bool pinned;
    bool damaged;
    bool unproved;
    bool tagged;  /* it has a tag of a rule: archive_retention_has_tag() */
    unsigned why; /* out: bits of enum archive_rule; 0: it may be removed */
};

/* Parses "hourly 48, daily 60". RD_ERR_USAGE. An empty text has no rules. */
bool archive_retention_parse(struct archive_retention *ret, struct rd_slice text,
                             struct rd_err *err);
/* Parses "7d", "10gb" or both with a comma between them. RD_ERR_USAGE; then *ret is unchanged. */
bool archive_retention_parse_stream(struct archive_retention *ret, struct rd_slice text,
                                    struct rd_err *err);
/* Whether one of these tags is in a rule. */
bool archive_retention_has_tag(const struct archive_retention *rules,
                               const struct archive_tag *tags, size_t n);
bool archive_retention_given(const struct archive_retention *rules);

/* The sets, from old to new. */
void archive_retain(const struct archive_retention *rules, struct archive_retained *sets, size_t n,
                    int64_t now_ms);

const char *archive_rule_word(enum archive_rule rule);

/* Parses 90s, 90m, 25h, 30d, 8w, to milliseconds; without a sign, and at most a few centuries. */
bool archive_get_duration(struct rd_slice text, uint64_t *ret_ms);

#endif
