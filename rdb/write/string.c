#include "rdb/write/write.h"

enum { SPOOL_BUFFER = 16 * 1024 };

/* The first piece of a string decides how it is written. */
static bool open_pieces(struct rdb_writer *w, const struct rdb_string *s, uint64_t held_max)
{
    struct rdb_pieces *p = &w->pieces;
    if (!s->first || s->total < s->len)
        return rdb_write_misuse(w, "a string does not begin with its first piece");
    p->open = true;
    p->is_long = s->total > held_max;
    p->total = s->total;
    p->seen = 0;
    rd_buf_reset(&p->held);
    return true;
}

static enum rdb_piece_status give_long(struct rdb_writer *w, const struct rdb_string *s,
                                       struct rd_slice *ret)
{
    *ret = rd_slice(s->ptr, s->len);
    if (s->first)
        return PIECE_FIRST;
    if (s->more)
        return PIECE_NEXT;
    w->pieces.open = false;
    return PIECE_LAST;
}

static enum rdb_piece_status hold_piece(struct rdb_writer *w, const struct rdb_string *s,
                                        struct rd_slice *ret)
{
    struct rdb_pieces *p = &w->pieces;
    if (!rd_buf_add(&p->held, s->ptr, s->len))
        return PIECE_FAIL;
    if (s->more)
        return PIECE_HELD;
    p->open = false;
    *ret = rd_buf_slice(&p->held);
    return PIECE_WHOLE;
}

enum rdb_piece_status rdb_write_piece(struct rdb_writer *w, const struct rdb_string *s,
                                      uint64_t held_max, struct rd_slice *ret)
{
    struct rdb_pieces *p = &w->pieces;
    if (!p->open && !s->more) {
        if (!s->is_int && (!s->first || s->total != s->len)) {
            rdb_write_misuse(w, "a string lacks its first pieces");
            return PIECE_FAIL;
        }
        *ret = rdb_string_bytes(s, p->digits);
        return PIECE_WHOLE;
    }
    if (!p->open ? !open_pieces(w, s, held_max) : s->first)
        goto misuse;
    if (s->is_int || s->len > p->total - p->seen)
        goto misuse;
    p->seen += s->len;
    if (!s->more && p->seen != p->total)
        goto misuse;
    return p->is_long ? give_long(w, s, ret) : hold_piece(w, s, ret);

misuse:
    rdb_write_misuse(w, "the pieces of a string do not make up its length");
    return PIECE_FAIL;
}

bool rdb_write_put_piece(struct rdb_writer *w, struct rd_sink *to, enum rdb_piece_status st,
                         struct rd_slice text)
{
    switch (st) {
    case PIECE_WHOLE:
        return rdb_put_string(&w->put, to, text);
    case PIECE_FIRST:
        return rdb_put_len(to, w->pieces.total) && rd_sink_write(to, text.ptr, text.len);
    case PIECE_NEXT:
    case PIECE_LAST:
        return rd_sink_write(to, text.ptr, text.len);
    case PIECE_HELD:
        return true;
    case PIECE_FAIL:
        break;
    }
    return false;
}

bool rdb_write_string(struct rdb_writer *w, struct rd_sink *to, const struct rdb_string *s,
                      bool *ret_ends)
{
    struct rd_slice text = {0};
    enum rdb_piece_status st = rdb_write_piece(w, s, PIECES_HELD_MAX, &text);
    if (!rdb_write_put_piece(w, to, st, text))
        return false;
    *ret_ends = rdb_write_piece_ends(st);
    return true;
}

bool rdb_spool_begin(struct rdb_writer *w, struct rdb_write_spool *spool)
{
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = SPOOL_BUFFER);
    if (spool->sink == NULL)
        return rd_sink_open_buf(&spool->sink, &spool->buf, &opts, &w->err);
    if (!rd_sink_flush(spool->sink))
        return false;
    if (spool->buf.cap > SPOOL_KEPT)
        rd_buf_done(&spool->buf);
    rd_buf_reset(&spool->buf);
    return true;
}

bool rdb_spool_bytes(struct rdb_write_spool *spool, struct rd_slice *ret)
{
    if (!rd_sink_flush(spool->sink))
        return false;
    *ret = rd_buf_slice(&spool->buf);
    return true;
}

bool rdb_spool_move(struct rdb_write_spool *spool, struct rd_sink *to)
{
    struct rd_slice bytes;
    return rdb_spool_bytes(spool, &bytes) && rd_sink_write(to, bytes.ptr, bytes.len);
}

void rdb_spool_done(struct rdb_write_spool *spool)
{
    if (spool->sink != NULL)
        rd_sink_abort(spool->sink);
    spool->sink = NULL;
    rd_buf_done(&spool->buf);
}
