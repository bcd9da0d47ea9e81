#include "rdb/commands/commands_impl.h"

bool rdb_cmd_bulk(struct rd_buf *buf, struct rd_slice text)
{
    if (text.len > SIZE_MAX - CMD_AROUND || !rdb_cmd_room(buf, text.len + CMD_AROUND))
        return false;
    rdb_cmd_bulk_fast(buf, text);
    return true;
}

bool rdb_cmd_bulk_str(struct rd_buf *buf, const char *text)
{
    return rdb_cmd_bulk(buf, rd_slice_str(text));
}

bool rdb_cmd_bulk_i64(struct rd_buf *buf, int64_t v)
{
    char digits[RD_NUM_I64_MAX];
    return rdb_cmd_bulk(buf, rd_slice(digits, rd_num_put_i64(digits, v)));
}

bool rdb_cmd_bulk_u64(struct rd_buf *buf, uint64_t v)
{
    char digits[RD_NUM_I64_MAX];
    return rdb_cmd_bulk(buf, rd_slice(digits, rd_num_put_u64(digits, v)));
}

bool rdb_cmd_bulk_id(struct rd_buf *buf, struct rdb_stream_id id)
{
    char text[2 * RD_NUM_I64_MAX + 1];
    size_t len = rd_num_put_u64(text, id.ms);
    text[len++] = '-';
    len += rd_num_put_u64(text + len, id.seq);
    return rdb_cmd_bulk(buf, rd_slice(text, len));
}

bool rdb_cmd_head(struct rd_buf *buf, size_t n_args, const char *verb)
{
    if (!rdb_cmd_room(buf, CMD_AROUND))
        return false;
    uint8_t *from = buf->ptr + buf->len;
    uint8_t *to = rdb_cmd_bulk_head(from, n_args);
    *from = '*';
    buf->len += (size_t)(to - from);
    return rd_buf_add(buf, verb, strlen(verb));
}

bool rdb_cmd_add(struct rd_buf *buf, const struct rd_buf *bytes)
{
    return rd_buf_add(buf, bytes->ptr, bytes->len);
}

bool rdb_cmd_head_key(struct rdb_commands *c, size_t n_args, const char *verb)
{
    return rdb_cmd_head(&c->out, n_args, verb) && rdb_cmd_add(&c->out, &c->key);
}

bool rdb_cmd_piece(struct rdb_commands *c, const struct rdb_string *s, bool *ret_ends)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(s, digits);
    *ret_ends = !s->more;
    if (RD_LIKELY(s->first && !s->more))
        return rdb_cmd_bulk(&c->out, piece);
    if (s->first) {
        if (!rdb_cmd_room(&c->out, CMD_AROUND))
            return false;
        c->out.len = (size_t)(rdb_cmd_bulk_head(c->out.ptr + c->out.len, s->total) - c->out.ptr);
    }
    return rd_buf_add(&c->out, piece.ptr, piece.len) &&
           (s->more || rd_buf_add(&c->out, "\r\n", 2)) && rdb_cmd_flush(c, CMD_FLUSH);
}

bool rdb_cmd_flush(struct rdb_commands *c, size_t least)
{
    if (RD_LIKELY(c->out.len < least))
        return true;
    bool ok = rd_sink_write(c->sink, c->out.ptr, c->out.len);
    if (c->out.cap > CMD_KEPT)
        rd_buf_done(&c->out);
    rd_buf_reset(&c->out);
    return ok;
}
