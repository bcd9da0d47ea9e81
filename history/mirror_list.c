/* Lists: positions are followed through pushes, pops, inserts and trims. */
#include "history/mirror_impl.h"

static const struct rd_slice no_name = {0};

static bool push(const struct follow *f, size_t at, struct rd_slice content)
{
    return history_follow_insert(f, at, no_name, content);
}

static size_t count_of(const struct follow *f, size_t i, size_t otherwise)
{
    uint64_t n;
    if (i >= f->line->argc || !rd_num_get_u64(f->line->argv[i], &n))
        return otherwise;
    return n < f->m->seq.n ? (size_t)n : f->m->seq.n;
}

static bool follow_push(const struct follow *f, bool at_head)
{
    bool ok = true;
    for (size_t i = 2; ok && i < f->line->argc; i++)
        ok = push(f, at_head ? 0 : f->m->seq.n, f->line->argv[i]);
    return ok;
}

static bool follow_pop(const struct follow *f, bool at_head, size_t n)
{
    size_t len = f->m->seq.n;
    n = n < len ? n : len;
    return n == 0 || history_follow_cut(f, at_head ? 0 : len - n, n);
}

static bool read_element(const struct follow *f, const char *index, struct rd_buf *ret)
{
    struct history_answer answer;
    struct rd_slice text;
    if (!history_follow_ask(f, &answer, "LINDEX", index))
        return false;
    bool ok = history_answer_next(&answer, &text) && text.ptr != NULL &&
              rd_buf_add(ret, text.ptr, text.len);
    history_answer_done(&answer);
    return ok || rd_err_set(f->err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "no such element");
}

static bool push_moved(const struct follow *f, bool at_head)
{
    struct rd_buf element = {0};
    bool ok = read_element(f, at_head ? "0" : "-1", &element) &&
              push(f, at_head ? 0 : f->m->seq.n, rd_buf_slice(&element));
    rd_buf_done(&element);
    return ok;
}

/* RPOPLPUSH and LMOVE, on the key that gives, the one that takes, or both. */
static bool follow_lmove(const struct follow *f, bool from_head, bool to_head)
{
    const struct rd_slice *argv = f->line->argv;
    bool gives = rd_slice_eq(argv[1], f->m->name), takes = rd_slice_eq(argv[2], f->m->name);
    if (gives && takes && f->key != 1)
        return true; /* both were done for the first key */
    return (!gives || f->key != 1 || follow_pop(f, from_head, 1)) &&
           (!takes || push_moved(f, to_head));
}

static bool follow_set(const struct follow *f)
{
    struct history_seq *seq = &f->m->seq;
    int64_t i;
    if (!rd_num_get_i64(f->line->argv[2], &i))
        return true;
    i = i < 0 ? i + (int64_t)seq->n : i;
    if (i < 0 || i >= (int64_t)seq->n)
        return true;
    const struct history_element *e = history_seq_at(seq, (size_t)i);
    struct rd_slice content = f->line->argv[3];
    bool same = rd_slice_eq(history_element_content(e), content);
    const struct history_edit edit = {.kind = same ? HISTORY_WRITTEN : HISTORY_CHANGED,
                                      .index = (uint64_t)i,
                                      .before = history_element_content(e),
                                      .after = content};
    if (!history_follow_edit(f, &edit))
        return false;
    history_seq_remove(seq, (size_t)i, 1);
    return history_seq_insert(seq, (size_t)i, no_name, content, f->writer, f->err);
}

static bool follow_linsert(const struct follow *f)
{
    const struct rd_slice *argv = f->line->argv;
    bool after = rebuild_line_arg_is(f->line, 2, "after");
    for (size_t i = 0; i < f->m->seq.n; i++)
        if (rd_slice_eq(history_element_content(history_seq_at(&f->m->seq, i)), argv[3]))
            return push(f, i + after, argv[4]);
    return true;
}

static bool follow_lrem(const struct follow *f)
{
    struct history_seq *seq = &f->m->seq;
    int64_t count;
    if (!rd_num_get_i64(f->line->argv[2], &count))
        return true;
    bool backward = count < 0;
    uint64_t left = count == 0 ? UINT64_MAX : backward ? 0 - (uint64_t)count : (uint64_t)count;
    for (size_t seen = 0, n = seq->n, at = backward ? n : 0; seen < n && left > 0; seen++) {
        if (backward)
            at--;
        if (!rd_slice_eq(history_element_content(history_seq_at(seq, at)), f->line->argv[3])) {
            at += !backward;
            continue;
        }
        if (!history_follow_cut(f, at, 1))
            return false;
        left--;
    }
    return true;
}

static bool follow_trim(const struct follow *f)
{
    int64_t start, stop, n = (int64_t)f->m->seq.n;
    if (!rd_num_get_i64(f->line->argv[2], &start) || !rd_num_get_i64(f->line->argv[3], &stop))
        return true;
    start = start < 0 ? start + n : start;
    stop = stop < 0 ? stop + n : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= n ? n - 1 : stop;
    if (start > stop || start >= n)
        return history_follow_cut(f, 0, f->m->seq.n);
    return (stop == n - 1 || history_follow_cut(f, (size_t)stop + 1, (size_t)(n - 1 - stop))) &&
           (start == 0 || history_follow_cut(f, 0, (size_t)start));
}

static bool follow_command(const struct follow *f)
{
    size_t one = f->line->argc > 2 ? 0 : 1;
    if (history_follow_is(f, "rpush") || history_follow_is(f, "rpushx"))
        return follow_push(f, false);
    if (history_follow_is(f, "lpush") || history_follow_is(f, "lpushx"))
        return follow_push(f, true);
    if (history_follow_is(f, "lpop") || history_follow_is(f, "rpop"))
        return follow_pop(f, history_follow_is(f, "lpop"), one ? 1 : count_of(f, 2, 1));
    if (history_follow_is(f, "rpoplpush") || history_follow_is(f, "brpoplpush"))
        return follow_lmove(f, false, true);
    if (history_follow_is(f, "lmove") || history_follow_is(f, "blmove"))
        return follow_lmove(f, rebuild_line_arg_is(f->line, 3, "left"),
                            rebuild_line_arg_is(f->line, 4, "left"));
    if (history_follow_is(f, "lset"))
        return follow_set(f);
    if (history_follow_is(f, "linsert"))
        return follow_linsert(f);
    if (history_follow_is(f, "lrem"))
        return follow_lrem(f);
    if (history_follow_is(f, "ltrim"))
        return follow_trim(f);
    return true;
}

/* ---- all of it ---- */

/* What is the same at both ends stays; what is between is new. */
static bool compare(const struct follow *f, struct history_answer *answer, size_t n)
{
    struct history_seq *seq = &f->m->seq;
    struct rd_slice *now = history_answer_list(answer, n, f->err);
    size_t head = 0, tail = 0;
    if (now == NULL)
        return false;
    while (!f->whole && head < n && head < seq->n &&
           rd_slice_eq(history_element_content(history_seq_at(seq, head)), now[head]))
        head++;
    while (!f->whole && tail < n - head && tail < seq->n - head &&
           rd_slice_eq(history_element_content(history_seq_at(seq, seq->n - 1 - tail)),
                       now[n - 1 - tail]))
        tail++;
    bool ok = seq->n == head + tail || history_follow_cut(f, head, seq->n - head - tail);
    for (size_t i = head; ok && i < n - tail; i++)
        ok = push(f, i, now[i]);
    history_answer_list_done(now);
    return ok;
}

static bool follow_all(const struct follow *f, uint64_t n)
{
    struct history_answer answer;
    if (!history_follow_ask(f, &answer, "LRANGE", "0 -1"))
        return false;
    bool ok = compare(f, &answer, (size_t)n);
    history_answer_done(&answer);
    return ok;
}

/* A command that made the list is followed like any other if it says what is in it. */
bool history_follow_list(const struct follow *f)
{
    uint64_t n;
    bool said = f->line != NULL && !f->replaced;
    size_t was = f->m->seq.n;
    if (said && !follow_command(f))
        return false;
    if (!history_follow_number(f, "LLEN", &n))
        return false;
    bool followed = said && (f->m->seq.n != was || !f->whole);
    return (followed && n == f->m->seq.n) || follow_all(f, n);
}
