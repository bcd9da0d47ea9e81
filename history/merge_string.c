/* Strings: as a whole, or by the bytes that were overwritten. */
#include "history/merge_impl.h"

static struct rd_slice bytes_of(const struct history_mirror *m)
{
    return history_is_there(m) ? rd_buf_slice(&m->bytes) : rd_slice(NULL, 0);
}

/* All lengths are the same. */
static bool is_by_byte(struct rd_slice b, struct rd_slice a, struct rd_slice n)
{
    return b.len == a.len && n.len >= a.len && b.len > 0;
}

/* Bytes that the commands changed must be what they made of them. */
static bool is_untouched(struct rd_slice b, struct rd_slice a, struct rd_slice n)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.ptr[i] != a.ptr[i] && n.ptr[i] != a.ptr[i] && n.ptr[i] != b.ptr[i])
            return false;
    return true;
}

static bool put_range(struct history_merge *m, size_t at, size_t len)
{
    char text[RD_NUM_I64_MAX];
    struct rd_slice offset = rd_slice(text, rd_num_put_i64(text, (int64_t)at));
    const struct rd_slice redo[] = {offset, rd_slice(bytes_of(m->before).ptr + at, len)};
    const struct rd_slice back[] = {offset, rd_slice(bytes_of(m->now).ptr + at, len)};
    m->changes++;
    return history_merge_put(m, &m->redo, "SETRANGE", redo, 2) &&
           history_merge_put(m, &m->back, "SETRANGE", back, 2);
}

static bool put_ranges(struct history_merge *m)
{
    struct rd_slice b = bytes_of(m->before), a = bytes_of(m->after), n = bytes_of(m->now);
    for (size_t i = 0; i < b.len; i++) {
        size_t from = i;
        while (i < b.len && b.ptr[i] != a.ptr[i] && n.ptr[i] != b.ptr[i])
            i++;
        if (i > from && !put_range(m, from, i - from))
            return false;
    }
    return true;
}

static bool set(const struct history_merge *m, struct rd_slice bytes, struct history_commands *to)
{
    return history_merge_put(m, to, "SET", &bytes, 1) &&
           history_merge_put_expiry(m, m->now->expire_ms, to);
}

bool history_merge_string(struct history_merge *m, struct rd_err *err)
{
    struct rd_slice b = bytes_of(m->before), a = bytes_of(m->after), n = bytes_of(m->now);
    bool all = history_is_there(m->before) && history_is_there(m->after);
    if (all && rd_slice_eq(n, a)) { /* only its time to live was changed since */
        m->changes++;
        return (set(m, b, &m->redo) && set(m, n, &m->back)) || rd_err_nomem(err, b.len);
    }
    if (all && is_by_byte(b, a, n) && is_untouched(b, a, n))
        return put_ranges(m) || rd_err_nomem(err, b.len);
    return history_merge_whole(m, err);
}
