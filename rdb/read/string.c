#include "rdb/read/reader_impl.h"

static const char bad_lzf[] = "compressed string that does not decode";

/* The header of the string at the current position, in *s. STEP_ON: *ret. */
static int head_at(struct rdb_reader *r, size_t at, struct rdb_str_head *ret, struct rd_slice *s)
{
    int st = rdb_read_need(r, at + 1, s);
    while (st == RDB_EVENT) {
        switch (rdb_str_head_parse(s->ptr + at, s->len - at, ret)) {
        case RDB_PARSE_OK:
            if (ret->kind == RDB_STR_LZF && !rdb_lzf_possible(ret->stored, ret->total))
                return rdb_read_corrupt(r, rdb_read_offset(r) + at,
                                        "compressed string of impossible length");
            return STEP_ON;
        case RDB_PARSE_WANT:
            st = rdb_read_need(r, at + ret->size, s);
            break;
        case RDB_PARSE_BAD:
            return rdb_read_corrupt(r, rdb_read_offset(r) + at, "not a string");
        }
    }
    return st;
}

static bool is_short(const struct rdb_reader *r, const struct rdb_str_head *head)
{
    return head->stored <= r->piece && head->total <= r->piece;
}

/* The score of type 3: a length byte and digits, or 253 nan, 254 inf, 255 -inf. */
static bool text_score(const uint8_t *p, size_t have, size_t *ret_size, double *ret, bool *ret_bad)
{
    *ret_bad = false;
    *ret_size = 1;
    if (have == 0)
        return false;
    if (p[0] >= 253) {
        *ret = p[0] == 253 ? __builtin_nan("") : p[0] == 254 ? __builtin_inf() : -__builtin_inf();
        return true;
    }
    *ret_size = 1u + p[0];
    if (have < *ret_size)
        return false;
    *ret = 0;
    *ret_bad = !rd_num_get_f64(rd_slice(p + 1, p[0]), ret);
    return true;
}

/* Parses the tail of the string at s[at]. STEP_ON: *size bytes; the event has the result. */
static int tail_at(struct rdb_reader *r, size_t at, enum tail tail, struct rd_slice *s,
                   size_t *ret_size, struct rdb_event *ev)
{
    *ret_size = 0;
    if (tail == TAIL_NONE)
        return STEP_ON;
    if (tail != TAIL_SCORE_TEXT) {
        int st = rdb_read_need(r, at + 8, s);
        if (st != RDB_EVENT)
            return st;
        *ret_size = 8;
        if (tail == TAIL_SCORE)
            ev->elem.score = rd_get_le_f64(s->ptr + at);
        else if ((int64_t)rd_get_le64(s->ptr + at) >= 0)
            ev->elem.expire_ms = (int64_t)rd_get_le64(s->ptr + at);
    } else {
        bool bad;
        while (!text_score(s->ptr + at, s->len - at, ret_size, &ev->elem.score, &bad)) {
            int st = rdb_read_need(r, at + *ret_size, s);
            if (st != RDB_EVENT)
                return st;
        }
        if (bad)
            rdb_read_note(r, RDB_NOTE_BAD_SCORE, rdb_read_offset(r) + at, RD_NO_OFFSET, r->n_elems,
                          "score that is not a number");
    }
    if (tail != TAIL_EXPIRE && ev->elem.score != ev->elem.score)
        rdb_read_note(r, RDB_NOTE_NAN_SCORE, rdb_read_offset(r) + at, RD_NO_OFFSET, r->n_elems,
                      "score that is not a number (nan)");
    return STEP_ON;
}

static void begin_event(struct rdb_reader *r, enum rdb_event_kind kind, struct rdb_event *ev)
{
    ev->kind = kind;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(NULL, 0);
}

static struct rdb_string *string_of(struct rdb_reader *r, struct rdb_event *ev)
{
    if (ev->kind == RDB_AUX) {
        ev->aux.name = rd_buf_slice(&r->text);
        return &ev->aux.value;
    }
    if (ev->kind == RDB_FUNCTION) {
        ev->function.pre_ga = false;
        return &ev->function.code;
    }
    if (ev->kind == RDB_MODULE_ITEM) {
        ev->item.opcode = RDB_MODULE_STRING;
        return &ev->item.str;
    }
    ev->elem.role = r->pieces.role;
    ev->elem.expire_ms = r->field_expire;
    ev->elem.index = r->index;
    return &ev->elem.str;
}

/* The whole string after `head`, which is complete in s at `at`. */
static int whole(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                 uint64_t off, struct rdb_string *ret)
{
    ret->is_int = head->kind == RDB_STR_INT;
    ret->more = false;
    ret->first = true;
    ret->num = head->num;
    ret->total = head->total;
    ret->len = (size_t)head->total;
    ret->ptr = stored;
    if (head->kind == RDB_STR_LZF) {
        if (!rdb_lzf_decode(stored, (size_t)head->stored, r->out, ret->len))
            return rdb_read_corrupt(r, off, bad_lzf);
        ret->ptr = r->out;
    }
    return STEP_ON;
}

static int begin_pieces(struct rdb_reader *r, const struct rdb_str_head *head, uint64_t off,
                        enum rdb_event_kind kind, enum tail tail)
{
    r->pieces.active = true;
    r->pieces.first = true;
    r->pieces.tail = (uint8_t)tail;
    r->pieces.kind = kind;
    r->pieces.total = head->total;
    return rdb_feed_begin(r, head, off);
}

int rdb_read_string(struct rdb_reader *r, enum rdb_event_kind kind, enum rdb_role role,
                    enum tail tail, struct rdb_event *ev)
{
    struct rdb_str_head head;
    struct rd_slice s;
    int st = head_at(r, 0, &head, &s);
    if (st != STEP_ON)
        return st;
    uint64_t off = rdb_read_offset(r);
    r->pieces.role = role;
    if (!is_short(r, &head)) {
        begin_pieces(r, &head, off, kind, tail);
        return rdb_read_piece(r, ev);
    }
    size_t size = head.size + (size_t)head.stored;
    st = rdb_read_need(r, size, &s);
    if (st != RDB_EVENT)
        return st;
    begin_event(r, kind, ev);
    struct rdb_string *str = string_of(r, ev);
    size_t tail_size;
    st = tail_at(r, size, tail, &s, &tail_size, ev);
    if (st == STEP_ON)
        st = whole(r, &head, s.ptr + head.size, off, str);
    if (st != STEP_ON)
        return st;
    rdb_read_consume(r, size + tail_size);
    return RDB_EVENT;
}

/* The last piece and the tail are returned together, so both must be in the window. */
static int piece_tail(struct rdb_reader *r, size_t n, size_t *ret_size, struct rdb_event *ev)
{
    struct feed *f = &r->feed;
    struct rd_slice s;
    size_t at = f->lzf ? 0 : n;
    int st = rdb_read_need(r, at + 1, &s);
    if (st == RDB_EVENT)
        st = tail_at(r, at, (enum tail)r->pieces.tail, &s, ret_size, ev);
    if (st == STEP_ON && !f->lzf) {
        f->p = s.ptr;
        f->end = s.ptr + n;
    }
    return st;
}

int rdb_read_piece(struct rdb_reader *r, struct rdb_event *ev)
{
    struct feed *f = &r->feed;
    rdb_feed_settle(r);
    int st = rdb_feed_need(r, 1);
    if (st != STEP_ON && st != RDB_END)
        return st;
    begin_event(r, r->pieces.kind, ev);
    if (r->pieces.kind == RDB_ELEM)
        ev->offset = f->off; /* offset of the string, for every piece */
    struct rdb_string *str = string_of(r, ev);
    size_t n = (size_t)(f->end - f->p);
    if (n > r->piece)
        n = r->piece;
    bool last = f->left == 0 && n == (size_t)(f->end - f->p);
    size_t tail_size = 0;
    if (last && r->pieces.tail != TAIL_NONE) {
        st = piece_tail(r, n, &tail_size, ev);
        if (st != STEP_ON)
            return st;
    }
    *str = (struct rdb_string){
        .ptr = f->p, .len = n, .total = r->pieces.total, .first = r->pieces.first, .more = !last};
    if (r->pieces.kind != RDB_ELEM)
        ev->raw = f->lzf ? f->raw : rd_slice(f->p, n);
    f->p += n;
    r->pieces.first = false;
    if (last) {
        r->pieces.active = false;
        rdb_feed_end(r);
        rdb_read_consume(r, tail_size);
    }
    return RDB_EVENT;
}

/* AUX and FUNCTION are outside values, and a caller that copies a file needs their bytes: the event
 * of a short one has all bytes. A long one begins with an empty piece that has the bytes before the
 * string. */
int rdb_read_prefixed(struct rdb_reader *r, enum rdb_event_kind kind, size_t prefix,
                      struct rdb_event *ev)
{
    struct rdb_str_head head;
    struct rd_slice s;
    int st = head_at(r, prefix, &head, &s);
    if (st != STEP_ON)
        return st;
    uint64_t off = rdb_read_offset(r) + prefix;
    size_t size = prefix + head.size;
    bool fits = is_short(r, &head) && size + head.stored <= 4 * r->piece;
    if (fits) {
        size += (size_t)head.stored;
        st = rdb_read_need(r, size, &s);
        if (st != RDB_EVENT)
            return st;
    }
    begin_event(r, kind, ev);
    struct rdb_string *str = string_of(r, ev);
    ev->raw = rd_slice(s.ptr, size);
    if (fits) {
        st = whole(r, &head, s.ptr + prefix + head.size, off, str);
        if (st != STEP_ON)
            return st;
        rdb_read_consume(r, size);
        return RDB_EVENT;
    }
    *str = (struct rdb_string){.ptr = s.ptr, .total = head.total, .first = true, .more = true};
    rdb_read_consume(r, prefix);
    begin_pieces(r, &head, off, kind, TAIL_NONE);
    r->pieces.first = false;
    return RDB_EVENT;
}

int rdb_read_pass_rest(struct rdb_reader *r)
{
    while (r->pass_left > 0) {
        struct rd_slice s;
        int st = rdb_read_need(r, 1, &s);
        if (st != RDB_EVENT)
            return st;
        size_t n = s.len < r->pass_left ? s.len : (size_t)r->pass_left;
        rdb_read_consume(r, n);
        r->pass_left -= n;
    }
    return STEP_ON;
}

/* Decodes a long LZF string piece by piece, only to verify it. */
static int pass_lzf(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    while (f->left > 0) {
        f->p = f->end;
        int st = rdb_feed_need(r, 1);
        if (st != STEP_ON)
            return st;
    }
    r->pieces.active = false;
    return rdb_feed_end(r);
}

static int pass_slow(struct rdb_reader *r, bool verify)
{
    if (r->pass_left > 0)
        return rdb_read_pass_rest(r);
    if (r->pieces.active)
        return pass_lzf(r);
    struct rdb_str_head head;
    struct rd_slice s;
    int st = head_at(r, 0, &head, &s);
    if (st != STEP_ON)
        return st;
    uint64_t off = rdb_read_offset(r);
    if (head.kind == RDB_STR_LZF && verify) {
        /* Nothing is decoded: it is enough if the stored bytes fit in the window. */
        if (head.stored > 2 * r->piece) {
            begin_pieces(r, &head, off, RDB_ELEM, TAIL_NONE);
            return pass_lzf(r);
        }
        st = rdb_read_need(r, head.size + head.stored, &s);
        if (st != RDB_EVENT)
            return st;
        if (r->batch != NULL)
            return rdb_batch_verify(r, &head, s.ptr + head.size, off);
        if (!rdb_lzf_verify(s.ptr + head.size, (size_t)head.stored, head.total))
            return rdb_read_corrupt(r, off, bad_lzf);
    }
    rdb_read_consume(r, head.size);
    r->pass_left = head.stored;
    return rdb_read_pass_rest(r);
}

int rdb_read_pass(struct rdb_reader *r, bool verify)
{
    struct rd_src *src = r->src;
    size_t have = rd_src_avail(src);
    /* Short raw strings, the most frequent form, in as few instructions as possible. */
    if (RD_LIKELY(have > 0 && src->cur[0] < 0x40 && have > src->cur[0] && r->pass_left == 0 &&
                  !r->pieces.active && r->tee == NULL && r->big.len == 0)) {
        src->cur += 1u + src->cur[0];
        return STEP_ON;
    }
    return pass_slow(r, verify);
}

int rdb_read_member(struct rdb_reader *r, char tmp[RD_NUM_I64_MAX], struct rd_slice *ret,
                    bool *ret_known)
{
    struct rdb_str_head head;
    struct rd_slice s;
    *ret_known = false;
    if (r->pass_left > 0 || r->pieces.active)
        return pass_slow(r, true);
    int st = head_at(r, 0, &head, &s);
    if (st != STEP_ON)
        return st;
    if (!is_short(r, &head))
        return pass_slow(r, true);
    struct rdb_event ev;
    st = rdb_read_string(r, RDB_ELEM, RDB_ROLE_MEMBER, TAIL_NONE, &ev);
    if (st != RDB_EVENT)
        return st;
    *ret_known = true;
    *ret = rdb_string_bytes(&ev.elem.str, tmp);
    return STEP_ON;
}

int rdb_read_pass_tail(struct rdb_reader *r, enum tail tail)
{
    struct rd_slice s;
    struct rdb_event ev;
    size_t size;
    int st = rdb_read_need(r, 1, &s);
    if (st == RDB_EVENT)
        st = tail_at(r, 0, tail, &s, &size, &ev);
    if (st == STEP_ON)
        rdb_read_consume(r, size);
    return st;
}
