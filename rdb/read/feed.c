#include "rdb/read/reader_impl.h"

int rdb_feed_begin(struct rdb_reader *r, const struct rdb_str_head *head, uint64_t off)
{
    rdb_read_consume(r, head->size);
    r->feed = (struct feed){
        .left = head->total,
        .in_left = head->stored,
        .off = off,
        .total = head->total,
        .lzf = head->kind == RDB_STR_LZF,
        .wr = r->out,
    };
    r->feed.p = r->feed.end = r->out;
    return STEP_ON;
}

void rdb_feed_settle(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    if (f->lzf)
        return;
    uint64_t done = f->in_left - f->left - (uint64_t)(f->end - f->p);
    if (done > 0)
        rdb_read_consume(r, (size_t)done);
    f->in_left -= done;
}

/* Raw bytes are borrowed from the window; those already seen are consumed when more are needed. */
static int need_raw(struct rdb_reader *r, size_t n)
{
    struct feed *f = &r->feed;
    rdb_feed_settle(r);
    if (n > f->in_left)
        n = (size_t)f->in_left;
    if (n == 0) {
        f->p = f->end = NULL;
        return RDB_END;
    }
    struct rd_slice s;
    int st = rdb_read_need(r, n, &s);
    if (st == RDB_MORE && r->big.len == 0) {
        /* The window has moved. */
        f->end = r->src->cur + (f->end - f->p);
        f->p = r->src->cur;
    }
    if (st != RDB_EVENT)
        return st;
    if (s.len > f->in_left)
        s.len = (size_t)f->in_left;
    f->p = s.ptr;
    f->end = s.ptr + s.len;
    f->left = f->in_left - s.len;
    f->raw = s;
    return STEP_ON;
}

/* Moves the bytes that back references can reach, and those not yet seen, to the front. */
static void make_room(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    const uint8_t *keep = f->p;
    if (f->wr - r->out > RDB_LZF_REACH && f->wr - RDB_LZF_REACH < keep)
        keep = f->wr - RDB_LZF_REACH;
    else if (f->wr - r->out <= RDB_LZF_REACH)
        keep = r->out;
    size_t shift = (size_t)(keep - r->out);
    if (shift == 0)
        return;
    memmove(r->out, keep, (size_t)(f->wr - keep));
    f->wr -= shift;
    f->p -= shift;
    f->end -= shift;
}

static int decode_some(struct rdb_reader *r, uint8_t *limit)
{
    struct feed *f = &r->feed;
    struct rd_slice s;
    size_t token = f->in_left < RDB_LZF_TOKEN_IN ? (size_t)f->in_left : RDB_LZF_TOKEN_IN;
    int st = rdb_read_need(r, token, &s);
    if (st != RDB_EVENT)
        return st;
    if (s.len > f->in_left)
        s.len = (size_t)f->in_left;
    const uint8_t *in = s.ptr;
    uint8_t *out = f->wr;
    bool ok = rdb_lzf_decode_some(&in, s.ptr + s.len, r->out, &out, limit);
    size_t made = (size_t)(out - f->wr);
    size_t used = (size_t)(in - s.ptr);
    if (!ok || made > f->left || (used == 0 && made == 0))
        return rdb_read_corrupt(r, f->off, "compressed string that does not decode");
    f->left -= made;
    f->in_left -= used;
    f->wr = out;
    f->end = out;
    f->raw = rd_slice(s.ptr, used);
    rdb_read_consume(r, used);
    if (f->in_left == 0 && f->left > 0)
        return rdb_read_corrupt(r, f->off, "compressed string shorter than declared");
    if (f->in_left > 0 && f->left == 0)
        return rdb_read_corrupt(r, f->off, "compressed string longer than declared");
    return STEP_ON;
}

static int need_lzf(struct rdb_reader *r, size_t n)
{
    struct feed *f = &r->feed;
    make_room(r);
    uint8_t *limit = r->out + RDB_LZF_REACH + r->piece + 2 * RDB_LZF_TOKEN_OUT;
    while ((size_t)(f->end - f->p) < n && f->left > 0) {
        int st = decode_some(r, limit);
        if (st != STEP_ON)
            return st;
    }
    return (size_t)(f->end - f->p) < n ? RDB_END : STEP_ON;
}

int rdb_feed_need(struct rdb_reader *r, size_t n)
{
    struct feed *f = &r->feed;
    f->raw = rd_slice(NULL, 0);
    if ((size_t)(f->end - f->p) >= n)
        return STEP_ON;
    if (f->lzf)
        return need_lzf(r, n);
    int st = need_raw(r, n);
    return st == STEP_ON && (size_t)(f->end - f->p) < n ? RDB_END : st;
}

int rdb_feed_end(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    if (!f->lzf && f->in_left > 0)
        rdb_read_consume(r, (size_t)f->in_left);
    f->in_left = 0;
    return STEP_ON;
}
