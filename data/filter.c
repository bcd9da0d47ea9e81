#include "data/filter.h"

#include <string.h>

#include "base/crc16.h"
#include "base/mem.h"
#include "base/num.h"
#include "data/name_regex.h"

enum rule_kind {
    RULE_DB,
    RULE_GLOB,
    RULE_REGEX,
    RULE_TYPE,
    RULE_PREFIX,
    RULE_SLOT,
    RULE_EXPIRED,
    RULE_MIN_SIZE /* not evaluated at the key */
};
enum { RULE_KINDS = RULE_MIN_SIZE + 1 };

struct filter_rule {
    enum rule_kind kind;
    bool negate;
    struct rd_slice text; /* pattern or prefix */
    uint64_t from, to;    /* db, kind of value, slots, size */
    struct name_regex regex;
};

void filter_init(struct filter *filter, int64_t now_ms)
{
    *filter = (struct filter){.now_ms = now_ms};
}

void filter_done(struct filter *filter)
{
    for (size_t i = 0; i < filter->n_rules; i++)
        if (filter->rules[i].kind == RULE_REGEX)
            name_regex_done(&filter->rules[i].regex);
    rd_free(filter->rules);
    *filter = (struct filter){0};
}

bool filter_active(const struct filter *filter)
{
    return filter->n_rules > 0 || filter->slots != NULL;
}

bool filter_drops_expired(const struct filter *filter)
{
    for (size_t i = 0; i < filter->n_rules; i++)
        if (filter->rules[i].kind == RULE_EXPIRED && filter->rules[i].negate)
            return true;
    return false;
}

bool filter_check(const struct filter *filter, struct rd_err *err)
{
    return !filter->negate ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--not must be followed by a filter option");
}

/* ---- conditions ---- */

/* Adds a rule with the --not that precedes it. */
static bool add(struct filter *filter, struct filter_rule rule, struct rd_err *err)
{
    size_t size = (filter->n_rules + 1) * sizeof *filter->rules;
    struct filter_rule *rules = rd_realloc(filter->rules, size);
    if (rules == NULL)
        return rd_err_nomem(err, size);
    rule.negate ^= filter->negate;
    filter->negate = false;
    rules[filter->n_rules++] = rule;
    filter->rules = rules;
    return true;
}

static bool refuse(struct rd_err *err, const char *value, const char *what)
{
    char quoted[80];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(value));
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s is not %s", quoted, what);
}

bool filter_add_db(void *ctx, const char *value, struct rd_err *err)
{
    uint64_t db;
    if (!rd_num_get_u64(rd_slice_str(value), &db))
        return refuse(err, value, "a database number");
    return add(ctx, (struct filter_rule){.kind = RULE_DB, .from = db}, err);
}

bool filter_add_match(void *ctx, const char *value, struct rd_err *err)
{
    return add(ctx, (struct filter_rule){.kind = RULE_GLOB, .text = rd_slice_str(value)}, err);
}

bool filter_add_match_regex(void *ctx, const char *value, struct rd_err *err)
{
    const struct filter *filter = ctx;
    struct filter_rule rule = {.kind = RULE_REGEX};
    if (!name_regex_compile(&rule.regex, value))
        return refuse(err, value, "an extended regular expression");
    rule.regex.exhausted = filter->exhausted;
    if (add(ctx, rule, err))
        return true;
    name_regex_done(&rule.regex);
    return false;
}

bool filter_add_type(void *ctx, const char *value, struct rd_err *err)
{
    for (unsigned kind = 0; kind < RDB_KIND_COUNT; kind++)
        if (strcmp(value, rdb_kind_name((enum rdb_kind)kind)) == 0)
            return add(ctx, (struct filter_rule){.kind = RULE_TYPE, .from = kind}, err);
    return refuse(err, value,
                  "a value type: string, list, set, zset, hash, stream, module or array");
}

bool filter_add_prefix(void *ctx, const char *value, struct rd_err *err)
{
    return add(ctx, (struct filter_rule){.kind = RULE_PREFIX, .text = rd_slice_str(value)}, err);
}

bool filter_add_slot(void *ctx, const char *value, struct rd_err *err)
{
    struct filter_rule rule = {.kind = RULE_SLOT};
    const char *dash = strchr(value, '-');
    size_t len = dash == NULL ? strlen(value) : (size_t)(dash - value);
    bool ok = rd_num_get_u64(rd_slice(value, len), &rule.from);
    rule.to = rule.from;
    if (ok && dash != NULL)
        ok = rd_num_get_u64(rd_slice_str(dash + 1), &rule.to);
    if (!ok || rule.from > rule.to || rule.to >= RD_HASH_SLOTS)
        return refuse(err, value, "a slot, or a range of slots, from 0 to 16383");
    return add(ctx, rule, err);
}

bool filter_add_expired(void *ctx, const char *value, struct rd_err *err)
{
    (void)value;
    return add(ctx, (struct filter_rule){.kind = RULE_EXPIRED}, err);
}

bool filter_add_no_expired(void *ctx, const char *value, struct rd_err *err)
{
    (void)value;
    return add(ctx, (struct filter_rule){.kind = RULE_EXPIRED, .negate = true}, err);
}

bool filter_add_min_size(void *ctx, const char *value, struct rd_err *err)
{
    struct filter_rule rule = {.kind = RULE_MIN_SIZE};
    if (!rd_num_get_size(rd_slice_str(value), &rule.from))
        return refuse(err, value, "a size");
    return add(ctx, rule, err);
}

bool filter_add_not(void *ctx, const char *value, struct rd_err *err)
{
    struct filter *filter = ctx;
    (void)value;
    if (filter->negate)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--not is given twice");
    filter->negate = true;
    return true;
}

/* ---- patterns ---- */

struct glob {
    const uint8_t *p, *end;
};

/* One byte of a class, with or without a backslash. */
static uint8_t class_byte(struct glob *g)
{
    if (*g->p == '\\' && g->end - g->p >= 2)
        g->p++;
    return *g->p++;
}

/* A class after its '['. An unterminated class extends to the end of the pattern. */
static bool match_class(struct glob *g, uint8_t byte)
{
    bool negate = g->p < g->end && *g->p == '^', found = false;
    g->p += negate;
    while (g->p < g->end && *g->p != ']') {
        uint8_t from = class_byte(g), to = from;
        if (g->end - g->p >= 2 && *g->p == '-') {
            g->p++;
            to = *g->p++;
        }
        found |= from <= to ? byte >= from && byte <= to : byte >= to && byte <= from;
    }
    g->p += g->p < g->end;
    return found != negate;
}

/* Matches an element other than a star against one byte. */
static bool match_one(struct glob *g, uint8_t byte)
{
    uint8_t c = *g->p++;
    if (c == '?')
        return true;
    if (c == '[')
        return match_class(g, byte);
    if (c == '\\' && g->p < g->end)
        c = *g->p++;
    return c == byte;
}

/* A star first matches nothing, and one byte more each time that the rest does not match. Only the
 * last star is retried: the earlier ones matched as early as possible. */
bool filter_glob(struct rd_slice pattern, struct rd_slice text)
{
    struct glob g = {pattern.ptr, pattern.ptr + pattern.len};
    struct glob star = {0};
    size_t at = 0, star_at = 0;
    while (at < text.len || g.p < g.end) {
        if (g.p < g.end && *g.p == '*') {
            g.p++;
            star = g;
            star_at = at;
            continue;
        }
        if (at < text.len && g.p < g.end && match_one(&g, text.ptr[at])) {
            at++;
            continue;
        }
        if (star.p == NULL || star_at == text.len)
            return false;
        at = ++star_at;
        g = star;
    }
    return true;
}

/* ---- keys ---- */

static bool holds(const struct filter *filter, const struct filter_rule *rule,
                  const struct rdb_event *ev)
{
    struct rd_slice name = ev->key.name;
    switch (rule->kind) {
    case RULE_DB:
        return ev->key.db == rule->from;
    case RULE_GLOB:
        return filter_glob(rule->text, name);
    case RULE_REGEX:
        return name_regex_match(&rule->regex, name);
    case RULE_TYPE:
        return (uint64_t)ev->key.type->kind == rule->from;
    case RULE_PREFIX:
        return name.len >= rule->text.len &&
               rd_slice_eq(rd_slice(name.ptr, rule->text.len), rule->text);
    case RULE_SLOT:
        return rd_hash_slot(name) >= rule->from && rd_hash_slot(name) <= rule->to;
    case RULE_EXPIRED:
    case RULE_MIN_SIZE:
        break;
    }
    return ev->key.expire_ms != RDB_NO_EXPIRE && ev->key.expire_ms < filter->now_ms;
}

static bool has_slot(const struct filter *filter, struct rd_slice name)
{
    unsigned slot = rd_hash_slot(name);
    return (filter->slots[slot / 8] & 1U << slot % 8) != 0;
}

/* Evaluates only the rules whose bit is set. */
static bool wants(const struct filter *filter, const struct rdb_event *ev, unsigned known)
{
    if (filter->slots != NULL && (known & 1U << RULE_SLOT) != 0 && !has_slot(filter, ev->key.name))
        return false;
    bool asked[RULE_KINDS] = {false}, found[RULE_KINDS] = {false};
    for (size_t i = 0; i < filter->n_rules; i++) {
        const struct filter_rule *rule = &filter->rules[i];
        if ((known & 1U << rule->kind) == 0)
            continue;
        if (rule->negate) {
            if (holds(filter, rule, ev))
                return false;
            continue;
        }
        asked[rule->kind] = true;
        found[rule->kind] = found[rule->kind] || holds(filter, rule, ev);
    }
    for (size_t kind = 0; kind < RULE_KINDS; kind++)
        if (asked[kind] && !found[kind])
            return false;
    return true;
}

bool filter_wants(const struct filter *filter, const struct rdb_event *ev)
{
    return wants(filter, ev, ~(1U << RULE_MIN_SIZE));
}

bool filter_may_want(const struct filter *filter, uint64_t db, const struct rd_slice *name)
{
    const struct rdb_event ev = {.kind = RDB_KEY,
                                 .key = {.db = db, .name = name != NULL ? *name : rd_slice("", 0)}};
    unsigned by_name = 1U << RULE_GLOB | 1U << RULE_REGEX | 1U << RULE_PREFIX | 1U << RULE_SLOT;
    return wants(filter, &ev, 1U << RULE_DB | (name != NULL ? by_name : 0));
}

bool filter_may_want_modules(const struct filter *filter)
{
    const struct rdb_event ev = {.kind = RDB_KEY, .key.type = rdb_type_get(RDB_TYPE_MODULE_2)};
    return wants(filter, &ev, 1U << RULE_TYPE);
}

bool filter_needs_size(const struct filter *filter)
{
    for (size_t i = 0; i < filter->n_rules; i++)
        if (filter->rules[i].kind == RULE_MIN_SIZE)
            return true;
    return false;
}

/* Several filters of one kind match if any of them does. */
bool filter_wants_size(const struct filter *filter, uint64_t bytes)
{
    bool asked = false, found = false;
    for (size_t i = 0; i < filter->n_rules; i++) {
        const struct filter_rule *rule = &filter->rules[i];
        if (rule->kind != RULE_MIN_SIZE)
            continue;
        if (rule->negate && bytes >= rule->from)
            return false;
        asked |= !rule->negate;
        found |= !rule->negate && bytes >= rule->from;
    }
    return found || !asked;
}

/* ---- for an index ---- */

/* Appends the beginning of a pattern that stands for itself; *ret_whole: all of it does. */
static bool put_literal(struct rd_slice pattern, struct rd_buf *ret, bool *ret_whole)
{
    const uint8_t *p = pattern.ptr, *end = p + pattern.len;
    bool ok = true;
    while (ok && p < end && *p != '*' && *p != '?' && *p != '[') {
        if (*p == '\\' && end - p >= 2)
            p++;
        ok = rd_buf_add_byte(ret, *p++);
    }
    *ret_whole = p == end;
    return ok;
}

/* The names of the rules of a kind, of which one must match. None if one of them says nothing. */
static bool put_names(const struct filter *filter, enum rule_kind kind, struct filter_names *ret,
                      struct rd_err *err)
{
    ret->whole = kind == RULE_GLOB;
    for (size_t i = 0; i < filter->n_rules; i++) {
        const struct filter_rule *rule = &filter->rules[i];
        size_t begin = ret->text.len;
        bool whole = false;
        if (rule->kind != kind || rule->negate)
            continue;
        if (!(kind == RULE_GLOB ? put_literal(rule->text, &ret->text, &whole)
                                : rd_buf_add(&ret->text, rule->text.ptr, rule->text.len)))
            return rd_err_nomem(err, rule->text.len);
        ret->whole = ret->whole && whole;
        ret->at[ret->n++].len = ret->text.len - begin;
        if (!whole && ret->text.len == begin) {
            ret->n = 0;
            return true;
        }
    }
    return true;
}

static void put_slots(const struct filter *filter, struct filter_names *ret)
{
    bool asked = false;
    for (size_t i = 0; i < filter->n_rules; i++) {
        const struct filter_rule *rule = &filter->rules[i];
        if (rule->kind != RULE_SLOT || rule->negate)
            continue;
        asked = true;
        for (uint64_t slot = rule->from; slot <= rule->to; slot++)
            ret->slots[slot / 8] |= (uint8_t)(1U << slot % 8);
    }
    if (!asked)
        memset(ret->slots, 0xff, sizeof ret->slots);
    for (size_t i = 0; filter->slots != NULL && i < sizeof ret->slots; i++)
        ret->slots[i] &= filter->slots[i];
    ret->any_slot = !asked && filter->slots == NULL;
}

bool filter_names(const struct filter *filter, struct filter_names *ret, struct rd_err *err)
{
    *ret = (struct filter_names){.n = 0};
    put_slots(filter, ret);
    ret->at = rd_calloc(filter->n_rules + 1, sizeof *ret->at);
    bool ok = ret->at != NULL || rd_err_nomem(err, filter->n_rules);
    ok = ok && put_names(filter, RULE_GLOB, ret, err);
    if (ok && ret->n == 0) {
        rd_buf_reset(&ret->text);
        ok = put_names(filter, RULE_PREFIX, ret, err);
    }
    if (!ok) {
        filter_names_done(ret);
        return false;
    }
    size_t begin = 0; /* the names follow each other */
    for (size_t i = 0; i < ret->n; i++) {
        size_t len = ret->at[i].len;
        ret->at[i] = len == 0 ? rd_slice("", 0) : rd_slice(ret->text.ptr + begin, len);
        begin += len;
    }
    return true;
}

void filter_names_done(struct filter_names *names)
{
    rd_free(names->at);
    rd_buf_done(&names->text);
    names->at = NULL;
}
