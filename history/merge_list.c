/* Lists: the region that the commands changed, and the region that changed since. */
#include "history/merge_impl.h"

static const struct history_seq empty;

static const struct history_seq *seq_of(const struct history_mirror *m)
{
    return history_is_there(m) ? &m->seq : &empty;
}

static struct rd_slice at(const struct history_seq *seq, size_t i)
{
    return history_element_content(history_seq_at(seq, i));
}

/* What differs between two lists: [from, to) of the first has become [from, new_to) of the second.
 */
struct region {
    size_t from, to, new_to;
};

static struct region difference(const struct history_seq *a, const struct history_seq *b)
{
    size_t head = 0, tail = 0;
    while (head < a->n && head < b->n && rd_slice_eq(at(a, head), at(b, head)))
        head++;
    while (tail < a->n - head && tail < b->n - head &&
           rd_slice_eq(at(a, a->n - 1 - tail), at(b, b->n - 1 - tail)))
        tail++;
    return (struct region){head, a->n - tail, b->n - tail};
}

/* The elements that a list has in a region: copies into the commands. */
static bool push(const struct history_merge *m, const struct history_seq *seq, size_t from,
                 size_t to, struct history_commands *commands)
{
    enum { MANY = 256 };
    struct rd_slice words[MANY];
    while (from < to) {
        size_t n = 0;
        while (n < MANY && from < to)
            words[n++] = at(seq, from++);
        if (!history_merge_put(m, commands, "RPUSH", words, n))
            return false;
    }
    return true;
}

static bool put_expiry(const struct history_merge *m, struct history_commands *to)
{
    return !history_is_there(m->now) || history_merge_put_expiry(m, m->now->expire_ms, to);
}

/* The present list, in which the region that the commands changed is what it was. `ours` is from
 * the list after the commands to the one before, `theirs` from it to the present one. */
static bool rewrite(struct history_merge *m, struct region ours, struct region theirs)
{
    const struct history_seq *now = seq_of(m->now), *before = seq_of(m->before);
    struct history_commands *to = &m->redo;
    /* Where the region is in the present list. */
    size_t shift = ours.from >= theirs.to ? theirs.new_to - theirs.to : 0;
    size_t from = ours.from + shift, end = ours.to + shift;
    m->changes++;
    return history_merge_put(m, to, "DEL", NULL, 0) && push(m, now, 0, from, to) &&
           push(m, before, ours.from, ours.new_to, to) && push(m, now, end, now->n, to) &&
           put_expiry(m, to) && history_merge_put(m, &m->back, "DEL", NULL, 0) &&
           push(m, now, 0, now->n, &m->back) && put_expiry(m, &m->back);
}

bool history_merge_list(struct history_merge *m, struct rd_err *err)
{
    struct region ours = difference(seq_of(m->after), seq_of(m->before));
    struct region theirs = difference(seq_of(m->after), seq_of(m->now));
    /* Where one ends the other may begin: their order is known, unless nothing is between. */
    bool apart = ours.to <= theirs.from || theirs.to <= ours.from;
    bool same_place = ours.from == ours.to && theirs.from == theirs.to && ours.from == theirs.from;
    bool unchanged = theirs.from == theirs.to && theirs.from == theirs.new_to;
    if ((apart && !same_place) || unchanged)
        return rewrite(m, ours, theirs) || rd_err_nomem(err, 0);
    return history_merge_whole(m, err);
}
