/* filter.h - selects keys: --db, --match, --match-regex, --type, --prefix, --slot,
 * --expired, --no-expired, --min-size, and --not before any.
 *
 *     struct filter filter;
 *     filter_init(&filter, now_ms);
 *     if (!filter_add_prefix(&filter, "user:", &err))
 *         ...
 *     if (ev.kind == RDB_KEY && !filter_wants(&filter, &ev))
 *         rdb_reader_skip_value(reader);
 *     filter_done(&filter);
 *
 * A regular expression is POSIX extended, on bytes; see name_regex.h for NUL bytes.
 *
 * If the same option is given several times, one of them must match; different options must all
 * match. --not negates the next option. Without options every key matches.
 *
 * --min-size is the stored size of the value in the file, without the key. It is known only after
 * the value: a tool calls filter_wants() at the key, and filter_wants_size() after the value. If it
 * must know before, it calls sized_wants()
 * (sized.h), which looks ahead.
 */
#ifndef DATA_FILTER_H
#define DATA_FILTER_H

#include "base/buf.h"
#include "base/crc16.h"
#include "base/err.h"
#include "rdb/event.h"

struct filter_rule;

struct filter {
    struct filter_rule *rules;
    size_t n_rules;
    int64_t now_ms; /* what --expired compares with */
    bool negate;    /* --not precedes the next option */
    const uint8_t
        *slots; /* a bit for each cluster slot whose keys can match; NULL: all; borrowed */
    void (*exhausted)(size_t size); /* see name_regex.h */
};

void filter_init(struct filter *filter, int64_t now_ms);
void filter_done(struct filter *filter);

/* Whether it has any rule. */
bool filter_active(const struct filter *filter);

/* Whether --no-expired is among the options. */
bool filter_drops_expired(const struct filter *filter);

/* Checks the options after parsing: a --not must have an option after it. */
bool filter_check(const struct filter *filter, struct rd_err *err);

/* Whether a key matches; ev is its RDB_KEY event. O(rules); patterns O(name x pattern). */
bool filter_wants(const struct filter *filter, const struct rdb_event *ev);

/* Whether filter_wants() can be true for a key of this database and, if not NULL, this name. Use it
 * before the value is read. */
bool filter_may_want(const struct filter *filter, uint64_t db, const struct rd_slice *name);

/* What every key that matches has in common, for an index of keys. */
struct filter_names {
    struct rd_slice *at; /* it has one of these names, or begins with one of them */
    size_t n;            /* 0: any name */
    bool whole;          /* they are names, not beginnings of names */
    bool any_slot;
    uint8_t slots[RD_HASH_SLOTS / 8]; /* a bit for each slot that it can have, unless any_slot */
    struct rd_buf text;
};

bool filter_names(const struct filter *filter, struct filter_names *ret, struct rd_err *err);
void filter_names_done(struct filter_names *names);

/* Whether filter_wants() can be true for values of modules. If not, the records that modules keep
 * beside the keys are left out, too (rdb/beside.h). */
bool filter_may_want_modules(const struct filter *filter);

/* Whether a key that passed filter_wants() also matches by its size in bytes. Always true without
 * --min-size; see filter_needs_size(). */
bool filter_needs_size(const struct filter *filter);
bool filter_wants_size(const struct filter *filter, uint64_t bytes);

/* A pattern as for KEYS: * ? [abc] [^a-c], and \ escapes the next byte. */
bool filter_glob(struct rd_slice pattern, struct rd_slice text);

/* An option each (tools/cli/filter.h): ctx is the filter; values are borrowed. */
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

#endif
