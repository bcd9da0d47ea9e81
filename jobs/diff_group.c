/* What differs between two consumer groups whose counts are the same: the first pending entry that
 * is not the same on both sides, or the first that has another owner. Both sides are read at once,
 * and no list is kept. */
#include "jobs/diff_impl.h"

#include <stdio.h>

enum { SAYS_MAX = 320 };

/* One side, at an event of its group. */
struct side {
    struct rdb_event ev;
    bool ended; /* there is no more of the group */
};

static bool step(struct diff *diff, enum diff_side side, struct side *at, struct rd_err *err)
{
    struct again *in = &diff->in[side];
    if (rdb_reader_next(in->reader, &at->ev) != RDB_EVENT)
        return again_fail(in, err);
    at->ended = at->ev.kind != RDB_PENDING && at->ev.kind != RDB_CONSUMER &&
                at->ev.kind != RDB_OWNED && at->ev.kind != RDB_NACKED;
    return true;
}

/* Brings a side to what follows the GROUP event of a part. */
static bool go_to_group(struct diff *diff, const struct diff_found *found, enum diff_side side,
                        uint64_t index, struct side *at, struct rd_err *err)
{
    struct rdb_content content;
    struct rdb_event ev;
    rdb_content_init(&content, &diff->hashing);
    if (!again_seek(&diff->in[side], found->key[side].record, found->db, &ev, err))
        return false;
    do {
        if (rdb_reader_next(diff->in[side].reader, &ev) != RDB_EVENT)
            return again_fail(&diff->in[side], err);
        if (!rdb_content_put(&content, &ev, err))
            return false;
    } while (ev.kind != RDB_VALUE_END &&
             !(ev.kind == RDB_GROUP && rdb_content_parts(&content) == index + 1));
    at->ended = ev.kind == RDB_VALUE_END;
    return at->ended || step(diff, side, at, err);
}

static struct rdb_stream_id id_of(const struct rdb_event *ev)
{
    return ev->kind == RDB_PENDING ? ev->pending.id : ev->id;
}

static bool is(const struct side *at, enum rdb_event_kind kind)
{
    return !at->ended && at->ev.kind == kind;
}

static bool same(const struct rdb_event *a, const struct rdb_event *b)
{
    if (a->kind == RDB_CONSUMER)
        return rd_slice_eq(a->consumer.name, b->consumer.name);
    if (a->kind == RDB_PENDING && (a->pending.delivery_ms != b->pending.delivery_ms ||
                                   a->pending.delivery_count != b->pending.delivery_count))
        return false;
    return rdb_stream_id_cmp(id_of(a), id_of(b)) == 0;
}

/* Whether the entry where a side is, is what differs: it has the lower id. */
static bool leads(const struct side *at, const struct side *other, enum rdb_event_kind kind)
{
    return is(at, kind) &&
           (!is(other, kind) || rdb_stream_id_cmp(id_of(&at->ev), id_of(&other->ev)) <= 0);
}

static void say_pending(char *dst, const struct side *at, struct rdb_stream_id id, bool has)
{
    if (has)
        snprintf(dst, SAYS_MAX, "%llu-%llu delivered at %lld ms, count %llu; ",
                 (unsigned long long)id.ms, (unsigned long long)id.seq,
                 (long long)at->ev.pending.delivery_ms,
                 (unsigned long long)at->ev.pending.delivery_count);
    else
        snprintf(dst, SAYS_MAX, "%llu-%llu not pending; ", (unsigned long long)id.ms,
                 (unsigned long long)id.seq);
}

static void say_owner(char *dst, const char *consumer, struct rdb_stream_id id, bool has)
{
    snprintf(dst, SAYS_MAX, "%s %s %llu-%llu; ", consumer, has ? "owns" : "does not own",
             (unsigned long long)id.ms, (unsigned long long)id.seq);
}

static void say(char says[2][SAYS_MAX], const struct side at[2], const char *consumer)
{
    enum rdb_event_kind kind = RDB_NACKED;
    if (is(&at[DIFF_A], RDB_PENDING) || is(&at[DIFF_B], RDB_PENDING))
        kind = RDB_PENDING;
    else if (is(&at[DIFF_A], RDB_OWNED) || is(&at[DIFF_B], RDB_OWNED))
        kind = RDB_OWNED;
    bool has[2] = {leads(&at[DIFF_A], &at[DIFF_B], kind), leads(&at[DIFF_B], &at[DIFF_A], kind)};
    if (!has[DIFF_A] && !has[DIFF_B])
        return;
    struct rdb_stream_id id = id_of(has[DIFF_A] ? &at[DIFF_A].ev : &at[DIFF_B].ev);
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        if (kind == RDB_PENDING)
            say_pending(says[side], &at[side], id, has[side]);
        else
            say_owner(says[side], kind == RDB_OWNED ? consumer : "no consumer", id, has[side]);
    }
}

static bool put_before(struct rd_buf *text, const char *words)
{
    struct rd_buf old = *text;
    *text = (struct rd_buf){0};
    size_t len = strlen(words), room = len < DIFF_TEXT_MAX ? DIFF_TEXT_MAX - len : 0;
    bool ok = rd_buf_add(text, words, len < DIFF_TEXT_MAX ? len : DIFF_TEXT_MAX) &&
              rd_buf_add(text, old.ptr, old.len < room ? old.len : room);
    rd_buf_done(&old);
    return ok;
}

bool diff_group_texts(struct diff *diff, const struct diff_found *found, struct diff_part *part,
                      struct rd_err *err)
{
    struct side at[2] = {{.ended = false}, {.ended = false}};
    char says[2][SAYS_MAX] = {"", ""}, consumer[64] = "";
    struct rd_buf *a = &part->text[DIFF_A], *b = &part->text[DIFF_B];
    if (!part->present[DIFF_A] || !part->present[DIFF_B] ||
        !rd_slice_eq(rd_buf_slice(a), rd_buf_slice(b)))
        return true;
    for (int side = DIFF_A; side <= DIFF_B; side++)
        if (!go_to_group(diff, found, (enum diff_side)side, part->index[side], &at[side], err))
            return false;
    while (!at[DIFF_A].ended && !at[DIFF_B].ended && at[DIFF_A].ev.kind == at[DIFF_B].ev.kind &&
           same(&at[DIFF_A].ev, &at[DIFF_B].ev)) {
        if (is(&at[DIFF_A], RDB_CONSUMER))
            rd_err_quote(consumer, sizeof consumer, at[DIFF_A].ev.consumer.name);
        if (!step(diff, DIFF_A, &at[DIFF_A], err) || !step(diff, DIFF_B, &at[DIFF_B], err))
            return false;
    }
    say(says, at, consumer);
    for (int side = DIFF_A; side <= DIFF_B; side++)
        part->text_cut[side] |= part->text[side].len + strlen(says[side]) > DIFF_TEXT_MAX;
    return (put_before(a, says[DIFF_A]) && put_before(b, says[DIFF_B])) ||
           rd_err_nomem(err, DIFF_TEXT_MAX);
}
