/* Strings, byte by byte, and values that are opaque here. */
#include "history/mirror_impl.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- runs of bytes with one writer ---- */

static void add_run(struct history_run *runs, size_t *n, size_t end, uint32_t writer)
{
    size_t begin = *n == 0 ? 0 : runs[*n - 1].end;
    if (end <= begin)
        return;
    if (*n > 0 && runs[*n - 1].writer == writer)
        runs[*n - 1].end = end;
    else
        runs[(*n)++] = (struct history_run){end, writer};
}

/* Bytes [from, to) have another writer; the string has `len` bytes then. */
static bool write_run(const struct follow *f, size_t from, size_t to, size_t len)
{
    struct history_mirror *m = f->m;
    struct history_run *runs = rd_alloc((m->n_runs + 3) * sizeof *runs);
    size_t n = 0, i = 0;
    if (runs == NULL)
        return rd_err_nomem(f->err, (m->n_runs + 3) * sizeof *runs);
    for (; i < m->n_runs && m->runs[i].end <= from; i++)
        add_run(runs, &n, m->runs[i].end, m->runs[i].writer);
    if (i < m->n_runs)
        add_run(runs, &n, from, m->runs[i].writer);
    add_run(runs, &n, to, f->writer);
    for (; i < m->n_runs; i++)
        if (m->runs[i].end > to)
            add_run(runs, &n, m->runs[i].end < len ? m->runs[i].end : len, m->runs[i].writer);
    rd_free(m->runs);
    m->runs = runs;
    m->n_runs = n;
    return true;
}

/* ---- bytes ---- */

static struct rd_slice part(const struct rd_buf *buf, size_t from, size_t to)
{
    size_t end = to < buf->len ? to : buf->len;
    return from >= end ? rd_slice(NULL, 0) : rd_slice(buf->ptr + from, end - from);
}

/* Bytes from an offset on are replaced; what is missing before them becomes zero bytes. */
static bool write_bytes(const struct follow *f, size_t at, struct rd_slice bytes)
{
    static const uint8_t zeros[256];
    struct rd_buf *buf = &f->m->bytes;
    size_t from = at < buf->len ? at : buf->len, end = at + bytes.len;
    if (bytes.len == 0)
        return true;
    const struct history_edit edit = {
        .kind = HISTORY_CHANGED, .index = at, .before = part(buf, at, end), .after = bytes};
    if (!history_follow_edit(f, &edit))
        return false;
    while (buf->len < at) {
        size_t n = at - buf->len < sizeof zeros ? at - buf->len : sizeof zeros;
        if (!rd_buf_add(buf, zeros, n))
            return rd_err_nomem(f->err, n);
    }
    if (end > buf->len && !rd_buf_reserve(buf, end - buf->len))
        return rd_err_nomem(f->err, end);
    memcpy(buf->ptr + at, bytes.ptr, bytes.len);
    buf->len = end > buf->len ? end : buf->len;
    return write_run(f, from, end, buf->len);
}

/* Bytes that are no longer there. */
static bool cut_bytes(const struct follow *f, size_t len)
{
    struct history_mirror *m = f->m;
    if (len >= m->bytes.len)
        return true;
    const struct history_edit edit = {
        .kind = HISTORY_REMOVED, .index = len, .before = part(&m->bytes, len, m->bytes.len)};
    if (!history_follow_edit(f, &edit))
        return false;
    m->bytes.len = len;
    while (m->n_runs > 0 && (m->n_runs == 1 ? 0 : m->runs[m->n_runs - 2].end) >= len)
        m->n_runs--;
    if (m->n_runs > 0)
        m->runs[m->n_runs - 1].end = len;
    return true;
}

static bool replace_all(const struct follow *f, struct rd_slice now)
{
    struct history_mirror *m = f->m;
    bool same = rd_slice_eq(rd_buf_slice(&m->bytes), now);
    const struct history_edit edit = {.kind = m->bytes.len == 0 ? HISTORY_ADDED
                                              : same            ? HISTORY_WRITTEN
                                                                : HISTORY_CHANGED,
                                      .before = rd_buf_slice(&m->bytes),
                                      .after = now};
    if ((now.len > 0 || m->bytes.len > 0) && !history_follow_edit(f, &edit))
        return false;
    rd_buf_reset(&m->bytes);
    m->n_runs = 0;
    return now.len == 0 ||
           ((rd_buf_add(&m->bytes, now.ptr, now.len) || rd_err_nomem(f->err, now.len)) &&
            write_run(f, 0, now.len, now.len));
}

/* Only what differs was written. */
static bool compare(const struct follow *f, struct rd_slice now)
{
    struct rd_buf *was = &f->m->bytes;
    if (!cut_bytes(f, now.len))
        return false;
    for (size_t i = 0; i < was->len && i < now.len;) {
        size_t from = i;
        while (i < was->len && i < now.len && was->ptr[i] != now.ptr[i])
            i++;
        if (i > from && !write_bytes(f, from, rd_slice(now.ptr + from, i - from)))
            return false;
        i += i < now.len;
    }
    return now.len <= was->len ||
           write_bytes(f, was->len, rd_slice(now.ptr + was->len, now.len - was->len));
}

/* INCR and the like write the whole string; BITFIELD writes what it names, and here what differs.
 */
static bool writes_parts(const struct follow *f)
{
    return f->line == NULL || history_follow_is(f, "bitfield") || history_follow_is(f, "pfadd");
}

static bool writes_nothing(const struct follow *f)
{
    static const char *const names[] = {"expire",  "pexpire", "expireat", "pexpireat",
                                        "persist", "getex",   "move",     "rename"};
    for (size_t i = 0; f->line != NULL && i < sizeof names / sizeof *names; i++)
        if (rebuild_line_is(f->line, names[i]))
            return true;
    return false;
}

static bool follow_all(const struct follow *f, const char *command)
{
    struct history_answer answer;
    struct rd_slice now;
    if (!history_follow_ask(f, &answer, command, ""))
        return false;
    bool ok = !history_answer_next(&answer, &now) ||
              (f->whole || !(writes_parts(f) || writes_nothing(f)) ? replace_all(f, now)
                                                                   : compare(f, now));
    history_answer_done(&answer);
    return ok;
}

/* The byte of a bit. */
static bool write_bit(const struct follow *f)
{
    struct history_answer answer;
    struct rd_slice now;
    uint64_t bit;
    char range[64];
    if (!rd_num_get_u64(f->line->argv[2], &bit))
        return true;
    snprintf(range, sizeof range, "%llu %llu", (unsigned long long)bit / 8,
             (unsigned long long)bit / 8);
    if (!history_follow_ask(f, &answer, "GETRANGE", range))
        return false;
    bool ok = !history_answer_next(&answer, &now) || write_bytes(f, (size_t)(bit / 8), now);
    history_answer_done(&answer);
    return ok;
}

static bool follow_command(const struct follow *f, bool *ret_known)
{
    uint64_t at;
    *ret_known = true;
    if (history_follow_is(f, "append"))
        return write_bytes(f, f->m->bytes.len, f->line->argv[2]);
    if (history_follow_is(f, "setrange") && rd_num_get_u64(f->line->argv[2], &at))
        return write_bytes(f, (size_t)at, f->line->argv[3]);
    if (history_follow_is(f, "setbit"))
        return write_bit(f);
    *ret_known = writes_nothing(f) && !f->whole;
    return true;
}

bool history_follow_string(const struct follow *f)
{
    uint64_t len;
    bool known;
    if (!follow_command(f, &known) || !history_follow_number(f, "STRLEN", &len))
        return false;
    return (known && len == f->m->bytes.len) || follow_all(f, "GET");
}

bool history_follow_opaque(const struct follow *f)
{
    return follow_all(f, "DUMP");
}
