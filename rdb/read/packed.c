/* packed.c - values whose elements are packed in one string.
 *
 * The walk validates each entry and then returns or skips it. A string that is not longer than a
 * piece is whole in memory before the walk begins; a longer one is streamed.
 */
#include "rdb/read/reader_impl.h"

/* The parts of an element, by layout. */
enum part { PART_ELEMENT, PART_MEMBER, PART_FIELD, PART_VALUE, PART_SCORE, PART_TTL };

struct parts {
    uint8_t n;
    uint8_t part[3];
    uint8_t trailing; /* how many of them end the last string */
};

static const struct parts layouts[] = {
    [LAYOUT_LIST] = {1, {PART_ELEMENT}, 0},
    [LAYOUT_SET] = {1, {PART_MEMBER}, 0},
    [LAYOUT_HASH] = {2, {PART_FIELD, PART_VALUE}, 0},
    [LAYOUT_ZSET] = {2, {PART_MEMBER, PART_SCORE}, 1},
    [LAYOUT_HASH_TTL] = {3, {PART_FIELD, PART_VALUE, PART_TTL}, 1},
    [LAYOUT_STREAM] = {1, {PART_ELEMENT}, 0},
};

static const uint8_t roles[] = {
    [PART_ELEMENT] = RDB_ROLE_ELEMENT,
    [PART_MEMBER] = RDB_ROLE_MEMBER,
    [PART_FIELD] = RDB_ROLE_FIELD,
    [PART_VALUE] = RDB_ROLE_VALUE,
};

int rdb_packed_bad(struct rdb_reader *r)
{
    const struct rdb_read_walk *w = &r->walk;
    return rdb_read_corrupt_in(r, r->feed.off, w->pack.pos + w->pack.bad, w->pack.why);
}

int rdb_packed_begin(struct rdb_reader *r, enum rdb_codec codec, enum layout layout)
{
    struct rd_slice s;
    struct rdb_str_head head;
    size_t want = 1;
    for (;;) {
        int st = rdb_read_need(r, want, &s);
        if (st != RDB_EVENT)
            return st;
        enum rdb_parse rc = rdb_str_head_parse(s.ptr, s.len, &head);
        if (rc == RDB_PARSE_OK)
            break;
        if (rc == RDB_PARSE_BAD)
            return rdb_read_corrupt(r, rdb_read_offset(r), "not a string");
        want = head.size;
    }
    uint64_t off = rdb_read_offset(r);
    if (head.kind == RDB_STR_INT)
        return rdb_read_corrupt(r, off, "an integer where a packed string should be");
    if (head.kind == RDB_STR_LZF && !rdb_lzf_possible(head.stored, head.total))
        return rdb_read_corrupt(r, off, "compressed string of impossible length");
    struct rdb_read_walk *w = &r->walk;
    w->whole = head.stored <= r->piece && head.total <= r->piece;
    if (w->whole) {
        int st = rdb_read_need(r, head.size + head.stored, &s);
        if (st != RDB_EVENT)
            return st;
    }
    if (w->whole && r->batch != NULL && layout < LAYOUT_STREAM) {
        int st = rdb_batch_pack(r, &head, s.ptr + head.size, off, PACK_ARG(codec, layout));
        return st == STEP_ON ? RDB_END : st;
    }
    rdb_feed_begin(r, &head, off);
    if (w->whole && head.kind == RDB_STR_LZF) {
        struct feed *f = &r->feed;
        if (!rdb_lzf_decode(s.ptr + head.size, (size_t)head.stored, r->out, (size_t)head.total))
            return rdb_read_corrupt(r, off, "compressed string that does not decode");
        f->end = f->wr = r->out + head.total;
        f->left = 0;
        f->in_left = 0;
        rdb_read_consume(r, (size_t)head.stored);
    } else if (w->whole) {
        r->feed.p = s.ptr + head.size;
        r->feed.end = r->feed.p + head.stored;
        r->feed.left = 0;
    }
    w->active = true;
    w->started = false;
    w->long_open = false;
    w->layout = (uint8_t)layout;
    w->part = 0;
    rdb_pack_init(&w->pack, codec, head.total);
    return STEP_ON;
}

static int start(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    enum rdb_pack_status st = rdb_pack_begin(&w->pack, f->p, (size_t)(f->end - f->p));
    while (st == RDB_PACK_WANT) {
        int rc = rdb_feed_need(r, w->pack.want);
        if (rc != STEP_ON && rc != RDB_END)
            return rc;
        st = rdb_pack_begin(&w->pack, f->p, (size_t)(f->end - f->p));
    }
    if (st == RDB_PACK_BAD)
        return rdb_packed_bad(r);
    f->p += w->pack.pos;
    w->started = true;
    if (r->n_elems == 0 && w->layout != LAYOUT_LIST && w->layout < LAYOUT_STREAM &&
        r->unique.slots != NULL && !rdb_unique_begin(&r->unique, w->pack.declared))
        return rdb_read_nomem(r, 0);
    w->n_before = r->n_elems;
    w->num = INT64_MIN;
    w->score = -__builtin_inf();
    w->ttl = 0;
    return STEP_ON;
}

static int entry_slow(struct rdb_reader *r, enum rdb_pack_status st, struct rdb_pack_entry *ret)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    for (;;) {
        if (st == RDB_PACK_BAD)
            return rdb_packed_bad(r);
        if (st == RDB_PACK_END)
            return RDB_END;
        size_t want = w->pack.want;
        if (st == RDB_PACK_ENTRY) {
            uint64_t size = ret->head + ret->len + ret->tail;
            if (size <= (uint64_t)(f->end - f->p))
                return RDB_EVENT;
            if (size > r->piece) {
                w->long_open = true;
                w->long_left = ret->len;
                w->long_entry = *ret;
                f->p += ret->head;
                return STEP_ON;
            }
            want = (size_t)size;
        }
        int rc = rdb_feed_need(r, want);
        if (rc == RDB_END) {
            w->pack.bad = 0;
            w->pack.why = "packed string that ends inside an entry";
            return rdb_packed_bad(r);
        }
        if (rc != STEP_ON)
            return rc;
        st = rdb_pack_next(&w->pack, f->p, (size_t)(f->end - f->p), ret);
    }
}

int rdb_walk_entry(struct rdb_reader *r, struct rdb_pack_entry *ret)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    enum rdb_pack_status st = rdb_pack_next(&w->pack, f->p, (size_t)(f->end - f->p), ret);
    if (RD_LIKELY(st == RDB_PACK_ENTRY &&
                  ret->head + ret->len + ret->tail <= (uint64_t)(f->end - f->p)))
        return RDB_EVENT;
    return entry_slow(r, st, ret);
}

int rdb_walk_pass(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    struct feed *f = &r->feed;
    if (!rdb_pack_pass(&r->walk.pack, e, f->p + e->head + e->len))
        return rdb_packed_bad(r);
    f->p += e->head + e->len + e->tail;
    return STEP_ON;
}

/* -- the numeric parts of elements -- */

static bool score_of(const struct rdb_pack_entry *e, double *ret)
{
    if (e->is_int) {
        *ret = (double)e->num;
        return true;
    }
    return rd_num_get_f64(rd_slice(e->str, (size_t)e->len), ret);
}

static void check_score(struct rdb_reader *r, const struct rdb_pack_entry *e, double *ret)
{
    struct rdb_read_walk *w = &r->walk;
    if (!score_of(e, ret)) {
        *ret = 0;
        rdb_read_note(r, RDB_NOTE_BAD_SCORE, r->feed.off, w->pack.pos, r->n_elems,
                      "score that is not a number");
        return;
    }
    if (*ret != *ret)
        rdb_read_note(r, RDB_NOTE_NAN_SCORE, r->feed.off, w->pack.pos, r->n_elems,
                      "score that is not a number (nan)");
    else if (*ret < w->score)
        rdb_read_note(r, RDB_NOTE_UNSORTED_ZSET, r->feed.off, w->pack.pos, r->n_elems,
                      "member with a lower score than the one before");
    w->score = *ret;
}

static void check_ttl(struct rdb_reader *r, const struct rdb_pack_entry *e, int64_t *ret)
{
    struct rdb_read_walk *w = &r->walk;
    *ret = e->is_int && e->num != 0 ? e->num : RDB_NO_EXPIRE;
    if (!e->is_int || e->num < 0 || e->num >= (int64_t)1 << 46)
        rdb_read_note(r, RDB_NOTE_FIELD_TTL_RANGE, r->feed.off, w->pack.pos, r->n_elems,
                      "field expiry that no server accepts");
    else if (w->ttl == INT64_MAX ? e->num != 0 : e->num != 0 && e->num < w->ttl)
        rdb_read_note(r, RDB_NOTE_FIELD_TTL_ORDER, r->feed.off, w->pack.pos, r->n_elems,
                      "field that expires before the field before it");
    w->ttl = e->is_int && e->num == 0 ? INT64_MAX : e->num;
}

static void check_intset(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    struct rdb_read_walk *w = &r->walk;
    if (w->pack.n > 0 && e->num <= w->num)
        rdb_read_note(r, e->num == w->num ? RDB_NOTE_DUPLICATE_MEMBER : RDB_NOTE_UNSORTED_SET,
                      r->feed.off, w->pack.pos, r->n_elems,
                      "integer that is not greater than the one before");
    w->num = e->num;
}

static void check_member(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    struct rdb_read_walk *w = &r->walk;
    if (w->pack.codec == RDB_INTSET) {
        check_intset(r, e);
        return;
    }
    if (!r->opts.notes || !rdb_read_checks(r))
        return;
    uint64_t hash = e->is_int ? rdb_hash_int(&r->key, e->num)
                              : rdb_hash_member(&r->key, e->str, (size_t)e->len);
    const char *text = "member that the collection already has";
    if (!rdb_unique_add(&r->unique, hash) &&
        rdb_duplicate_packed(r, e, layouts[w->layout].n, &text))
        rdb_read_note(r, RDB_NOTE_DUPLICATE_MEMBER, r->feed.off, w->pack.pos, r->n_elems, text);
}

/* -- returning elements -- */

static void elem_event(struct rdb_reader *r, enum part part, struct rdb_event *ev)
{
    ev->kind = RDB_ELEM;
    ev->offset = r->feed.off;
    ev->inner = r->walk.elem_inner;
    ev->raw = rd_slice(NULL, 0);
    ev->elem.role = (enum rdb_role)roles[part];
    ev->elem.expire_ms = RDB_NO_EXPIRE;
}

static void elem_string(const struct rdb_pack_entry *e, struct rdb_event *ev)
{
    ev->elem.str = (struct rdb_string){.ptr = e->str,
                                       .len = (size_t)e->len,
                                       .total = e->len,
                                       .num = e->num,
                                       .is_int = e->is_int,
                                       .first = true};
}

/* The number after the string whose last n bytes are at f->p + at. If more input is needed, nothing
 * is consumed. STEP_ON: string and number were consumed; data[n] has the bytes. */
static int trailing(struct rdb_reader *r, const struct rdb_pack_entry *e, size_t at, size_t n,
                    struct rdb_event *ev, const uint8_t **ret_data)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    size_t size = at + n + e->tail;
    struct rdb_pack ahead = w->pack;
    struct rdb_pack_entry num = {0};
    if (!rdb_pack_pass(&ahead, e, f->p + at + n)) {
        w->pack = ahead;
        return rdb_packed_bad(r);
    }
    for (size_t want = size + 1;;) {
        int st = rdb_feed_need(r, want);
        if (st != STEP_ON && st != RDB_END)
            return st;
        enum rdb_pack_status ps =
            rdb_pack_next(&ahead, f->p + size, (size_t)(f->end - f->p) - size, &num);
        uint64_t total = num.head + num.len + num.tail;
        if (ps == RDB_PACK_ENTRY && total <= (size_t)(f->end - f->p) - size)
            break;
        w->pack = ps == RDB_PACK_WANT && st != RDB_END ? w->pack : ahead;
        if (ps == RDB_PACK_BAD)
            return rdb_packed_bad(r);
        if (ps == RDB_PACK_END || st == RDB_END || (ps == RDB_PACK_ENTRY && total > 512)) {
            w->pack.bad = 0;
            w->pack.why = "packed string that ends inside an element";
            return rdb_packed_bad(r);
        }
        want = size + (ps == RDB_PACK_WANT ? ahead.want : (size_t)total);
    }
    w->pack = ahead;
    *ret_data = f->p + at;
    f->p += size;
    if (w->layout == LAYOUT_ZSET)
        check_score(r, &num, &ev->elem.score);
    else
        check_ttl(r, &num, &ev->elem.expire_ms);
    return rdb_walk_pass(r, &num);
}

static enum part part_now(const struct rdb_read_walk *w)
{
    return (enum part)layouts[w->layout].part[w->part];
}

/* Whether a number follows the next string. */
static bool has_trailing(const struct rdb_read_walk *w)
{
    const struct parts *l = &layouts[w->layout];
    return l->trailing > 0 && w->part + 1 + l->trailing == l->n;
}

/* Advances to the next string, past the number that was read with this one. */
static void next_string(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    const struct parts *l = &layouts[w->layout];
    w->part++;
    if (w->part + l->trailing == l->n) {
        w->part = 0;
        r->n_elems++;
    }
}

/* Consumes the string (and number) at f->p; *ret_data has its last n bytes. */
static int pass_element(struct rdb_reader *r, const struct rdb_pack_entry *e, size_t at, size_t n,
                        struct rdb_event *ev, const uint8_t **ret_data)
{
    struct feed *f = &r->feed;
    if (has_trailing(&r->walk))
        return trailing(r, e, at, n, ev, ret_data);
    *ret_data = f->p + at;
    if (!rdb_pack_pass(&r->walk.pack, e, f->p + at + n))
        return rdb_packed_bad(r);
    f->p += at + n + e->tail;
    return STEP_ON;
}

int rdb_walk_long(struct rdb_reader *r, size_t *ret_len, bool *ret_last)
{
    const struct rdb_read_walk *w = &r->walk;
    int st = rdb_feed_need(r, 1);
    size_t n = (size_t)(r->feed.end - r->feed.p);
    n = n < r->piece ? n : r->piece;
    bool last = n >= w->long_left;
    if (last) {
        n = (size_t)w->long_left;
        st = rdb_feed_need(r, n + w->long_entry.tail);
    }
    if (st != STEP_ON)
        return st == RDB_END ? rdb_read_corrupt_in(r, r->feed.off, w->pack.pos,
                                                   "packed string that ends inside an entry")
                             : st;
    *ret_len = n;
    *ret_last = last;
    return STEP_ON;
}

/* An entry longer than a piece: its header was consumed, its bytes are streamed. */
static int give_long(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    const struct rdb_pack_entry *e = &w->long_entry;
    size_t n = 0;
    bool last = false;
    int st = rdb_walk_long(r, &n, &last);
    if (st != STEP_ON)
        return st;
    elem_event(r, part_now(w), ev);
    const uint8_t *data = f->p;
    if (last) {
        st = pass_element(r, e, 0, n, ev, &data);
        if (st != STEP_ON)
            return st;
        w->long_open = false;
        next_string(r);
    } else {
        f->p += n;
    }
    ev->elem.str = (struct rdb_string){
        .ptr = data, .len = n, .total = e->len, .first = w->long_left == e->len, .more = !last};
    w->long_left -= n;
    return RDB_EVENT;
}

static int finish(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    if (w->part != 0) {
        w->pack.bad = 0;
        w->pack.why = "packed string that ends inside an element";
        return rdb_packed_bad(r);
    }
    enum rdb_note_id empty = w->pack.codec == RDB_INTSET   ? RDB_NOTE_EMPTY_INTSET
                             : w->pack.codec == RDB_ZIPMAP ? RDB_NOTE_EMPTY_ZIPMAP
                                                           : RDB_NOTE_EMPTY_COLLECTION;
    if (w->pack.n == 0)
        rdb_read_note(r, empty, r->feed.off, RD_NO_OFFSET, 0, "packed string without elements");
    w->active = false;
    rdb_feed_end(r);
    return RDB_END;
}

static int give_elements(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    if (rdb_skim_give(r, ev))
        return RDB_EVENT;
    if (w->long_open)
        return give_long(r, ev);
    struct rdb_pack_entry e;
    w->elem_inner = w->pack.pos;
    int st = rdb_walk_entry(r, &e);
    if (st == STEP_ON)
        return give_long(r, ev);
    if (st == RDB_END)
        return finish(r);
    if (st != RDB_EVENT)
        return st;
    elem_event(r, part_now(w), ev);
    if (w->pack.codec == RDB_INTSET)
        check_intset(r, &e);
    const uint8_t *data;
    st = pass_element(r, &e, e.head, (size_t)e.len, ev, &data);
    if (st != STEP_ON)
        return st;
    e.str = data;
    elem_string(&e, ev);
    next_string(r);
    return RDB_EVENT;
}

/* -- checking -- */

static void check_part(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    double score;
    int64_t ttl;
    switch (part_now(&r->walk)) {
    case PART_MEMBER:
    case PART_FIELD:
        check_member(r, e);
        break;
    case PART_SCORE:
        check_score(r, e, &score);
        break;
    case PART_TTL:
        check_ttl(r, e, &ttl);
        break;
    case PART_ELEMENT:
    case PART_VALUE:
        break;
    }
}

static void next_part(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    if (++w->part == layouts[w->layout].n) {
        w->part = 0;
        r->n_elems++;
    }
}

static int check_long(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    while (w->long_left > 0) {
        int st = rdb_feed_need(r, 1);
        if (st != STEP_ON)
            return st == RDB_END ? rdb_packed_bad(r) : st;
        uint64_t n = (uint64_t)(f->end - f->p);
        n = n < w->long_left ? n : w->long_left;
        f->p += n;
        w->long_left -= n;
    }
    int st = rdb_feed_need(r, w->long_entry.tail);
    if (st != STEP_ON)
        return st == RDB_END ? rdb_packed_bad(r) : st;
    if (!rdb_pack_pass(&w->pack, &w->long_entry, f->p))
        return rdb_packed_bad(r);
    f->p += w->long_entry.tail;
    w->long_open = false;
    next_part(r);
    return STEP_ON;
}

static int check_all(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    struct rdb_pack_entry e;
    rdb_skim(r);
    while (!r->note_set) {
        int st = w->long_open ? STEP_ON : rdb_walk_entry(r, &e);
        if (RD_LIKELY(st == RDB_EVENT)) {
            check_part(r, &e);
            st = rdb_walk_pass(r, &e);
            if (st != STEP_ON)
                return st;
            next_part(r);
        } else if (st == STEP_ON) {
            st = check_long(r);
            if (st != STEP_ON)
                return st;
        } else {
            return st;
        }
    }
    return STEP_ON;
}

/* The blob is whole in memory: validates it, then returns it. */
static int give_blob(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    const uint8_t *blob = r->feed.end - w->pack.size;
    int st = check_all(r);
    if (st == RDB_END)
        st = finish(r);
    if (st != RDB_END)
        return st;
    *ev = (struct rdb_event){.kind = RDB_PACKED, .offset = r->feed.off, .inner = RD_NO_OFFSET};
    ev->packed.codec = w->pack.codec;
    ev->packed.blob = rd_slice(blob, (size_t)w->pack.size);
    ev->packed.count = r->n_elems - w->n_before;
    r->pc++;
    return RDB_EVENT;
}

/* The elements follow one by one: the blob is too long for an event, or not wanted. */
static int announce_long(const struct rdb_reader *r, struct rdb_event *ev)
{
    const struct rdb_read_walk *w = &r->walk;
    *ev = (struct rdb_event){.kind = RDB_PACKED_LONG, .offset = r->feed.off, .inner = RD_NO_OFFSET};
    ev->packed.codec = w->pack.codec;
    ev->packed.blob = rd_slice(NULL, (size_t)w->pack.size);
    if (w->layout == LAYOUT_STREAM)
        ev->packed.node = r->node.base;
    return RDB_EVENT;
}

int rdb_packed_run(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    if (!w->started) {
        int st = start(r);
        if (st != STEP_ON)
            return st;
        bool by_elements =
            r->detail == RDB_DETAIL_ELEMENTS || (r->detail == RDB_DETAIL_PACKED && !w->whole);
        if (r->opts.long_packed && by_elements && w->layout <= LAYOUT_STREAM)
            return announce_long(r, ev);
    }
    if (w->layout == LAYOUT_STREAM)
        return rdb_node_run(r, ev);
    if (w->layout == LAYOUT_TEMPLATE)
        return rdb_template_run(r, ev);
    if (w->layout == LAYOUT_NAMES)
        return rdb_names_run(r);
    if (rdb_read_checks(r)) {
        int st = check_all(r);
        return st == RDB_END ? finish(r) : st;
    }
    if (r->detail == RDB_DETAIL_PACKED && w->whole)
        return give_blob(r, ev);
    return give_elements(r, ev);
}
