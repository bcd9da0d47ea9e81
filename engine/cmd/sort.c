/* SORT and SORT_RO. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_impl.h"
#include "engine/state_impl.h"
#include "engine/value/list.h"
#include "engine/value/set.h"
#include "engine/value/zset.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

struct options {
    bool descending;
    bool alpha;
    bool as_it_is; /* BY with a pattern that has no star: no sorting */
    int64_t skip;
    int64_t count; /* below 0: all */
    const struct rd_slice *by;
    const struct rd_slice *store;
    size_t n_gets; /* the patterns are argv[…] after the word GET */
};

/* A copy of one element. Its sort key is in `by` or `score`, or is the element. */
struct element {
    uint8_t *text;
    size_t len;
    uint8_t *by;      /* ALPHA with BY; NULL: the key does not exist */
    size_t alpha_len; /* ALPHA: how many bytes of the sort key are compared */
    double score;
};

struct sorting {
    struct engine_call *call;
    struct options opts;
    struct element *list;
    size_t n;     /* in the list */
    size_t first; /* of the requested elements */
    size_t n_wanted;
};

/* ---- arguments ---- */

static bool parse_limit(struct engine_call *call, size_t at, struct options *opts)
{
    return engine_arg_i64(call, call->argv[at + 1], &opts->skip, NULL) &&
           engine_arg_i64(call, call->argv[at + 2], &opts->count, NULL);
}

static bool has_star(struct rd_slice pattern)
{
    return pattern.len > 0 && memchr(pattern.ptr, '*', pattern.len) != NULL;
}

/* BY and GET read keys that are not arguments. */
static bool may_read_all(struct engine_call *call, const char *option)
{
    const struct engine_hooks *hooks = &call->engine->hooks;
    if (call->config->cluster) { /* they may be on another node */
        engine_reply_errorf(call->reply, "ERR %s option of SORT denied in Cluster mode.", option);
        return false;
    }
    if (hooks->reads_all == NULL || hooks->reads_all(hooks->ctx, call->request))
        return true;
    engine_reply_errorf(
        call->reply, "ERR %s option of SORT denied due to insufficient ACL permissions.", option);
    return false;
}

/* Parses one option; *at becomes the index of its last argument. */
static bool parse_option(struct engine_call *call, bool may_store, size_t *at, struct options *opts)
{
    struct rd_slice word = call->argv[*at];
    size_t left = call->argc - *at - 1;
    if (engine_arg_is(word, "asc")) {
        opts->descending = false;
    } else if (engine_arg_is(word, "desc")) {
        opts->descending = true;
    } else if (engine_arg_is(word, "alpha")) {
        opts->alpha = true;
    } else if (engine_arg_is(word, "limit") && left >= 2) {
        if (!parse_limit(call, *at, opts))
            return false;
        *at += 2;
    } else if (may_store && engine_arg_is(word, "store") && left >= 1) {
        opts->store = &call->argv[++*at];
    } else if (engine_arg_is(word, "by") && left >= 1) {
        opts->by = &call->argv[++*at];
        opts->as_it_is |= !has_star(*opts->by);
        return !has_star(*opts->by) || may_read_all(call, "BY");
    } else if (engine_arg_is(word, "get") && left >= 1) {
        if (!may_read_all(call, "GET"))
            return false;
        opts->n_gets++;
        ++*at;
    } else {
        engine_reply_syntax(call);
        return false;
    }
    return true;
}

static bool parse_options(struct engine_call *call, bool may_store, struct options *ret)
{
    *ret = (struct options){.count = -1};
    for (size_t i = 2; i < call->argc; i++)
        if (!parse_option(call, may_store, &i, ret))
            return false;
    return true;
}

/* ---- patterns ---- */

/* The key that a pattern gives for an element, and the field after "->", if any. */
static bool expand(struct rd_slice pattern, const struct element *el, struct rd_buf *ret_key,
                   struct rd_slice *ret_field)
{
    const uint8_t *star = memchr(pattern.ptr, '*', pattern.len);
    if (star == NULL)
        return false;
    size_t before = (size_t)(star - pattern.ptr);
    struct rd_slice after = rd_slice(star + 1, pattern.len - before - 1);
    const uint8_t *arrow = after.len > 0 ? memmem(after.ptr, after.len, "->", 2) : NULL;
    *ret_field = rd_slice(NULL, 0);
    if (arrow != NULL && arrow + 2 < after.ptr + after.len) {
        *ret_field = rd_slice(arrow + 2, (size_t)(after.ptr + after.len - arrow) - 2);
        after.len = (size_t)(arrow - after.ptr);
    }
    rd_buf_reset(ret_key);
    return rd_buf_add(ret_key, pattern.ptr, before) && rd_buf_add(ret_key, el->text, el->len) &&
           rd_buf_add(ret_key, after.ptr, after.len);
}

/* The value that a pattern gives for an element. False: none. *ret is valid until the data set
 * changes; its digits are in tmp. */
static bool resolve(struct engine_call *call, struct rd_slice pattern, const struct element *el,
                    struct rd_slice *ret, char tmp[RD_NUM_I64_MAX])
{
    struct rd_buf key = {0};
    struct rd_slice field;
    const struct engine_entry *entry = NULL;
    if (rd_slice_is(pattern, "#")) {
        *ret = rd_slice(el->text, el->len);
        return true;
    }
    if (pattern.len > 0 && expand(pattern, el, &key, &field))
        entry = engine_call_find_read(call, rd_buf_slice(&key));
    rd_buf_done(&key);
    if (entry == NULL)
        return false;
    if (field.ptr != NULL)
        return entry->value.type == ENGINE_HASH && !engine_hash_due(call, &entry->value, field) &&
               engine_hash_get(&entry->value, field, ret, tmp);
    if (entry->value.type != ENGINE_STRING)
        return false;
    *ret = engine_string_text(&entry->value, tmp);
    return true;
}

/* ---- elements ---- */

static uint8_t *copy_text(struct rd_slice text)
{
    uint8_t *copy = engine_scratch_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

static void add_element(struct sorting *s, struct rd_slice text)
{
    s->list[s->n++] = (struct element){.text = copy_text(text), .len = text.len};
}

/* For a type that is ordered by itself, copies only the requested part. */
static void take_list(struct sorting *s, struct engine_list *list, size_t skip, size_t n)
{
    bool back = s->opts.as_it_is && s->opts.descending;
    int64_t index = back ? -(int64_t)skip - 1 : (int64_t)skip;
    struct engine_list_pos pos;
    char tmp[RD_NUM_I64_MAX];
    bool any = n > 0 && engine_list_at(list, index, &pos);
    for (; any && s->n < n;
         any = engine_list_step(&pos, back ? ENGINE_LIST_HEAD : ENGINE_LIST_TAIL))
        add_element(s, engine_list_text(&pos, tmp));
}

static void take_zset(struct sorting *s, const struct engine_value *v, size_t skip, size_t n)
{
    bool back = s->opts.as_it_is && s->opts.descending;
    size_t rank = back ? engine_zset_count(v) - skip - 1 : skip;
    struct engine_zset_cursor at;
    bool any = n > 0 && engine_zset_at(v, rank, &at);
    for (; any && s->n < n; any = back ? engine_zset_prev(&at) : engine_zset_next(&at))
        add_element(s, engine_zset_member(&at));
}

static void take_set(struct sorting *s, const struct engine_value *v)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_set_iter_begin(&it, v);
    while (engine_set_iter_next(&it, &member))
        add_element(s, member);
    engine_set_iter_end(&it);
}

/* The range of `all` elements that LIMIT selects. */
static void limit(struct sorting *s, size_t all)
{
    int64_t n = (int64_t)all;
    int64_t skip = s->opts.skip < 0 ? 0 : s->opts.skip;
    int64_t count = s->opts.count < 0 ? n : s->opts.count;
    s->first = skip < n ? (size_t)skip : all;
    size_t left = all - s->first;
    s->n_wanted = (uint64_t)count < left ? (size_t)count : left;
}

static void gather(struct sorting *s, struct engine_value *v)
{
    size_t all = v != NULL ? (size_t)engine_value_count(v) : 0;
    limit(s, all);
    bool part = s->opts.as_it_is && v != NULL && v->type != ENGINE_SET;
    size_t skip = part ? s->first : 0;
    size_t n = part ? s->n_wanted : all;
    s->list = engine_scratch_alloc((n + 1) * sizeof *s->list);
    if (v == NULL)
        return;
    if (v->type == ENGINE_LIST)
        take_list(s, v->u.list, skip, n);
    else if (v->type == ENGINE_ZSET)
        take_zset(s, v, skip, n);
    else
        take_set(s, v);
    if (part)
        s->first = 0;
}

/* ---- order ---- */

/* A number as servers parse it here: with strtod(), including leading blanks. */
static bool parse_score(struct rd_slice text, double *ret)
{
    char *copy = (char *)copy_text(text);
    char *end;
    errno = 0;
    *ret = strtod(copy, &end);
    bool ok = *end == '\0' && errno != ERANGE && !isnan(*ret);
    engine_scratch_free(copy);
    return ok;
}

/* ALPHA compares strings of C, which end at a NUL byte, unless the result is stored. */
static size_t alpha_len(const struct options *opts, struct rd_slice text)
{
    const uint8_t *nul = opts->store == NULL && text.len > 0 ? memchr(text.ptr, 0, text.len) : NULL;
    return nul != NULL ? (size_t)(nul - text.ptr) : text.len;
}

/* The sort key of an element. False: not a number. */
static bool weigh(struct sorting *s, struct element *el)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice by = rd_slice(el->text, el->len);
    if (s->opts.by != NULL && !resolve(s->call, *s->opts.by, el, &by, tmp))
        return true;
    if (!s->opts.alpha)
        return parse_score(by, &el->score);
    if (s->opts.by != NULL)
        el->by = copy_text(by);
    el->alpha_len = alpha_len(&s->opts, by);
    return true;
}

static int compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_texts(const struct element *a, const struct element *b)
{
    return compare_bytes(a->text, a->len, b->text, b->len);
}

static int compare_alpha(const struct element *a, const struct element *b)
{
    return compare_bytes(a->text, a->alpha_len, b->text, b->alpha_len);
}

/* Elements without a sort key come first. */
static int compare_by(const struct element *a, const struct element *b)
{
    if (a->by == NULL || b->by == NULL)
        return (a->by != NULL) - (b->by != NULL);
    return compare_bytes(a->by, a->alpha_len, b->by, b->alpha_len);
}

static int compare_scores(const struct element *a, const struct element *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return compare_texts(a, b);
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct options *opts = ctx;
    int order;
    if (!opts->alpha)
        order = compare_scores(a, b);
    else
        order = opts->by != NULL ? compare_by(a, b) : compare_alpha(a, b);
    return opts->descending ? -order : order;
}

/* False: an element is not a number. */
static bool put_in_order(struct sorting *s)
{
    bool ok = true;
    for (size_t i = 0; i < s->n; i++)
        ok = weigh(s, &s->list[i]) && ok;
    if (ok)
        qsort_r(s->list, s->n, sizeof *s->list, compare, &s->opts);
    return ok;
}

/* ---- results ---- */

/* text NULL: the value does not exist. */
typedef void (*give_fn)(void *ctx, const struct rd_slice *text);

static void each_result(struct sorting *s, give_fn give, void *ctx)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text;
    for (size_t i = s->first; i < s->first + s->n_wanted; i++) {
        if (s->opts.n_gets == 0) {
            text = rd_slice(s->list[i].text, s->list[i].len);
            give(ctx, &text);
            continue;
        }
        for (size_t k = 2; k < s->call->argc; k++) {
            struct rd_slice word = s->call->argv[k];
            if (engine_arg_is(word, "limit")) {
                k += 2;
            } else if (engine_arg_is(word, "by") || engine_arg_is(word, "store")) {
                k++;
            } else if (engine_arg_is(word, "get")) {
                bool is = resolve(s->call, s->call->argv[++k], &s->list[i], &text, tmp);
                give(ctx, is ? &text : NULL);
            }
        }
    }
}

static void give_reply(void *ctx, const struct rd_slice *text)
{
    struct engine_reply *reply = ctx;
    if (text == NULL)
        engine_reply_null(reply);
    else
        engine_reply_bulk(reply, *text);
}

static void give_list(void *ctx, const struct rd_slice *text)
{
    engine_list_push(ctx, ENGINE_LIST_TAIL, text != NULL ? *text : rd_slice("", 0));
}

static size_t n_results(const struct sorting *s)
{
    return s->n_wanted * (s->opts.n_gets > 0 ? s->opts.n_gets : 1);
}

static void store(struct sorting *s)
{
    struct engine_call *call = s->call;
    struct rd_slice key = *s->opts.store;
    size_t n = n_results(s);
    if (n > 0) {
        enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
        struct engine_value list = engine_list_value(call->config);
        each_result(s, give_list, list.u.list);
        engine_call_set(call, key, &list, false);
        engine_mem_leave(before);
        engine_changed(call, ENGINE_NOTIFY_LIST, "sortstore", key, n);
        engine_reply_int(call->reply, (int64_t)n);
        return;
    }
    /* Expired or not, the old value is deleted. */
    struct engine_entry *there = engine_db_find(call->db, key);
    if (there != NULL) {
        engine_call_delete(call, there);
        engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
    }
    engine_reply_int(call->reply, (int64_t)n);
}

static void finish(struct sorting *s)
{
    if (!s->opts.as_it_is && !put_in_order(s)) {
        engine_reply_by_data(s->call->reply);
        engine_reply_error(s->call->reply, "ERR One or more scores can't be converted into double");
    } else if (s->opts.store != NULL) {
        store(s);
    } else {
        engine_reply_array(s->call->reply, n_results(s));
        each_result(s, give_reply, s->call->reply);
    }
    for (size_t i = 0; i < s->n; i++) {
        engine_scratch_free(s->list[i].text);
        engine_scratch_free(s->list[i].by);
    }
    engine_scratch_free(s->list);
}

static bool can_be_sorted(struct engine_call *call, const struct engine_entry *entry)
{
    if (entry == NULL || entry->value.type == ENGINE_LIST || entry->value.type == ENGINE_SET ||
        entry->value.type == ENGINE_ZSET)
        return true;
    engine_reply_wrong_type(call);
    return false;
}

static void sort(struct engine_call *call, bool may_store)
{
    struct sorting s = {.call = call};
    if (!parse_options(call, may_store, &s.opts))
        return;
    struct engine_entry *entry = engine_call_find_read(call, call->argv[1]);
    if (!can_be_sorted(call, entry))
        return;
    struct engine_value *v = entry != NULL ? &entry->value : NULL;
    /* A stored result, and one that a script sees, must not depend on the order of a table. */
    if (s.opts.as_it_is && v != NULL && v->type == ENGINE_SET &&
        (s.opts.store != NULL || call->session->in_script)) {
        s.opts.as_it_is = false;
        s.opts.alpha = true;
        s.opts.by = NULL;
    }
    if (v != NULL && v->type == ENGINE_ZSET && v->encoding == ENGINE_LISTPACK) {
        enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_ZSET);
        engine_zset_become_skiplist(v, engine_zset_count(v));
        engine_mem_leave(before);
    }
    gather(&s, v);
    finish(&s);
}

void engine_cmd_sort(struct engine_call *call)
{
    sort(call, true);
}

void engine_cmd_sort_ro(struct engine_call *call)
{
    sort(call, false);
}
