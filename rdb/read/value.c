/* value.c - walks a value according to the shape of its type. */
#include "rdb/read/reader_impl.h"

static bool tracks_members(const struct rdb_reader *r)
{
    if (!rdb_read_checks(r) || !r->opts.notes)
        return false;
    enum rdb_kind kind = r->type->kind;
    bool ascends = r->type->id == RDB_TYPE_HASH_TMPL_LP || r->type->id == RDB_TYPE_HASH_TMPL_ARRAY;
    return kind == RDB_KIND_SET || kind == RDB_KIND_ZSET || (kind == RDB_KIND_HASH && !ascends);
}

/* For a hash, members are fields. */
static bool is_unique_role(const struct rdb_reader *r, uint8_t role)
{
    return (role == RDB_ROLE_MEMBER || role == RDB_ROLE_FIELD) && r->unique.slots != NULL &&
           tracks_members(r);
}

static bool parse_array_head(struct cur *c, uint64_t *count)
{
    uint64_t flag;
    uint64_t insert;
    if (!rdb_cur_len(c, count) || !rdb_cur_len(c, &flag))
        return false;
    if (flag > 1)
        return rdb_cur_refuse(c, c->p, CUR_DAMAGED, "array flag that is neither 0 nor 1");
    return flag == 0 || rdb_cur_len(c, &insert);
}

static bool parse_prelude(struct rdb_reader *r, struct cur *c, uint8_t prelude,
                          struct rdb_event *ev)
{
    uint64_t min;
    (void)r;
    ev->value.count = ev->value.nodes = RDB_UNKNOWN;
    ev->value.min_expire_ms = RDB_NO_EXPIRE;
    ev->value.module_id = 0;
    switch ((enum prelude)prelude) {
    case PRELUDE_NONE:
        return true;
    case PRELUDE_COUNT:
        return rdb_cur_len(c, &ev->value.count);
    case PRELUDE_NODES:
        return rdb_cur_len(c, &ev->value.nodes);
    case PRELUDE_MODULE:
        return rdb_cur_len(c, &ev->value.module_id);
    case PRELUDE_ARRAY:
        return parse_array_head(c, &ev->value.count);
    case PRELUDE_TEMPLATE:
    case PRELUDE_NAMES:
    case PRELUDE_BITMAP:
        break;
    case PRELUDE_TTL:
    case PRELUDE_TTL_COUNT:
        if (!rdb_cur_u64le(c, &min))
            return false;
        ev->value.min_expire_ms = (int64_t)min;
        return prelude == PRELUDE_TTL || rdb_cur_len(c, &ev->value.count);
    }
    return true;
}

static int value_refused(struct rdb_reader *r)
{
    return rdb_read_fail(r, RD_ERR_UNSUPPORTED, rdb_read_offset(r),
                         "value of a module API that no release supports: its size is unknown");
}

int rdb_value_begin(struct rdb_reader *r, struct rdb_event *ev)
{
    const struct shape *shape = rdb_shape(r->form->id);
    if (shape->body == NULL)
        return value_refused(r);
    r->value_off = rdb_read_offset(r);
    r->shared.names.n = r->shared.i = 0;
    r->shared.gave = r->shared.has_id = false;
    if (shape->prelude == PRELUDE_TEMPLATE)
        return rdb_template_begin(r, ev);
    if (shape->prelude == PRELUDE_NAMES)
        return rdb_names_begin(r, ev);
    if (shape->prelude == PRELUDE_BITMAP)
        return rdb_bitmap_begin(r, ev);
    struct cur c;
    int st = rdb_read_parse(r, parse_prelude, shape->prelude, ev, &c);
    if (st != STEP_ON)
        return st;
    rdb_read_consume(r, (size_t)(c.p - c.base));
    return rdb_value_open(r, ev);
}

int rdb_value_open(struct rdb_reader *r, struct rdb_event *ev)
{
    ev->kind = RDB_VALUE;
    ev->offset = r->value_off;
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(NULL, 0);
    ev->value.type = r->type;
    r->pc = rdb_shape(r->form->id)->body;
    r->depth = 0;
    r->n_elems = 0;
    r->tail_due = TAIL_NONE;
    r->field_expire = RDB_NO_EXPIRE;
    r->min_expire = ev->value.min_expire_ms;
    r->loop_count = ev->value.count != RDB_UNKNOWN ? ev->value.count : ev->value.nodes;
    r->module_aux = false;
    r->item_open = false;
    r->stream = (struct stream){.n_nodes = r->loop_count};
    bool nodes = rdb_read_checks(r) && r->opts.notes && r->type->kind == RDB_KIND_STREAM;
    if ((nodes || tracks_members(r)) &&
        !rdb_unique_begin(&r->unique, nodes ? ev->value.nodes : ev->value.count))
        return rdb_read_nomem(r, 0);
    if (r->loop_count == 0 && r->type->kind != RDB_KIND_STREAM)
        rdb_read_note(r, RDB_NOTE_EMPTY_COLLECTION, ev->offset, RD_NO_OFFSET, 0,
                      "collection without elements; servers drop the key");
    r->step = rdb_value_run;
    return RDB_EVENT;
}

/* The value's program if it is one string: OP_STR or OP_PACK; else OP_END. */
static enum op only_op(const struct shape *shape)
{
    return shape->prelude == PRELUDE_NONE && shape->body != NULL && shape->body[1].op == OP_END &&
                   shape->body[0].op != OP_TEMPLATE_PACK
               ? (enum op)shape->body[0].op
               : OP_END;
}

int rdb_value_quick(struct rdb_reader *r, struct rdb_event *ev)
{
    const struct shape *shape = rdb_shape(r->form->id);
    struct rdb_str_head head;
    const uint8_t *p = r->src->cur;
    size_t have = rd_src_avail(r->src);
    enum op op = only_op(shape);
    if (op == OP_END || r->big.len > 0 || rdb_str_head_parse(p, have, &head) != RDB_PARSE_OK ||
        head.stored > r->piece || head.total > r->piece || have - head.size < head.stored ||
        (head.kind == RDB_STR_LZF && !rdb_lzf_possible(head.stored, head.total)) ||
        (head.kind == RDB_STR_INT && op == OP_PACK))
        return rdb_value_begin(r, ev);
    uint64_t off = rdb_read_offset(r);
    int st = STEP_ON;
    if (op == OP_PACK)
        st = rdb_batch_pack(r, &head, p + head.size, off, shape->body[0].arg);
    else if (head.kind == RDB_STR_LZF)
        st = rdb_batch_verify(r, &head, p + head.size, off);
    else
        rdb_read_consume(r, head.size + (size_t)head.stored);
    r->step = rdb_record_step;
    return st;
}

bool rdb_value_pass(struct rdb_reader *r)
{
    struct rdb_str_head head;
    const uint8_t *p = r->src->cur;
    size_t have = rd_src_avail(r->src);
    if (r->step != rdb_value_begin || r->big.len > 0 || only_op(rdb_shape(r->form->id)) == OP_END ||
        rdb_str_head_parse(p, have, &head) != RDB_PARSE_OK || have - head.size < head.stored ||
        (head.kind == RDB_STR_LZF && !rdb_lzf_possible(head.stored, head.total)))
        return false;
    rdb_read_consume(r, head.size + (size_t)head.stored);
    r->type = NULL;
    r->detail = r->opts.detail;
    r->step = rdb_record_step;
    return true;
}

static int value_end(struct rdb_reader *r, struct rdb_event *ev)
{
    ev->kind = RDB_VALUE_END;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
    ev->raw = rd_slice(NULL, 0);
    ev->value_end.count = r->n_elems;
    ev->value_end.bytes = ev->offset - r->value_off;
    if (rdb_read_checks(r) && r->unique.full)
        rdb_read_note(r, RDB_NOTE_UNCHECKED_MEMBERS, r->value_off, RD_NO_OFFSET, r->n_elems,
                      "too many members to check all of them for duplicates");
    r->unique.full = false;
    r->type = NULL;
    r->detail = r->opts.detail;
    r->step = rdb_record_step;
    if (r->single)
        r->step = rdb_payload_step;
    return RDB_EVENT;
}

static void loop_begin(struct rdb_reader *r)
{
    const struct instr *body = r->pc + 1;
    if (r->loop_count > 0) {
        struct rdb_read_loop *loop = &r->loops[r->depth++];
        *loop = (struct rdb_read_loop){body, r->loop_count};
        r->pc = body;
        if (r->batch != NULL || r->detail == RDB_DETAIL_FRAMES)
            rdb_skim_table(r, loop);
        return;
    }
    for (int open = 1; open > 0; body++)
        open += body->op == OP_EACH ? 1 : body->op == OP_NEXT ? -1 : 0;
    r->pc = body;
}

static void loop_next(struct rdb_reader *r)
{
    struct rdb_read_loop *loop = &r->loops[r->depth - 1];
    if (--loop->left > 0) {
        r->pc = loop->start;
        if (r->batch != NULL || r->detail == RDB_DETAIL_FRAMES)
            rdb_skim_table(r, loop);
    } else {
        r->depth--;
        r->pc++;
    }
}

/* The strings that complete an element. */
static bool completes(uint8_t role)
{
    return role != RDB_ROLE_FIELD;
}

static void note_duplicate(struct rdb_reader *r, uint64_t off, struct rd_slice member)
{
    const char *text = "member that the collection already has";
    if (!rdb_unique_add(&r->unique, rdb_hash_member(&r->key, member.ptr, member.len)) &&
        rdb_duplicate_named(r, RDB_ELEM, member, off, &text))
        rdb_read_note(r, RDB_NOTE_DUPLICATE_MEMBER, off, RD_NO_OFFSET, r->n_elems, text);
}

/* A string that is not returned. STEP_ON: consumed, with its tail. */
static int pass_string(struct rdb_reader *r, uint8_t role, enum tail tail)
{
    int st;
    if (r->tail_due == TAIL_NONE) {
        bool known = false;
        char tmp[RD_NUM_I64_MAX];
        struct rd_slice member;
        uint64_t off = rdb_read_offset(r);
        if (is_unique_role(r, role))
            st = rdb_read_member(r, tmp, &member, &known);
        else
            st = rdb_read_pass(r, rdb_read_checks(r));
        if (st != STEP_ON)
            return st;
        if (known)
            note_duplicate(r, off, member);
        r->tail_due = (uint8_t)tail;
    }
    if (r->tail_due != TAIL_NONE) {
        st = rdb_read_pass_tail(r, tail);
        if (st != STEP_ON)
            return st;
        r->tail_due = TAIL_NONE;
    }
    return STEP_ON;
}

static int string_op(struct rdb_reader *r, uint8_t role, enum tail tail, struct rdb_event *ev)
{
    int st;
    if (!rdb_read_gives(r)) {
        st = pass_string(r, role, tail);
        if (st != STEP_ON)
            return st;
    } else {
        if (role == RDB_ROLE_FIELD && r->type->id == RDB_TYPE_HASH_2)
            r->field_expire = RDB_NO_EXPIRE;
        st = r->pieces.active ? rdb_read_piece(r, ev)
                              : rdb_read_string(r, RDB_ELEM, (enum rdb_role)role, tail, ev);
        if (st != RDB_EVENT || ev->elem.str.more)
            return st;
    }
    r->n_elems += completes(role);
    r->pc++;
    return st;
}

static bool parse_ttl(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    (void)ev;
    return rdb_cur_len(c, &r->ttl);
}

static int ttl_op(struct rdb_reader *r, bool absolute, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_ttl, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    uint64_t ttl = r->ttl;
    uint64_t base = absolute ? 0 : (uint64_t)r->min_expire - 1;
    r->field_expire = ttl == 0 ? RDB_NO_EXPIRE : (int64_t)(base + ttl);
    if (ttl != 0 && r->field_expire < (absolute ? 0 : r->min_expire))
        return rdb_read_corrupt(r, rdb_read_offset(r), "field expiry beyond the end of time");
    if (ttl != 0 && (r->field_expire < 0 || r->field_expire >= (int64_t)1 << 46))
        rdb_read_note(r, RDB_NOTE_FIELD_TTL_RANGE, rdb_read_offset(r), RD_NO_OFFSET, r->n_elems,
                      "field expiry that no server accepts");
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->pc++;
    return STEP_ON;
}

/* A plain node is one long element: servers refuse an empty one. Other faults of the string are
 * found when it is read. */
static int look_at_plain(struct rdb_reader *r)
{
    struct rd_slice s;
    struct rdb_str_head head;
    for (size_t want = 2;; want = 1 + head.size) {
        int st = rdb_read_need(r, want, &s);
        if (st != RDB_EVENT)
            return st;
        enum rdb_parse rc = rdb_str_head_parse(s.ptr + 1, s.len - 1, &head);
        if (rc == RDB_PARSE_OK && head.kind != RDB_STR_INT && head.total == 0)
            return rdb_read_corrupt(r, rdb_read_offset(r), "empty plain quicklist node");
        if (rc != RDB_PARSE_WANT)
            return STEP_ON;
    }
}

static int container_op(struct rdb_reader *r)
{
    struct rd_slice s;
    int st = rdb_read_need(r, 1, &s);
    if (st != RDB_EVENT)
        return st;
    uint8_t container = s.ptr[0];
    if (container != RDB_NODE_PLAIN && container != RDB_NODE_PACKED)
        return rdb_read_corrupt(r, rdb_read_offset(r), "quicklist node of an unknown kind");
    if (container == RDB_NODE_PLAIN && (st = look_at_plain(r)) != STEP_ON)
        return st;
    r->container = container;
    rdb_read_consume(r, 1);
    r->pc++;
    return STEP_ON;
}

static int pack_op(struct rdb_reader *r, uint8_t arg, struct rdb_event *ev)
{
    int st;
    if (r->detail == RDB_DETAIL_FRAMES) {
        st = rdb_read_pass(r, false);
    } else {
        st = STEP_ON;
        if (!r->walk.active)
            st = rdb_packed_begin(r, (enum rdb_codec)(arg >> 4), (enum layout)(arg & 15));
        if (st == STEP_ON)
            st = rdb_packed_run(r, ev);
    }
    if (st == RDB_END) {
        r->pc++;
        return STEP_ON;
    }
    if (st == STEP_ON && r->detail == RDB_DETAIL_FRAMES)
        r->pc++;
    return st;
}

static int item_string(struct rdb_reader *r, struct rdb_event *ev)
{
    int st = string_op(r, RDB_ROLE_ITEM, TAIL_NONE, ev);
    bool more = st == RDB_EVENT && ev->elem.str.more;
    if (st == STEP_ON || (st == RDB_EVENT && !more))
        r->item_open = false;
    return st;
}

/* A number, as an integer or as the text of a double. */
static int item_number(struct rdb_reader *r, const struct cur *c, bool is_int, const uint8_t *num,
                       struct rdb_event *ev)
{
    char text[RD_NUM_F64_MAX];
    *ev = (struct rdb_event){.kind = RDB_ELEM, .offset = rdb_read_offset(r), .inner = RD_NO_OFFSET};
    ev->elem.role = RDB_ROLE_ITEM;
    ev->elem.index = r->index;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.str = (struct rdb_string){.is_int = is_int, .first = true};
    ev->elem.str.num = (int64_t)rd_get_le64(num);
    if (!is_int) {
        ev->elem.str.len = rd_num_put_f64(text, rd_get_le_f64(num));
        rd_buf_reset(&r->text);
        if (!rd_buf_add(&r->text, text, ev->elem.str.len))
            return rdb_read_nomem(r, sizeof text);
        ev->elem.str.ptr = r->text.ptr;
        ev->elem.str.total = ev->elem.str.len;
    }
    rdb_read_consume(r, (size_t)(c->p - c->base));
    r->n_elems++;
    r->pc++;
    return rdb_read_gives(r) ? RDB_EVENT : STEP_ON;
}

/* The encodings of an array's item. */
enum item_tag { TAG_STRING, TAG_INT, TAG_DOUBLE, TAG_SMALL };

static bool parse_item(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    const uint8_t *num;
    (void)arg;
    (void)ev;
    return rdb_cur_len(c, &r->index) && rdb_cur_len(c, &r->tag) &&
           ((r->tag != TAG_INT && r->tag != TAG_DOUBLE) || cur_take(c, 8, &num));
}

/* Redis Array: index, tag, value. Not checked against a server. */
static int item_op(struct rdb_reader *r, struct rdb_event *ev)
{
    if (r->item_open)
        return item_string(r, ev);
    struct cur c;
    int st = rdb_read_parse(r, parse_item, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    uint64_t tag = r->tag;
    if (tag > TAG_SMALL)
        return rdb_read_corrupt(r, rdb_read_offset(r), "array item of an unknown kind");
    if (tag == TAG_INT || tag == TAG_DOUBLE)
        return item_number(r, &c, tag == TAG_INT, c.p - 8, ev);
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->item_open = true;
    return item_string(r, ev);
}

static bool parse_path(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    (void)ev;
    return rdb_cur_str(r, c, &r->text, &r->path) && rdb_cur_len(c, &r->loop_count);
}

/* Valkey path hash: a path, and the number of its fields, which follow. Not checked against a
 * server. */
static int path_op(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    uint64_t off = rdb_read_offset(r);
    int st = rdb_read_parse(r, parse_path, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    if (r->loop_count == 0)
        return rdb_read_corrupt(r, rdb_read_offset(r), "path without fields");
    struct rd_slice path = r->path;
    rdb_read_consume(r, (size_t)(c.p - c.base));
    r->pc++;
    /* A field is unique within its path. */
    if (tracks_members(r) && !rdb_unique_begin(&r->unique, r->loop_count))
        return rdb_read_nomem(r, 0);
    if (!rdb_read_gives(r))
        return STEP_ON;
    *ev = (struct rdb_event){.kind = RDB_ELEM, .offset = off, .inner = RD_NO_OFFSET};
    ev->elem.role = RDB_ROLE_PATH;
    ev->elem.str =
        (struct rdb_string){.ptr = path.ptr, .len = path.len, .total = path.len, .first = true};
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.index = r->loop_count;
    return RDB_EVENT;
}

static int run_one(struct rdb_reader *r, struct rdb_event *ev)
{
    const struct instr *in = r->pc;
    switch ((enum op)in->op) {
    case OP_END:
        return value_end(r, ev);
    case OP_EACH:
        loop_begin(r);
        return STEP_ON;
    case OP_NEXT:
        loop_next(r);
        return STEP_ON;
    case OP_STR:
        return string_op(r, in->arg, TAIL_NONE, ev);
    case OP_STR_SCORE:
        return string_op(r, RDB_ROLE_MEMBER, TAIL_SCORE, ev);
    case OP_STR_SCORE_TEXT:
        return string_op(r, RDB_ROLE_MEMBER, TAIL_SCORE_TEXT, ev);
    case OP_STR_EXPIRE:
        return string_op(r, in->arg, TAIL_EXPIRE, ev);
    case OP_TTL:
    case OP_TTL_ABS:
        return ttl_op(r, in->op == OP_TTL_ABS, ev);
    case OP_PACK:
        return pack_op(r, in->arg, ev);
    case OP_CONTAINER:
        return container_op(r);
    case OP_NODE:
        if (r->container == RDB_NODE_PLAIN)
            return string_op(r, RDB_ROLE_ELEMENT, TAIL_NONE, ev);
        return pack_op(r, PACK_ARG(RDB_LISTPACK, LAYOUT_LIST), ev);
    case OP_ITEM:
        return item_op(r, ev);
    case OP_PATH:
        return path_op(r, ev);
    case OP_BITMAP:
        return rdb_bitmap_run(r, ev);
    case OP_TEMPLATE_PACK:
        return rdb_template_pack(r, ev);
    case OP_TEMPLATE_FIELD:
        return rdb_template_field(r, ev);
    case OP_MODULE:
        return rdb_module_run(r, ev);
    case OP_STREAM_NODE:
    case OP_STREAM_TAIL:
    case OP_GROUP:
    case OP_PENDING:
    case OP_CONSUMERS:
    case OP_CONSUMER:
    case OP_OWNED:
    case OP_NACKS:
    case OP_NACKED:
    case OP_GROUP_END:
    case OP_IDMP:
    case OP_PRODUCER:
    case OP_PRODUCED:
    case OP_IDMP_END:
        break;
    }
    return rdb_stream_op(r, in, ev);
}

int rdb_value_run(struct rdb_reader *r, struct rdb_event *ev)
{
    int st;
    do
        st = run_one(r, ev);
    while (st == STEP_ON && !r->note_set);
    return st;
}
