/* Streams: entries by ID, and consumer groups. */
#include "history/mirror_impl.h"

#include "base/endian.h"
#include "base/mem.h"

enum { ID = 16 }; /* an ID as bytes in the order of IDs */

static bool id_bytes(struct rd_slice text, uint8_t ret[ID])
{
    const uint8_t *dash = text.len == 0 ? NULL : memchr(text.ptr, '-', text.len);
    size_t len = dash == NULL ? text.len : (size_t)(dash - text.ptr);
    uint64_t ms, seq = 0;
    if (!rd_num_get_u64(rd_slice(text.ptr, len), &ms) ||
        (dash != NULL && !rd_num_get_u64(rd_slice(dash + 1, text.len - len - 1), &seq)))
        return false;
    rd_put_be64(ret, ms);
    rd_put_be64(ret + 8, seq);
    return true;
}

/* ---- entries ---- */

/* XRANGE gives entries as ID, then an array of fields: the answer as it is, to keep them apart. */
struct entries {
    const uint8_t *p, *end;
};

static bool header(struct entries *in, char type, uint64_t *ret)
{
    const uint8_t *cr = in->p < in->end ? memchr(in->p, '\r', (size_t)(in->end - in->p)) : NULL;
    bool ok = cr != NULL && in->p[0] == (uint8_t)type &&
              rd_num_get_u64(rd_slice(in->p + 1, (size_t)(cr - in->p) - 1), ret);
    if (ok)
        in->p = cr + 2;
    return ok;
}

static bool bulk(struct entries *in, struct rd_slice *ret)
{
    uint64_t len;
    if (!header(in, '$', &len) || len > (uint64_t)(in->end - in->p))
        return false;
    *ret = rd_slice(in->p, (size_t)len);
    in->p += len + 2;
    return true;
}

static bool next_entry(struct entries *in, uint8_t id[ID], struct rd_slice *ret_fields)
{
    uint64_t two, n;
    struct rd_slice text;
    if (!header(in, '*', &two) || !bulk(in, &text) || !id_bytes(text, id) || !header(in, '*', &n))
        return false;
    const uint8_t *from = in->p;
    for (uint64_t i = 0; i < n; i++)
        if (!bulk(in, &text))
            return false;
    *ret_fields = rd_slice(from, (size_t)(in->p - from));
    return true;
}

static bool open_entries(struct history_answer *answer, struct entries *ret, uint64_t *ret_n)
{
    *ret = (struct entries){answer->reply.buf.ptr, answer->reply.buf.ptr + answer->reply.buf.len};
    return header(ret, '*', ret_n);
}

static bool follow_all_entries(const struct follow *f)
{
    struct history_seq *seq = &f->m->seq;
    struct history_answer answer;
    struct entries in;
    struct rd_slice fields;
    uint8_t id[ID];
    uint64_t n;
    size_t at = 0;
    if (!history_follow_ask(f, &answer, "XRANGE", "- +"))
        return false;
    bool ok = open_entries(&answer, &in, &n);
    for (; ok && n > 0; n--) {
        struct rd_slice name = rd_slice(id, ID);
        ok = next_entry(&in, id, &fields);
        size_t place = ok ? history_seq_search(seq, name) : at;
        if (place > at)
            ok = ok && history_follow_cut(f, at, place - at);
        bool same = at < seq->n && rd_slice_eq(history_element_name(history_seq_at(seq, at)), name);
        if (ok && same && f->whole) {
            ok = history_follow_cut(f, at, 1);
            same = false;
        }
        ok = ok && (same || history_follow_insert(f, at, name, fields));
        at++;
    }
    history_answer_done(&answer);
    return ok && (at >= seq->n || history_follow_cut(f, at, seq->n - at));
}

/* The entry that XADD made is the last one. */
static bool add_last(const struct follow *f)
{
    struct history_seq *seq = &f->m->seq;
    struct history_answer answer;
    struct entries in;
    struct rd_slice fields;
    uint8_t id[ID];
    uint64_t n;
    if (!history_follow_ask(f, &answer, "XREVRANGE", "+ - COUNT 1"))
        return false;
    bool ok = true;
    if (open_entries(&answer, &in, &n) && n == 1 && next_entry(&in, id, &fields) &&
        history_seq_search(seq, rd_slice(id, ID)) == seq->n)
        ok = history_follow_insert(f, seq->n, rd_slice(id, ID), fields);
    history_answer_done(&answer);
    return ok;
}

static bool delete_named(const struct follow *f, size_t first)
{
    struct history_seq *seq = &f->m->seq;
    for (size_t i = first; i < f->line->argc; i++) {
        uint8_t id[ID];
        if (!id_bytes(f->line->argv[i], id))
            continue;
        size_t at = history_seq_search(seq, rd_slice(id, ID));
        if (at < seq->n &&
            rd_slice_eq(history_element_name(history_seq_at(seq, at)), rd_slice(id, ID)) &&
            !history_follow_cut(f, at, 1))
            return false;
    }
    return true;
}

/* XADD and XTRIM remove the oldest entries. */
static bool trim(const struct follow *f, uint64_t len)
{
    struct history_seq *seq = &f->m->seq;
    return len >= seq->n || history_follow_cut(f, 0, seq->n - (size_t)len);
}

static bool follow_entries(const struct follow *f)
{
    bool is_add = history_follow_is(f, "xadd"), is_trim = history_follow_is(f, "xtrim");
    uint64_t len;
    if (is_add && !add_last(f))
        return false;
    if (history_follow_is(f, "xdel") && !delete_named(f, 2))
        return false;
    if (!history_follow_number(f, "XLEN", &len))
        return false;
    if ((is_add || is_trim) && !trim(f, len))
        return false;
    return (len == f->m->seq.n && !f->replaced) || follow_all_entries(f);
}

/* ---- groups ---- */

static bool concerns_groups(const struct follow *f)
{
    static const char *const names[] = {
        "xgroup|create",      "xgroup|destroy", "xgroup|setid", "xgroup|createconsumer",
        "xgroup|delconsumer", "xclaim",         "xautoclaim",   "xack",
        "xreadgroup",         "xackdel"};
    for (size_t i = 0; f->line != NULL && i < sizeof names / sizeof *names; i++)
        if (rebuild_line_is(f->line, names[i]))
            return true;
    return f->line == NULL || f->whole;
}

/* The group that a command names comes right after the key. */
static bool is_named_group(const struct follow *f, struct rd_slice name)
{
    size_t at = f->key + 1;
    return f->line != NULL && !f->whole && at < f->line->argc &&
           rd_slice_eq(f->line->argv[at], name);
}

/* "consumers 1, pending 2, last-delivered-id 5-0" */
static bool add_fact(struct rd_buf *state, struct rd_slice key, struct rd_slice value)
{
    static const char *const wanted[] = {"consumers", "pending", "last-delivered-id"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (rd_slice_is(key, wanted[i]))
            return rd_buf_printf(state, "%s%s %.*s", state->len > 0 ? ", " : "", wanted[i],
                                 (int)value.len, (const char *)value.ptr);
    return true;
}

static bool settle_group(const struct follow *f, struct rd_slice name, struct rd_buf *state)
{
    bool ok = name.ptr == NULL || history_follow_put(f, &f->m->beside, HISTORY_OF_GROUPS, name,
                                                     rd_buf_slice(state), is_named_group(f, name));
    if (ok && name.ptr != NULL)
        history_map_find(&f->m->beside, name)->mark = f->writer + 1;
    rd_buf_reset(state);
    return ok;
}

static bool take_unseen_groups(const struct follow *f)
{
    struct history_map *map = &f->m->beside;
    size_t n = map->n;
    struct history_element **sorted = history_map_sorted(map);
    bool ok = sorted != NULL || n == 0 || rd_err_nomem(f->err, n * sizeof *sorted);
    for (size_t i = 0; ok && i < n; i++)
        if (sorted[i]->mark != f->writer + 1)
            ok = history_follow_take(f, map, HISTORY_OF_GROUPS, history_element_name(sorted[i]));
    rd_free(sorted);
    return ok;
}

static bool follow_groups(const struct follow *f)
{
    const struct rd_slice argv[] = {rd_slice_str("XINFO"), rd_slice_str("GROUPS"), f->m->name};
    struct history_answer answer;
    struct rd_slice key, value, name = {0};
    struct rd_buf state = {0};
    if (!history_ask(&answer, f->data, f->m->db, 3, argv, f->err))
        return false;
    bool ok = true;
    while (ok && history_answer_next(&answer, &key) && history_answer_next(&answer, &value)) {
        if (rd_slice_is(key, "name")) {
            ok = settle_group(f, name, &state);
            name = value;
        } else
            ok = add_fact(&state, key, value) || rd_err_nomem(f->err, value.len);
    }
    ok = ok && settle_group(f, name, &state) && take_unseen_groups(f);
    history_answer_done(&answer);
    rd_buf_done(&state);
    return ok;
}

bool history_follow_stream(const struct follow *f)
{
    return follow_entries(f) && (!concerns_groups(f) || follow_groups(f));
}
