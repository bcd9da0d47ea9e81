/* template.c - the field names that hashes share (Redis 8.10), and these hashes.
 *
 *     record    f2 id:len n:len { name }*n
 *     30        listpack { id value* }                  refers to a template
 *     32        id:len { value }*n                      … too
 *     29        names, listpack { any-int value* }      contains its names
 *     31        names { value }*n                       … too
 *     names     00 listpack { name* }  |  01 n:len { name }*n
 *
 * A value that refers to a template is of use in its file only. It gets the type that contains the
 * names, and a copy begins with them; the rest is the same in both types.
 */
#include "rdb/enc/put.h"
#include "rdb/read/reader_impl.h"

#include <stdio.h>

enum { NAMES_PACKED = 0, NAMES_STRINGS = 1 };

const char rdb_template_alone[] =
    "a hash that refers to a template of its file is not valid in a payload";

static const char no_names[] = "hash template without fields";

const struct rdb_type *rdb_template_whole(const struct rdb_type *type)
{
    switch ((int)type->id) {
    case RDB_TYPE_HASH_TMPL_LP_REF:
        return rdb_type_get(RDB_TYPE_HASH_TMPL_LP);
    case RDB_TYPE_HASH_TMPL_ARRAY_REF:
        return rdb_type_get(RDB_TYPE_HASH_TMPL_ARRAY);
    default:
        return type;
    }
}

/* -- the templates of the file -- */

void rdb_shared_keep(struct rdb_reader *r)
{
    r->shared.n_kept = rdb_templates_count(r->shared.all);
}

void rdb_shared_forget(struct rdb_reader *r)
{
    if (r->shared.all != NULL)
        rdb_templates_cut(r->shared.all, r->shared.n_kept);
}

void rdb_shared_take_back(struct rdb_reader *r, uint64_t from)
{
    struct shared *s = &r->shared;
    while (s->n_kept > 0 && rdb_templates_place(s->all, s->n_kept - 1) >= from)
        s->n_kept--;
    rdb_shared_forget(r);
}

uint64_t rdb_shared_used(const struct rdb_reader *r)
{
    return r->form != rdb_template_whole(r->form) ? r->shared.id : RDB_UNKNOWN;
}

static int refused(struct rdb_reader *r, enum rd_err_code code, uint64_t off)
{
    if (code == RD_ERR_MEMORY)
        return rdb_read_nomem(r, 0);
    char what[80];
    snprintf(what, sizeof what, "the field names of hash templates take more than %llu bytes",
             (unsigned long long)r->opts.max_templates);
    return rdb_read_fail(r, RD_ERR_LIMIT, off, what);
}

static int keep_name(struct rdb_reader *r, struct rd_slice name)
{
    enum rd_err_code code = rdb_templates_add_name(r->shared.to, name, r->opts.max_templates);
    return code == RD_ERR_OK ? STEP_ON : refused(r, code, rdb_read_offset(r));
}

static bool has_own(struct shared *s)
{
    if (s->own == NULL)
        s->own = rdb_templates_new();
    else
        rdb_templates_reset(s->own);
    return s->own != NULL;
}

static bool parse_name(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    return rdb_cur_str(r, c, &r->text, &ev->aux.name);
}

/* Reads names that are strings. STEP_ON: all of them were read. */
static int read_names(struct rdb_reader *r, struct rdb_event *ev)
{
    for (; r->shared.left > 0; r->shared.left--) {
        struct cur c;
        int st = rdb_read_parse(r, parse_name, 0, ev, &c);
        if (st == STEP_ON)
            st = keep_name(r, ev->aux.name);
        if (st != STEP_ON)
            return st;
        rdb_read_consume(r, (size_t)(c.p - c.base));
    }
    return STEP_ON;
}

static bool parse_template(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    const uint8_t *op;
    (void)r;
    (void)arg;
    return cur_take(c, 1, &op) && rdb_cur_len(c, &ev->fields.id) &&
           rdb_cur_len(c, &ev->fields.n_fields);
}

static int template_bad(struct rdb_reader *r, enum rd_err_code code, uint64_t id, const char *what)
{
    (void)rdb_read_fail(r, code, r->record, what);
    rd_err_doing(&r->err, "hash template %llu", (unsigned long long)id);
    return RDB_FAIL;
}

/* Prepares the place for the names. The same record can be read again, for example by salvage. */
static int open_template(struct rdb_reader *r, uint64_t id)
{
    struct shared *s = &r->shared;
    struct rdb_names names;
    if (id >= TEMPLATE_IDS)
        return template_bad(r, RD_ERR_LIMIT, id, "hash template with a number above 2097151");
    if (s->all == NULL)
        s->all = rdb_templates_new();
    if (s->all == NULL || !rdb_templates_own(&s->all) || !has_own(s))
        return rdb_read_nomem(r, 0);
    s->again = rdb_templates_find(s->all, id, &names);
    if (s->again && rdb_templates_offset(s->all, id) != r->record)
        return template_bad(r, RD_ERR_CORRUPT, id, "hash template with the number of another one");
    s->to = s->again ? s->own : s->all;
    s->id = id;
    return rdb_templates_begin(s->to, s->again ? 0 : id, r->record) ? STEP_ON
                                                                    : rdb_read_nomem(r, 0);
}

/* After the notes about it. */
static int template_read(struct rdb_reader *r, struct rdb_event *ev)
{
    *ev = (struct rdb_event){.kind = RDB_TEMPLATE, .offset = r->record, .inner = RD_NO_OFFSET};
    ev->fields.id = r->shared.id;
    ev->fields.n_fields = r->shared.names.n;
    r->step = rdb_record_step;
    return RDB_EVENT;
}

static int template_names(struct rdb_reader *r, struct rdb_event *ev)
{
    struct shared *s = &r->shared;
    int st = read_names(r, ev);
    if (st != STEP_ON)
        return st;
    struct rdb_names names = rdb_templates_open(s->to);
    size_t before = rdb_templates_count(s->all);
    rdb_templates_end(s->to);
    s->names = names;
    if (!rdb_names_ascend(&names))
        rdb_read_note(r, RDB_NOTE_UNSORTED_TEMPLATE, r->record, RD_NO_OFFSET, s->id,
                      "hash template whose field names do not ascend by length and bytes; servers "
                      "refuse the file");
    else if (!s->again && s->id != before)
        rdb_read_note(r, RDB_NOTE_TEMPLATE_ID, r->record, RD_NO_OFFSET, s->id,
                      "hash template with another number than the next one");
    r->step = template_read;
    return STEP_ON;
}

int rdb_template_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_template, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    uint64_t id = ev->fields.id;
    if (ev->fields.n_fields == 0)
        return template_bad(r, RD_ERR_CORRUPT, id, no_names);
    st = open_template(r, id);
    if (st != STEP_ON)
        return st;
    r->shared.left = ev->fields.n_fields;
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->step = template_names;
    return STEP_ON;
}

/* -- copies -- */

static bool put_names(struct rd_sink *to, const struct rdb_names *names)
{
    if (!rdb_put_len(to, NAMES_STRINGS) || !rdb_put_len(to, names->n))
        return false;
    for (size_t i = 0; i < names->n; i++)
        if (!rdb_put_raw(to, rdb_names_get(names, i)))
            return false;
    return true;
}

/* Begins the copy of a value that refers to a template. */
static int tee_names(struct rdb_reader *r)
{
    if (r->tee == NULL || put_names(r->tee, &r->shared.names))
        return STEP_ON;
    rd_err_adopt(&r->err, rd_sink_err(r->tee));
    return RDB_FAIL;
}

static int look_up(struct rdb_reader *r, uint64_t id, uint64_t off, uint64_t inner)
{
    r->shared.id = id;
    if (rdb_templates_find(r->shared.all, id, &r->shared.names))
        return STEP_ON;
    char what[80];
    snprintf(what, sizeof what, "hash of template %llu, which the file does not have before it",
             (unsigned long long)id);
    return inner == RD_NO_OFFSET ? rdb_read_corrupt(r, off, what)
                                 : rdb_read_corrupt_in(r, off, inner, what);
}

/* -- values -- */

static bool parse_id(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    (void)ev;
    return rdb_cur_len(c, &r->shared.id);
}

static void set_counts(struct rdb_event *ev, uint64_t n)
{
    ev->value.count = n;
    ev->value.nodes = RDB_UNKNOWN;
    ev->value.min_expire_ms = RDB_NO_EXPIRE;
    ev->value.module_id = 0;
}

/* Type 32. */
int rdb_template_begin(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_id, 0, ev, &c);
    if (st == STEP_ON)
        st = look_up(r, r->shared.id, r->value_off, RD_NO_OFFSET);
    if (st == STEP_ON)
        st = tee_names(r);
    if (st != STEP_ON)
        return st;
    struct rd_sink *tee = r->tee;
    r->tee = NULL;
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->tee = tee;
    set_counts(ev, r->shared.names.n);
    return rdb_value_open(r, ev);
}

static bool parse_form(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    (void)ev;
    const uint8_t *at = c->p;
    if (!rdb_cur_len(c, &r->shared.id))
        return false;
    if (r->shared.id > NAMES_STRINGS)
        return rdb_cur_refuse(c, at, CUR_DAMAGED, "field names in an unknown form");
    return r->shared.id == NAMES_PACKED || rdb_cur_len(c, &r->shared.left);
}

/* All names of the value were read. */
static int names_read(struct rdb_reader *r, struct rdb_event *ev)
{
    struct shared *s = &r->shared;
    rdb_templates_end(s->own);
    (void)rdb_templates_find(s->own, 0, &s->names);
    if (s->names.n == 0)
        return rdb_read_corrupt(r, r->value_off, no_names);
    if (!rdb_names_ascend(&s->names))
        rdb_read_note(r, RDB_NOTE_UNSORTED_TEMPLATE, r->value_off, RD_NO_OFFSET, RDB_UNKNOWN,
                      "field names that do not ascend by length and bytes; servers refuse them");
    set_counts(ev, s->names.n);
    return rdb_value_open(r, ev);
}

static int names_step(struct rdb_reader *r, struct rdb_event *ev)
{
    int st = STEP_ON;
    if (r->shared.id == NAMES_STRINGS) {
        st = read_names(r, ev);
    } else {
        if (!r->walk.active)
            st = rdb_packed_begin(r, RDB_LISTPACK, LAYOUT_NAMES);
        if (st == STEP_ON)
            st = rdb_packed_run(r, ev);
        if (st == RDB_END)
            st = STEP_ON;
    }
    return st == STEP_ON ? names_read(r, ev) : st;
}

/* Types 29 and 31. */
int rdb_names_begin(struct rdb_reader *r, struct rdb_event *ev)
{
    struct shared *s = &r->shared;
    struct cur c;
    int st = rdb_read_parse(r, parse_form, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    if (!has_own(s) || !rdb_templates_begin(s->own, 0, r->value_off))
        return rdb_read_nomem(r, 0);
    s->to = s->own;
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->step = names_step;
    return STEP_ON;
}

/* A name longer than a piece. */
static int long_name(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    size_t n = 0;
    bool last = false;
    int st = rdb_walk_long(r, &n, &last);
    if (st != STEP_ON)
        return st;
    struct rd_slice bytes = rd_slice(f->p, n);
    enum rd_err_code code =
        w->long_left == w->long_entry.len
            ? rdb_templates_add_name(r->shared.to, bytes, r->opts.max_templates)
            : rdb_templates_extend_name(r->shared.to, bytes, r->opts.max_templates);
    if (code != RD_ERR_OK)
        return refused(r, code, f->off);
    w->long_left -= n;
    f->p += n;
    if (!last)
        return STEP_ON;
    if (!rdb_pack_pass(&w->pack, &w->long_entry, f->p))
        return rdb_packed_bad(r);
    f->p += w->long_entry.tail;
    w->long_open = false;
    return STEP_ON;
}

/* Reads names that are a listpack. RDB_END: all of them were read. */
int rdb_names_run(struct rdb_reader *r)
{
    for (;;) {
        struct rdb_pack_entry e;
        char digits[RD_NUM_I64_MAX];
        int st = r->walk.long_open ? STEP_ON : rdb_walk_entry(r, &e);
        if (st == RDB_EVENT) {
            struct rd_slice name = e.is_int ? rd_slice(digits, rd_num_put_i64(digits, e.num))
                                            : rd_slice(e.str, (size_t)e.len);
            st = keep_name(r, name);
            if (st == STEP_ON)
                st = rdb_walk_pass(r, &e);
        } else if (st == STEP_ON) {
            st = long_name(r);
        }
        if (st == RDB_END) {
            r->walk.active = false;
            rdb_feed_end(r);
        }
        if (st != STEP_ON)
            return st;
    }
}

/* Returns the next name, or its next piece. */
static int give_name(struct rdb_reader *r, uint64_t off, uint64_t inner, struct rdb_event *ev)
{
    struct shared *s = &r->shared;
    struct rd_slice name = rdb_names_get(&s->names, s->i);
    size_t n = name.len - s->given < r->piece ? name.len - s->given : r->piece;
    *ev = (struct rdb_event){.kind = RDB_ELEM, .offset = off, .inner = inner};
    ev->elem.role = RDB_ROLE_FIELD;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.str = (struct rdb_string){.ptr = name.ptr + s->given,
                                       .len = n,
                                       .total = name.len,
                                       .first = s->given == 0,
                                       .more = s->given + n < name.len};
    s->given = ev->elem.str.more ? s->given + n : 0;
    s->gave = !ev->elem.str.more;
    return RDB_EVENT;
}

/* Before a value of types 31 and 32. */
int rdb_template_field(struct rdb_reader *r, struct rdb_event *ev)
{
    struct shared *s = &r->shared;
    int st = STEP_ON;
    if (rdb_read_gives(r)) {
        st = give_name(r, rdb_read_offset(r), RD_NO_OFFSET, ev);
        if (!s->gave)
            return st;
    }
    s->gave = false;
    s->i++;
    r->pc++;
    return st;
}

/* -- the listpack of types 29 and 30 -- */

static int bad(struct rdb_reader *r, const char *why)
{
    r->walk.pack.bad = 0;
    r->walk.pack.why = why;
    return rdb_packed_bad(r);
}

static bool refers(const struct rdb_reader *r)
{
    return r->form != r->type;
}

/* The first entry: the number of the template, which means nothing if the value has its names. */
static int take_id(struct rdb_reader *r, const struct rdb_pack_entry *e)
{
    if (!e->is_int)
        return bad(r, "hash whose first entry is not the number of its template");
    if (refers(r)) {
        int st = look_up(r, (uint64_t)e->num, r->feed.off, r->walk.pack.pos);
        if (st != STEP_ON)
            return st;
    }
    r->shared.has_id = true;
    return rdb_walk_pass(r, e);
}

static void value_event(const struct rdb_reader *r, struct rdb_event *ev)
{
    ev->kind = RDB_ELEM;
    ev->offset = r->feed.off;
    ev->inner = r->walk.pack.pos;
    ev->raw = rd_slice(NULL, 0);
    ev->elem.role = RDB_ROLE_VALUE;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
}

static void next_value(struct rdb_reader *r)
{
    r->shared.i++;
    r->shared.gave = false;
    r->n_elems++;
}

static int short_value(struct rdb_reader *r, const struct rdb_pack_entry *e, struct rdb_event *ev)
{
    bool give = rdb_read_gives(r);
    if (give) {
        value_event(r, ev);
        ev->elem.str = (struct rdb_string){.ptr = e->str,
                                           .len = (size_t)e->len,
                                           .total = e->len,
                                           .num = e->num,
                                           .is_int = e->is_int,
                                           .first = true};
    }
    int st = rdb_walk_pass(r, e);
    if (st != STEP_ON)
        return st;
    next_value(r);
    return give ? RDB_EVENT : STEP_ON;
}

/* A value longer than a piece. */
static int long_value(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    struct feed *f = &r->feed;
    const struct rdb_pack_entry *e = &w->long_entry;
    size_t n = 0;
    bool last = false;
    int st = rdb_walk_long(r, &n, &last);
    if (st != STEP_ON)
        return st;
    value_event(r, ev);
    ev->elem.str = (struct rdb_string){
        .ptr = f->p, .len = n, .total = e->len, .first = w->long_left == e->len, .more = !last};
    w->long_left -= n;
    f->p += n;
    if (last) {
        if (!rdb_pack_pass(&w->pack, e, f->p))
            return rdb_packed_bad(r);
        f->p += e->tail;
        w->long_open = false;
        next_value(r);
    }
    return rdb_read_gives(r) ? RDB_EVENT : STEP_ON;
}

static int end_values(struct rdb_reader *r)
{
    const struct shared *s = &r->shared;
    if (!s->has_id)
        return bad(r, "hash without the number of its template");
    if (s->i < s->names.n)
        return bad(r, "hash with fewer values than its template has fields");
    r->walk.active = false;
    rdb_feed_end(r);
    return RDB_END;
}

/* One entry. */
static int step(struct rdb_reader *r, struct rdb_event *ev)
{
    const struct shared *s = &r->shared;
    if (r->walk.long_open)
        return long_value(r, ev);
    if (s->has_id && s->i < s->names.n && !s->gave && rdb_read_gives(r))
        return give_name(r, r->feed.off, r->walk.pack.pos, ev);
    struct rdb_pack_entry e;
    int st = rdb_walk_entry(r, &e);
    if (st == RDB_END)
        return end_values(r);
    if (st != RDB_EVENT && st != STEP_ON)
        return st;
    if (!s->has_id)
        return st == RDB_EVENT ? take_id(r, &e)
                               : bad(r, "hash whose first entry is not the number of its template");
    if (s->i == s->names.n)
        return bad(r, "hash with more values than its template has fields");
    return st == RDB_EVENT ? short_value(r, &e, ev) : long_value(r, ev);
}

int rdb_template_run(struct rdb_reader *r, struct rdb_event *ev)
{
    int st;
    do
        st = step(r, ev);
    while (st == STEP_ON && !r->note_set);
    return st;
}

/* The first bytes of the listpack at the current position, decoded; nothing is consumed. */
static int peek(struct rdb_reader *r, struct rdb_str_head *head, struct rd_slice *ret)
{
    enum { RAW = 64, LZF = 128 }; /* more than a header and an integer need */
    struct rd_slice s;
    size_t want = 1;
    for (;; want = head->size) {
        int st = rdb_read_need(r, want, &s);
        if (st != RDB_EVENT)
            return st;
        enum rdb_parse rc = rdb_str_head_parse(s.ptr, s.len, head);
        if (rc == RDB_PARSE_OK)
            break;
        if (rc == RDB_PARSE_BAD)
            return rdb_read_corrupt(r, rdb_read_offset(r), "not a string");
    }
    if (head->kind == RDB_STR_INT)
        return rdb_read_corrupt(r, rdb_read_offset(r),
                                "an integer where a packed string should be");
    size_t most = head->kind == RDB_STR_LZF ? LZF : RAW;
    size_t n = head->stored < most ? (size_t)head->stored : most;
    int st = rdb_read_need(r, head->size + n, &s);
    if (st != RDB_EVENT)
        return st;
    const uint8_t *in = s.ptr + head->size;
    *ret = rd_slice(in, n);
    if (head->kind != RDB_STR_LZF)
        return STEP_ON;
    uint8_t *out = r->out;
    if (!rdb_lzf_decode_some(&in, in + n, r->out, &out, r->out + r->out_cap))
        return rdb_read_corrupt(r, rdb_read_offset(r), "compressed string that does not decode");
    *ret = rd_slice(r->out, (size_t)(out - r->out));
    return STEP_ON;
}

/* Finds the template of a listpack that is to be copied, and writes its names. */
static int copy_names(struct rdb_reader *r)
{
    struct rdb_str_head head;
    struct rd_slice s = {0};
    struct rdb_pack pack;
    struct rdb_pack_entry e = {0};
    int st = peek(r, &head, &s);
    if (st != STEP_ON)
        return st;
    uint64_t off = rdb_read_offset(r);
    rdb_pack_init(&pack, RDB_LISTPACK, head.total);
    enum rdb_pack_status ps = rdb_pack_begin(&pack, s.ptr, s.len);
    if (ps == RDB_PACK_ENTRY)
        ps = rdb_pack_next(&pack, s.ptr + pack.pos, s.len - (size_t)pack.pos, &e);
    if (ps == RDB_PACK_BAD)
        return rdb_read_corrupt_in(r, off, pack.pos + pack.bad, pack.why);
    if (ps != RDB_PACK_ENTRY || !e.is_int)
        return rdb_read_corrupt_in(r, off, pack.pos,
                                   "hash whose first entry is not the number of its template");
    st = look_up(r, (uint64_t)e.num, off, pack.pos);
    if (st == STEP_ON)
        st = tee_names(r);
    r->shared.has_id = st == STEP_ON;
    return st;
}

int rdb_template_pack(struct rdb_reader *r, struct rdb_event *ev)
{
    int st = STEP_ON;
    if (r->detail == RDB_DETAIL_FRAMES) {
        if (r->tee != NULL && refers(r) && !r->shared.has_id)
            st = copy_names(r);
        if (st == STEP_ON)
            st = rdb_read_pass(r, false);
        r->pc += st == STEP_ON;
        return st;
    }
    if (!r->walk.active)
        st = rdb_packed_begin(r, RDB_LISTPACK, LAYOUT_TEMPLATE);
    if (st == STEP_ON)
        st = rdb_packed_run(r, ev);
    if (st != RDB_END)
        return st;
    r->pc++;
    return STEP_ON;
}
