/* filter.h - selects the keys for a tool: --db, --match, --match-regex, --type, --prefix, --slot,
 * --expired, --no-expired, --min-size, and --not before any.
 *
 *     struct filter filter;
 *     filter_init(&filter, cli, cli_now_ms());
 *     const struct cli_opt opts[] = {
 *         FILTER_OPTIONS(&filter),
 *         {0},
 *     };
 *     ... cli_parse() ...
 *     if (ev.kind == RDB_KEY && !filter_wants(&filter, &ev))
 *         rdb_reader_skip_value(reader);
 *     filter_done(&filter);
 *
 * A regular expression is POSIX extended, on bytes; see regex.h for NUL bytes.
 *
 * If the same option is given several times, one of them must match; different options must all
 * match. --not negates the next option. Without options every key matches.
 *
 * --min-size is the stored size of the value in the file, without the key. It is known only after
 * the value: a tool calls filter_wants() at the key, and filter_wants_size() after the value. If it
 * must know before, it calls sized_wants()
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
    struct cli *cli;
    int64_t now_ms; /* what --expired compares with */
    bool negate;    /* --not precedes the next option */
    const uint8_t
        *slots; /* a bit for each cluster slot whose keys can match; NULL: all; borrowed */
};

void filter_init(struct filter *filter, struct cli *cli, int64_t now_ms);
void filter_done(struct filter *filter);

/* Whether the command line has any filter option. */
bool filter_active(const struct filter *filter);

/* Whether --no-expired is among the options. */
bool filter_drops_expired(const struct filter *filter);

/* No key matched: reports that nothing was DONE ("compared", "written"), on stderr and, with
 * --json, as "nothing_matched". Returns CLI_FINDINGS: the user asked for keys that do not exist,
 * and exit status 0 would hide that. */
int filter_report_nothing(struct cli *cli, const char *done);

/* Checks the options after parsing: a --not must have an option after it. */
bool filter_check(const struct filter *filter, struct rd_err *err);

/* Whether a key matches; ev is its RDB_KEY event. O(rules); patterns O(name x pattern). */
bool filter_wants(const struct filter *filter, const struct rdb_event *ev);

/* Whether filter_wants() can be true for a key of this database and, if not NULL, this name. Use it
 * before the value is read. */
bool filter_may_want(const struct filter *filter, uint64_t db, const struct rd_slice *name);

/* Whether filter_wants() can be true for values of modules. If not, the records that modules keep
 * beside the keys are left out, too (rdb/beside.h). */
bool filter_may_want_modules(const struct filter *filter);

/* Whether a key that passed filter_wants() also matches by its size in bytes. Always true without
 * --min-size; see filter_needs_size(). */
bool filter_needs_size(const struct filter *filter);
bool filter_wants_size(const struct filter *filter, uint64_t bytes);

/* A pattern as for KEYS: * ? [abc] [^a-c], and \ escapes the next byte. */
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

#define FILTER_TYPES "string|list|set|zset|hash|stream|module|array"

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
    {.name = "type", .kind = CLI_EACH, .arg = "T", .words = FILTER_TYPES, .brief = true,           \
     .each = filter_add_type, .ctx = f, .help = "values of this type"},                            \
    FILTER_OPTION("prefix", "P", filter_add_prefix, f, "keys that begin with P"),                  \
    FILTER_OPTION("slot", "A[-B]", filter_add_slot, f, "keys of these cluster slots"),             \
    FILTER_OPTION("expired", NULL, filter_add_expired, f, "keys whose expiry has passed"),         \
    FILTER_OPTION("no-expired", NULL, filter_add_no_expired, f, "keys that have not expired"),     \
    FILTER_OPTION("min-size", "SIZE", filter_add_min_size, f, "values of SIZE bytes or more"),     \
    FILTER_OPTION("not", NULL, filter_add_not, f, "negate the next option")
/* clang-format on */

#endif
