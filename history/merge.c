#include "base/mem.h"
#include "base/resp.h"
#include "history/merge_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { MANY = 256 }; /* elements of one command */

/* ---- commands ---- */

bool history_merge_put(const struct history_merge *m, struct history_commands *to,
                       const char *command, const struct rd_slice *words, size_t n)
{
    const struct history_mirror *any = m->now != NULL     ? m->now
                                       : m->after != NULL ? m->after
                                                          : m->before;
    struct rd_sink *sink;
    if (!rd_sink_open_buf(&sink, &to->bytes, NULL, NULL))
        return false;
    rd_resp_put_array(sink, n + 2);
    rd_resp_put_bulk(sink, rd_slice_str(command));
    rd_resp_put_bulk(sink, any->name);
    for (size_t i = 0; i < n; i++)
        rd_resp_put_bulk(sink, words[i]);
    to->n++;
    return rd_sink_close(sink, NULL);
}

/* ---- whole values ---- */

static bool equal_maps(const struct history_map *a, const struct history_map *b)
{
    size_t at = 0;
    if (a->n != b->n)
        return false;
    for (struct history_element *e; (e = history_map_next(a, &at)) != NULL;) {
        const struct history_element *other = history_map_find(b, history_element_name(e));
        if (other == NULL ||
            !rd_slice_eq(history_element_content(e), history_element_content(other)))
            return false;
    }
    return true;
}

static bool equal_seqs(const struct history_seq *a, const struct history_seq *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!rd_slice_eq(history_element_name(history_seq_at(a, i)),
                         history_element_name(history_seq_at(b, i))) ||
            !rd_slice_eq(history_element_content(history_seq_at(a, i)),
                         history_element_content(history_seq_at(b, i))))
            return false;
    return true;
}

bool history_mirror_equal(const struct history_mirror *a, const struct history_mirror *b)
{
    if (!history_is_there(a) || !history_is_there(b))
        return history_is_there(a) == history_is_there(b);
    return a->type == b->type && equal_maps(&a->map, &b->map) &&
           equal_maps(&a->beside, &b->beside) && equal_seqs(&a->seq, &b->seq) &&
           rd_slice_eq(rd_buf_slice(&a->bytes), rd_buf_slice(&b->bytes));
}

/* The elements of a list or a map, some in each command. */
struct batch {
    const struct history_merge *m;
    struct history_commands *to;
    const char *command;
    struct rd_slice words[2 * MANY];
    size_t n;
};

static bool flush(struct batch *b)
{
    bool ok = b->n == 0 || history_merge_put(b->m, b->to, b->command, b->words, b->n);
    b->n = 0;
    return ok;
}

static bool add(struct batch *b, struct rd_slice one, struct rd_slice two, bool pair)
{
    b->words[b->n++] = one;
    if (pair)
        b->words[b->n++] = two;
    return b->n + 2 <= 2 * MANY || flush(b);
}

bool history_merge_field_expiry(const struct history_merge *m, struct rd_slice field,
                                struct rd_slice time, struct history_commands *to)
{
    const struct rd_slice set[] = {time, rd_slice_str("FIELDS"), rd_slice_str("1"), field};
    return time.ptr == NULL ? history_merge_put(m, to, "HPERSIST", set + 1, 3)
                            : history_merge_put(m, to, "HPEXPIREAT", set, 4);
}

static bool create_expiries(const struct history_merge *m, const struct history_map *expiries,
                            struct history_commands *to)
{
    struct history_element **sorted = history_map_sorted(expiries);
    bool ok = sorted != NULL || expiries->n == 0;
    for (size_t i = 0; ok && i < expiries->n; i++)
        ok = history_merge_field_expiry(m, history_element_name(sorted[i]),
                                        history_element_content(sorted[i]), to);
    rd_free(sorted);
    return ok;
}

static bool create_map(const struct history_merge *m, const struct history_mirror *value,
                       struct history_commands *to)
{
    struct batch b = {.m = m,
                      .to = to,
                      .command = value->type == ENGINE_HASH   ? "HSET"
                                 : value->type == ENGINE_ZSET ? "ZADD"
                                                              : "SADD"};
    struct history_element **sorted = history_map_sorted(&value->map);
    bool ok = sorted != NULL || value->map.n == 0;
    for (size_t i = 0; ok && i < value->map.n; i++) {
        struct rd_slice name = history_element_name(sorted[i]);
        struct rd_slice content = history_element_content(sorted[i]);
        ok = value->type == ENGINE_ZSET ? add(&b, content, name, true)
                                        : add(&b, name, content, value->type == ENGINE_HASH);
    }
    rd_free(sorted);
    return ok && flush(&b) &&
           (value->type != ENGINE_HASH || create_expiries(m, &value->beside, to));
}

static bool create_list(const struct history_merge *m, const struct history_mirror *value,
                        struct history_commands *to)
{
    struct batch b = {.m = m, .to = to, .command = "RPUSH"};
    bool ok = true;
    for (size_t i = 0; ok && i < value->seq.n; i++)
        ok = add(&b, history_element_content(history_seq_at(&value->seq, i)), rd_slice(NULL, 0),
                 false);
    return ok && flush(&b);
}

/* In one command, so that a server that refuses the payload keeps what it has. */
static bool restore(const struct history_merge *m, const struct history_mirror *value,
                    struct rd_slice dump, struct history_commands *to)
{
    char text[RD_NUM_I64_MAX];
    bool expires = value->expire_ms != ENGINE_NO_EXPIRE;
    const struct rd_slice words[] = {
        rd_slice(text, rd_num_put_i64(text, expires ? value->expire_ms : 0)), dump,
        rd_slice_str("REPLACE"), rd_slice_str("ABSTTL")};
    return history_merge_put(m, to, "RESTORE", words, 4);
}

static bool is_restored(const struct history_mirror *value)
{
    return value->type == ENGINE_STREAM || value->type == ENGINE_MODULE ||
           value->type == ENGINE_KEPT;
}

bool history_merge_create(const struct history_merge *m, const struct history_mirror *value,
                          struct rd_slice dump, struct history_commands *to)
{
    const struct rd_slice bytes = rd_buf_slice(&value->bytes);
    switch (value->type) {
    case ENGINE_STRING:
        return history_merge_put(m, to, "SET", &bytes, 1);
    case ENGINE_LIST:
        return create_list(m, value, to);
    case ENGINE_HASH:
    case ENGINE_SET:
    case ENGINE_ZSET:
        return create_map(m, value, to);
    default:
        return restore(m, value, dump, to);
    }
}

bool history_merge_put_expiry(const struct history_merge *m, int64_t expire_ms,
                              struct history_commands *to)
{
    char text[RD_NUM_I64_MAX];
    const struct rd_slice word = rd_slice(text, rd_num_put_i64(text, expire_ms));
    return expire_ms == ENGINE_NO_EXPIRE || history_merge_put(m, to, "PEXPIREAT", &word, 1);
}

/* The value, with its time to live, takes the place of another one. */
static bool put_value(const struct history_merge *m, const struct history_mirror *value,
                      struct rd_slice dump, bool was, struct history_commands *to)
{
    bool is = history_is_there(value);
    if (is && is_restored(value))
        return restore(m, value, dump, to);
    return (!was || history_merge_put(m, to, "DEL", NULL, 0)) &&
           (!is || (history_merge_create(m, value, dump, to) &&
                    history_merge_put_expiry(m, value->expire_ms, to)));
}

bool history_merge_replace(struct history_merge *m)
{
    m->changes++;
    return put_value(m, m->before, m->dump_before, history_is_there(m->now), &m->redo) &&
           put_value(m, m->now, m->dump_now, history_is_there(m->before), &m->back);
}

/* ---- conflicts ---- */

bool history_merge_conflict(struct history_merge *m, const struct history_conflict *conflict,
                            bool *ret_resolve, struct rd_err *err)
{
    *ret_resolve = m->prefer == HISTORY_PREFER_BEFORE;
    m->conflicts += m->prefer == HISTORY_PREFER_NONE;
    return m->on_conflict == NULL || m->on_conflict(m->ctx, conflict, err);
}

bool history_merge_whole(struct history_merge *m, struct rd_err *err)
{
    struct history_conflict conflict = {.is_whole = true};
    bool resolve;
    if (history_is_there(m->before) && m->before->type == ENGINE_STRING)
        conflict.before = rd_buf_slice(&m->before->bytes);
    if (history_is_there(m->now) && m->now->type == ENGINE_STRING)
        conflict.now = rd_buf_slice(&m->now->bytes);
    if (!history_merge_conflict(m, &conflict, &resolve, err))
        return false;
    return !resolve || history_merge_replace(m) || rd_err_nomem(err, 0);
}

/* ---- the time to live ---- */

static int64_t expiry_of(const struct history_mirror *m)
{
    return history_is_there(m) ? m->expire_ms : ENGINE_NO_EXPIRE;
}

static struct rd_slice expiry_text(int64_t expire_ms, char dst[RD_NUM_I64_MAX])
{
    return expire_ms == ENGINE_NO_EXPIRE ? rd_slice(NULL, 0)
                                         : rd_slice(dst, rd_num_put_i64(dst, expire_ms));
}

static bool set_expiry(const struct history_merge *m, int64_t expire_ms,
                       struct history_commands *to)
{
    return expire_ms == ENGINE_NO_EXPIRE ? history_merge_put(m, to, "PERSIST", NULL, 0)
                                         : history_merge_put_expiry(m, expire_ms, to);
}

static bool merge_expiry(struct history_merge *m, struct rd_err *err)
{
    int64_t before = expiry_of(m->before), after = expiry_of(m->after), now = expiry_of(m->now);
    char b[RD_NUM_I64_MAX], n[RD_NUM_I64_MAX];
    const struct history_conflict conflict = {
        .is_expiry = true, .before = expiry_text(before, b), .now = expiry_text(now, n)};
    bool resolve = true;
    if (before == after || now == before)
        return true;
    if (now != after && !history_merge_conflict(m, &conflict, &resolve, err))
        return false;
    if (!resolve)
        return true;
    m->changes++;
    return (set_expiry(m, before, &m->redo) && set_expiry(m, now, &m->back)) ||
           rd_err_nomem(err, 0);
}

/* ---- the whole ---- */

static bool merge_value(struct history_merge *m, enum engine_type type, struct rd_err *err)
{
    switch (type) {
    case ENGINE_STRING:
        return history_merge_string(m, err);
    case ENGINE_LIST:
        return history_merge_list(m, err);
    case ENGINE_HASH:
    case ENGINE_SET:
    case ENGINE_ZSET:
        return history_merge_map(m, err);
    case ENGINE_STREAM:
        return history_merge_stream(m, err);
    default:
        return history_merge_whole(m, err);
    }
}

static bool is_other_type(const struct history_mirror *m, enum engine_type type)
{
    return history_is_there(m) && m->type != type;
}

static bool has_names(enum engine_type type)
{
    return type == ENGINE_HASH || type == ENGINE_SET || type == ENGINE_ZSET;
}

/* Only the time to live was changed, or the value is what it was. */
static bool merge_rest(struct history_merge *m, struct rd_err *err)
{
    bool all =
        history_is_there(m->before) && history_is_there(m->after) && history_is_there(m->now);
    return !all || merge_expiry(m, err);
}

bool history_merge(struct history_merge *m, struct rd_err *err)
{
    const struct history_mirror *b = m->before, *a = m->after, *n = m->now;
    if (history_mirror_equal(b, a) || history_mirror_equal(n, b))
        return merge_rest(m, err);
    if (history_mirror_equal(n, a) && (expiry_of(n) == expiry_of(a) || !history_is_there(b)))
        return history_merge_replace(m) || rd_err_nomem(err, 0);
    enum engine_type type = history_is_there(b) ? b->type : a->type;
    if (is_other_type(a, type) || is_other_type(n, type))
        return history_merge_whole(m, err);
    if (!history_is_there(n) && !has_names(type)) /* it was removed since */
        return !history_is_there(b) || history_merge_whole(m, err);
    return merge_value(m, type, err) && merge_rest(m, err);
}

void history_merge_done(struct history_merge *m)
{
    rd_buf_done(&m->redo.bytes);
    rd_buf_done(&m->back.bytes);
}
