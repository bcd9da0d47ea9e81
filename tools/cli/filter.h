/* filter.h - which keys a tool works on: --db, --match, --match-regex, --type, --prefix, --slot,
 * --expired, --no-expired, --min-size, and --not before any.
 *
 *     struct filter filter;
 *     filter_init(&filter, cli_now_ms());
 *     const struct cli_opt opts[] = {
 *         FILTER_OPTIONS(&filter),
 *         {0},
 *     };
 *     ... cli_parse() ...
 *     if (ev.kind == RDB_KEY && !filter_wants(&filter, &ev))
 *         rdb_reader_skip_value(reader);
 *     filter_done(&filter);
 *
 * An expression is POSIX extended, on bytes; its dot does not stand for a NUL byte.
 *
 * The same option given several times means any of them; different options must all hold. What
 * follows --not must not hold. Without options every key is wanted.
 *
 * --min-size is about the bytes that the value takes in the file, as it is stored there, without
 * the key. They are known after the value only: a tool asks filter_wants() at the key, and
 * filter_wants_size() when the value was read. One that must know before asks sized_wants()
 * (sized.h), which looks ahead.
 */
#ifndef TOOLS_CLI_FILTER_H
#define TOOLS_CLI_FILTER_H

#include "rdb/event.h"
#include "tools/cli/cli.h"

struct filter_rule;

struct filter {
    struct filter_rule *rules;
    size_t n_rules;
    int64_t now_ms; /* what --expired compares with */
    bool negate;    /* --not precedes the next option */
};

void filter_init(struct filter *filter, int64_t now_ms);
void filter_done(struct filter *filter);

/* Whether the command line named any condition. */
bool filter_active(const struct filter *filter);

/* Whether --no-expired is among the options. */
bool filter_drops_expired(const struct filter *filter);

/* A filter let no key through: says that nothing was DONE ("compared", "written"), on stderr and,
 * with --json, as "nothing_matched". Returns CLI_FINDINGS: the caller asked for keys that are not
 * there, and exit status 0 would hide that. */
int filter_report_nothing(struct cli *cli, const char *done);

/* What the options cannot find themselves: a --not with nothing after it. */
bool filter_check(const struct filter *filter, struct rd_err *err);

/* Whether a key is wanted; ev is its RDB_KEY event. O(rules), but for patterns O(name x pattern).
 */
bool filter_wants(const struct filter *filter, const struct rdb_event *ev);

/* Whether filter_wants() could be true of a key of this database and, unless NULL, of this name:
 * what is known of a key before its value is asked for. */
bool filter_may_want(const struct filter *filter, uint64_t db, const struct rd_slice *name);

/* Whether a key that filter_wants() let through is wanted for its size as well, in bytes; always
 * true without --min-size, which filter_needs_size() tells. */
bool filter_needs_size(const struct filter *filter);
bool filter_wants_size(const struct filter *filter, uint64_t bytes);

/* A pattern as KEYS has it: * ? [abc] [^a-c] and \ before one that stands for itself. */
bool filter_glob(struct rd_slice pattern, struct rd_slice text);

/* For FILTER_OPTIONS: ctx is the filter; values are borrowed, argv outlives the filter. */
bool filter_add_db(void *ctx, const char *value, struct rd_err *err);
bool filter_add_match(void *ctx, const char *value, struct rd_err *err);
bool filter_add_match_regex(void *ctx, const char *value, struct rd_err *err);
bool filter_add_type(void *ctx, const char *value, struct rd_err *err);
bool filter_add_prefix(void *ctx, const char *value, struct rd_err *err);
bool filter_add_slot(void *ctx, const char *value, struct rd_err *err);
bool filter_add_expired(void *ctx, const char *value, struct rd_err *err);
bool filter_add_no_expired(void *ctx, const char *value, struct rd_err *err);
bool filter_add_min_size(void *ctx, const char *value, struct rd_err *err);
bool filter_add_not(void *ctx, const char *value, struct rd_err *err);

#define FILTER_OPTION(option, argument, add, filter, text)                                         \
    {                                                                                              \
        .name = option, .kind = CLI_EACH, .arg = argument, .help = text, .brief = true,            \
        .each = add, .ctx = filter                                                                 \
    }

/* clang-format off */
#define FILTER_OPTIONS(f)                                                                          \
    FILTER_OPTION("db", "N", filter_add_db, f, "keys of database N"),                              \
    FILTER_OPTION("match", "GLOB", filter_add_match, f, "keys that match a KEYS pattern"),         \
    FILTER_OPTION("match-regex", "ERE", filter_add_match_regex, f, "keys that match a regex"),     \
    FILTER_OPTION("type", "T", filter_add_type, f, "string, list, set, zset, hash, stream, …"),    \
    FILTER_OPTION("prefix", "P", filter_add_prefix, f, "keys that begin with P"),                  \
    FILTER_OPTION("slot", "A[-B]", filter_add_slot, f, "keys of these cluster slots"),             \
    FILTER_OPTION("expired", NULL, filter_add_expired, f, "keys whose expiry has passed"),         \
    FILTER_OPTION("no-expired", NULL, filter_add_no_expired, f, "keys that have not expired"),     \
    FILTER_OPTION("min-size", "SIZE", filter_add_min_size, f, "values of SIZE bytes or more"),     \
    FILTER_OPTION("not", NULL, filter_add_not, f, "negate the next option")
/* clang-format on */

#endif
