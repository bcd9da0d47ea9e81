/* input.c - access to the input, and errors with their context. */
#include "rdb/read/reader_impl.h"

static int from_src(struct rdb_reader *r, enum rd_src_status st, struct rd_slice have)
{
    switch (st) {
    case RD_SRC_OK:
        return RDB_EVENT;
    case RD_SRC_MORE:
        return RDB_MORE;
    case RD_SRC_END:
        return rdb_read_fail(r, RD_ERR_TRUNCATED, rd_src_offset(r->src) + have.len,
                             rd_src_offset(r->src) + have.len > 0 ? "the input ends here"
                                                                  : "the input is empty");
    case RD_SRC_FAIL:
        break;
    }
    rd_err_adopt(&r->err, rd_src_err(r->src));
    return RDB_FAIL;
}

static bool tee(struct rdb_reader *r, const uint8_t *p, size_t n)
{
    if (r->tee == NULL || rd_sink_write(r->tee, p, n))
        return true;
    rd_err_adopt(&r->err, rd_sink_err(r->tee));
    return false;
}

/* Collects n bytes that do not fit in the window in r->big. They are consumed from the source as
 * they arrive, so that it can read more. */
static int gather(struct rdb_reader *r, uint64_t n, struct rd_slice *ret)
{
    if (n > r->opts.max_name + 64)
        return rdb_read_fail(r, RD_ERR_LIMIT, rdb_read_offset(r), "name longer than the limit");
    while (r->big.len < n) {
        struct rd_slice s;
        int st = from_src(r, rd_src_need(r->src, 1, &s), rd_slice(NULL, 0));
        if (st != RDB_EVENT)
            return st;
        size_t take = s.len < n - r->big.len ? s.len : (size_t)(n - r->big.len);
        if (!rd_buf_add(&r->big, s.ptr, take))
            return rdb_read_nomem(r, take);
        if (!tee(r, s.ptr, take))
            return RDB_FAIL;
        rd_src_consume(r->src, take);
    }
    *ret = rd_buf_slice(&r->big);
    return RDB_EVENT;
}

int rdb_read_need_slow(struct rdb_reader *r, uint64_t n, struct rd_slice *ret)
{
    /* The window is about to move: first finishes everything that points into it. */
    bool gathers = r->big.len > 0 || n > rd_src_window(r->src);
    if (r->batch != NULL && (gathers ? rdb_batch_run(r) : rdb_batch_turn(r)) == RDB_FAIL)
        return RDB_FAIL;
    if (gathers)
        return gather(r, n, ret);
    struct rd_slice s = {0};
    int st = from_src(r, rd_src_need(r->src, (size_t)n, &s), s);
    if (st == RDB_EVENT)
        *ret = s;
    else if (st == RDB_FAIL && r->err.code == RD_ERR_TRUNCATED)
        r->err.offset = rd_src_offset(r->src) + rd_src_avail(r->src);
    return st;
}

void rdb_read_consume_slow(struct rdb_reader *r, size_t n)
{
    if (r->big.len > 0) {
        /* Exactly the requested bytes were collected, and all of them are used. */
        rd_buf_reset(&r->big);
        return;
    }
    (void)tee(r, r->src->cur, n);
    rd_src_consume(r->src, n);
}

static void add_context(struct rdb_reader *r)
{
    char key[RD_ERR_TEXT_MAX];
    if (r->type == NULL)
        return;
    const char *kind = rdb_kind_name(r->type->kind);
    rd_err_quote(key, sizeof key - 60, rd_slice(r->shown, r->shown_len));
    if (r->single)
        rd_err_doing(&r->err, "element %llu of a %s value", (unsigned long long)r->n_elems, kind);
    else
        rd_err_doing(&r->err, "element %llu of %s %s in db %llu", (unsigned long long)r->n_elems,
                     kind, key, (unsigned long long)r->db);
}

int rdb_read_fail(struct rdb_reader *r, enum rd_err_code code, uint64_t off, const char *what)
{
    rd_err_set(&r->err, code, off, "%s", what);
    rd_err_origin(&r->err, rd_src_origin(r->src));
    add_context(r);
    return RDB_FAIL;
}

int rdb_read_corrupt(struct rdb_reader *r, uint64_t off, const char *what)
{
    return rdb_read_fail(r, RD_ERR_CORRUPT, off, what);
}

int rdb_read_corrupt_in(struct rdb_reader *r, uint64_t off, uint64_t inner, const char *what)
{
    rd_err_set_inner(&r->err, RD_ERR_CORRUPT, off, inner, "%s", what);
    return rdb_read_corrupt(r, off, what);
}

int rdb_read_nomem(struct rdb_reader *r, size_t size)
{
    rd_err_nomem(&r->err, size);
    return RDB_FAIL;
}

void rdb_read_note(struct rdb_reader *r, enum rdb_note_id id, uint64_t off, uint64_t inner,
                   uint64_t detail, const char *text)
{
    if (!r->opts.notes || r->note_set)
        return;
    r->note_set = true;
    r->note = (struct rdb_event){.kind = RDB_NOTE, .offset = off, .inner = inner};
    r->note.note.id = id;
    r->note.note.detail = detail;
    r->note.note.text = text;
    r->note.note.key = rd_slice(r->shown, r->type != NULL ? r->shown_len : 0);
    r->note.note.type = r->type;
    r->note.note.db = r->db;
    r->note.note.record = r->record;
}

bool rdb_cur_len(struct cur *c, uint64_t *ret)
{
    size_t size;
    switch (rdb_len_parse(c->p, (size_t)(c->end - c->p), ret, &size)) {
    case RDB_PARSE_OK:
        c->p += size;
        return true;
    case RDB_PARSE_WANT:
        c->want = (uint64_t)(c->p - c->base) + size;
        return false;
    case RDB_PARSE_BAD:
        break;
    }
    return rdb_cur_refuse(c, c->p, CUR_DAMAGED, "not a length");
}

bool rdb_cur_u64le(struct cur *c, uint64_t *ret)
{
    const uint8_t *p;
    if (!cur_take(c, 8, &p))
        return false;
    *ret = rd_get_le64(p);
    return true;
}

bool rdb_cur_id(struct cur *c, struct rdb_stream_id *ret)
{
    const uint8_t *p;
    if (!cur_take(c, 16, &p))
        return false;
    *ret = (struct rdb_stream_id){rd_get_be64(p), rd_get_be64(p + 8)};
    return true;
}

bool rdb_cur_len_id(struct cur *c, struct rdb_stream_id *ret)
{
    return rdb_cur_len(c, &ret->ms) && rdb_cur_len(c, &ret->seq);
}

static const char name_too_long[] = "name longer than the limit";
static const char no_memory[] = "out of memory";

/* The string begins at `at`. */
static bool decode_name(struct rdb_reader *r, struct cur *c, const uint8_t *at,
                        const struct rdb_str_head *head, struct rd_buf *buf)
{
    const uint8_t *stored = at + head->size;
    if (head->total > r->opts.max_name)
        return rdb_cur_refuse(c, at, CUR_LIMIT, name_too_long);
    rd_buf_reset(buf);
    if (!rd_buf_reserve(buf, (size_t)head->total + RDB_LZF_SLACK))
        return rdb_cur_refuse(c, at, CUR_NO_MEMORY, no_memory);
    buf->len = (size_t)head->total;
    return rdb_lzf_decode(stored, (size_t)head->stored, buf->ptr, buf->len) ||
           rdb_cur_refuse(c, at, CUR_DAMAGED, "compressed string that does not decode");
}

bool rdb_cur_str(struct rdb_reader *r, struct cur *c, struct rd_buf *buf, struct rd_slice *ret)
{
    struct rdb_str_head head;
    enum rdb_parse rc = rdb_str_head_parse(c->p, (size_t)(c->end - c->p), &head);
    if (rc == RDB_PARSE_WANT) {
        c->want = (uint64_t)(c->p - c->base) + head.size;
        return false;
    }
    if (rc != RDB_PARSE_OK)
        return rdb_cur_refuse(c, c->p, CUR_DAMAGED, "not a string");
    if (head.kind == RDB_STR_INT) {
        rd_buf_reset(buf);
        if (!rd_buf_reserve(buf, RD_NUM_I64_MAX))
            return rdb_cur_refuse(c, c->p, CUR_NO_MEMORY, no_memory);
        buf->len = rd_num_put_i64((char *)buf->ptr, head.num);
        *ret = rd_buf_slice(buf);
        c->p += head.size;
        return true;
    }
    if (head.stored > r->opts.max_name)
        return rdb_cur_refuse(c, c->p, CUR_LIMIT, name_too_long);
    if (head.kind == RDB_STR_LZF && !rdb_lzf_possible(head.stored, head.total))
        return rdb_cur_refuse(c, c->p, CUR_DAMAGED, "compressed string that cannot be that long");
    const uint8_t *all;
    if (!cur_take(c, head.size + head.stored, &all))
        return false;
    *ret = rd_slice(all + head.size, (size_t)head.stored);
    if (head.kind == RDB_STR_RAW)
        return true;
    if (!decode_name(r, c, all, &head, buf))
        return false;
    *ret = rd_buf_slice(buf);
    return true;
}

int rdb_read_retry(struct rdb_reader *r, const struct cur *c, struct rd_slice *s)
{
    static const enum rd_err_code codes[] = {[CUR_DAMAGED] = RD_ERR_CORRUPT,
                                             [CUR_LIMIT] = RD_ERR_LIMIT,
                                             [CUR_NO_MEMORY] = RD_ERR_MEMORY,
                                             [CUR_UNKNOWN] = RD_ERR_CORRUPT,
                                             [CUR_APART] = RD_ERR_CORRUPT};
    if (c->want == 0)
        return rdb_read_fail(r, codes[c->cause], rdb_read_offset(r) + (uint64_t)(c->p - c->base),
                             c->why);
    int st = rdb_read_need(r, c->want, s);
    return st == RDB_EVENT ? STEP_ON : st;
}
