/* record.c - everything outside of values: opcodes, and the headers of keys.
 *
 *     key record:  [ fc ms:8 | fd s:4 ] [ f8 idle:len | f9 freq:1 ]*  type  name  value
 *
 * Redis Enterprise also writes 6b len and 79 len there. They are skipped, and the event of such a
 * record has no bytes, so that copies do not contain them.
 *
 * The header of a record is parsed whole or not at all.
 */
#include "base/copy.h"
#include "base/resp_frame.h"
#include "rdb/read/reader_impl.h"
#include "rdb/version.h"

enum { KEY_META_CLASSES = 7 };

static int trailer_step(struct rdb_reader *r, struct rdb_event *ev);
static int key_meta_begin(struct rdb_reader *r, struct rdb_event *ev);

static void begin_event(struct rdb_reader *r, enum rdb_event_kind kind, struct rdb_event *ev)
{
    ev->kind = kind;
    ev->offset = rdb_read_offset(r);
    ev->inner = RD_NO_OFFSET;
}

/* Counts the Redis Enterprise opcodes before the record at the current position. */
static void count_enterprise(struct rdb_reader *r, uint64_t n)
{
    if (n > 0 && r->n_enterprise == 0)
        r->enterprise_at = rdb_read_offset(r);
    r->n_enterprise += n;
}

/* Consumes the parsed bytes and returns them with the event. */
static int took(struct rdb_reader *r, const struct cur *c, struct rdb_event *ev)
{
    size_t n = (size_t)(c->p - c->base);
    ev->raw = rd_slice(c->base, n);
    if (r->big.len > 0) {
        /* The bytes stay in place until the next need; only their length is reset. */
        r->big.len = 0;
    } else {
        rdb_read_consume(r, n);
    }
    return RDB_EVENT;
}

/* Whether the file's version has this opcode. */
static bool has_opcode(const struct rdb_reader *r, uint8_t op)
{
    return rdb_opcode_is_read(r->dialect, r->version, op) &&
           !(r->opts.no_enterprise && (op == RDB_OP_RAM_LRU || op == RDB_OP_SLOT_NUM));
}

/* -- keys -- */

static bool refuse_unknown(struct cur *c, const uint8_t *at)
{
    return rdb_cur_refuse(c, at, CUR_UNKNOWN, "unknown value type");
}

void rdb_read_drop_attributes(struct rdb_reader *r)
{
    r->held =
        (struct attributes){.expire_ms = RDB_NO_EXPIRE, .idle_s = RDB_UNKNOWN, .freq = RDB_UNKNOWN};
    r->holds = r->held_apart = false;
}

/* Numbers that are opcodes only in files of Redis Enterprise. Other servers refuse them. */
static bool is_enterprise(uint8_t op)
{
    return op == RDB_OP_RAM_LRU || op == RDB_OP_SLOT_NUM;
}

static bool parse_attribute(struct cur *c, uint8_t op, struct attributes *a)
{
    const uint8_t *p;
    uint64_t num;
    if (is_enterprise(op)) {
        a->n_enterprise++;
        return rdb_cur_len(c, &num);
    }
    a->own = true;
    switch (op) {
    case RDB_OP_EXPIRETIME_MS:
        if (!rdb_cur_u64le(c, &num))
            return false;
        a->expire_ms = (int64_t)num;
        a->expire_in_s = false;
        return true;
    case RDB_OP_EXPIRETIME:
        if (!cur_take(c, 4, &p))
            return false;
        a->expire_ms = (int64_t)(int32_t)rd_get_le32(p) * 1000;
        a->expire_in_s = true;
        return true;
    case RDB_OP_IDLE:
        return rdb_cur_len(c, &a->idle_s);
    default:
        if (!cur_take(c, 1, &p))
            return false;
        a->freq = p[0];
        return true;
    }
}

static bool is_attribute(uint8_t op)
{
    return op == RDB_OP_EXPIRETIME_MS || op == RDB_OP_EXPIRETIME || op == RDB_OP_IDLE ||
           op == RDB_OP_FREQ || is_enterprise(op);
}

/* Parses attributes up to the next byte. */
static bool parse_attributes(struct rdb_reader *r, struct cur *c, struct attributes *a,
                             uint8_t *ret_op)
{
    const uint8_t *op;
    const uint8_t *enterprise = NULL; /* the previous opcode, if it is a Redis Enterprise one */
    *a = r->held;
    for (;;) {
        if (!cur_take(c, 1, &op))
            return false;
        if (!is_attribute(op[0]) || !has_opcode(r, op[0]))
            break;
        enterprise = is_enterprise(op[0]) ? op : NULL;
        if (!parse_attribute(c, op[0], a))
            return false;
    }
    *ret_op = op[0];
    /* In damaged files the same numbers are letters of names: then no record follows. */
    if (enterprise != NULL && op[0] < RDB_OP_HASH_TEMPLATE &&
        rdb_type_find(r->dialect, r->version, op[0]) == NULL)
        return refuse_unknown(c, enterprise);
    return true;
}

static bool parse_key(struct rdb_reader *r, struct cur *c, struct rdb_event *ev,
                      uint64_t *ret_enterprise)
{
    uint8_t op;
    struct attributes a;
    if (!parse_attributes(r, c, &a, &op))
        return false;
    ev->key.expire_ms = a.expire_ms;
    ev->key.expire_in_s = a.expire_in_s;
    ev->key.idle_s = a.idle_s;
    ev->key.freq = a.freq;
    *ret_enterprise = a.n_enterprise;
    ev->key.type = rdb_type_find(r->dialect, r->version, op);
    if (ev->key.type == NULL)
        return op >= RDB_OP_HASH_TEMPLATE
                   ? rdb_cur_refuse(c, c->p - 1, CUR_APART,
                                    "an opcode between a key's attributes and its type")
                   : refuse_unknown(c, c->p - 1);
    return rdb_cur_str(r, c, &r->text, &ev->key.name);
}

/* The version in which a type that this version lacks appeared, or 0. */
static int later_version(const struct rdb_reader *r, uint8_t number)
{
    int newest = r->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX;
    const struct rdb_type *type = rdb_type_find(r->dialect, newest, number);
    return type != NULL ? type->since : 0;
}

static int unknown_type(struct rdb_reader *r, const struct cur *c)
{
    uint8_t number = c->p[0];
    uint64_t off = rdb_read_offset(r) + (uint64_t)(c->p - c->base);
    bool opcode = number >= RDB_OP_HASH_TEMPLATE;
    const struct rd_err_reason reason = {opcode ? RDB_REASON_OPCODE : RDB_REASON_TYPE, {number}};
    int since = opcode ? 0 : later_version(r, number);
    if (!opcode && rdb_is_gcra(r->dialect, r->version, number))
        rd_err_set_reason(&r->err, RD_ERR_UNSUPPORTED, off, reason,
                          "value type 33 is a counter of GCRA in %s: its layout is not known to "
                          "this program",
                          rdb_version_text(r->dialect, r->version).s);
    else if (since > 0)
        rd_err_set_reason(&r->err, RD_ERR_UNSUPPORTED, off, reason,
                          "value type %u exists since %s, but the file is %s", number,
                          rdb_version_text(r->dialect, since).s,
                          rdb_version_text(r->dialect, r->version).s);
    else
        rd_err_set_reason(&r->err, RD_ERR_UNSUPPORTED, off, reason,
                          "%s %u is not known in %s: this program is too old, or the file is "
                          "damaged",
                          opcode ? "opcode" : "value type", number,
                          rdb_version_text(r->dialect, r->version).s);
    rd_err_origin(&r->err, rd_src_origin(r->src));
    return RDB_FAIL;
}

/* Whether a field that KeyDB writes between the attributes of a key and its type begins `at` bytes
 * from here. RDB_EVENT: *ret is set. */
static int is_stamp(struct rdb_reader *r, size_t at, bool *ret)
{
    static const char head[] = {
        (char)RDB_OP_AUX, 11, 'm', 'v', 'c', 'c', '-', 't', 's', 't', 'a', 'm', 'p'};
    struct rd_slice s;
    *ret = false;
    for (size_t i = 0; i < sizeof head; i++) {
        int st = rdb_read_need(r, at + i + 1, &s);
        if (st != RDB_EVENT)
            return st;
        if (s.ptr[at + i] != (uint8_t)head[i])
            return RDB_EVENT;
    }
    *ret = true;
    return RDB_EVENT;
}

/* Attributes before a record that is not their key: servers keep them for the next key. The event
 * has the bytes, so that a copy of the next key does not have them. */
static int hold_attributes(struct rdb_reader *r, struct rdb_event *ev)
{
    /* The next byte belongs to the next record: it must still be in the source. */
    static const char too_long[] = "more attributes of a key than the window can hold";
    if (r->big.len > 0)
        return rdb_read_fail(r, RD_ERR_LIMIT, rdb_read_offset(r), too_long);
    struct cur c = cur_of(rd_slice(r->src->cur, rd_src_avail(r->src)));
    struct attributes seen;
    uint8_t op;
    bool stamp;
    (void)parse_attributes(r, &c, &seen, &op);
    int st = is_stamp(r, (size_t)(c.p - c.base) - 1, &stamp);
    if (st != RDB_EVENT)
        return st;
    if (r->big.len > 0)
        return rdb_read_fail(r, RD_ERR_LIMIT, rdb_read_offset(r), too_long);
    c = cur_of(rd_slice(r->src->cur, rd_src_avail(r->src)));
    (void)parse_attributes(r, &c, &r->held, &op);
    c.p--;
    count_enterprise(r, r->held.n_enterprise);
    r->held.n_enterprise = 0;
    r->holds = r->held_apart = true;
    begin_event(r, RDB_NOTE, ev);
    ev->note.id = RDB_NOTE_DANGLING;
    ev->note.detail = RDB_UNKNOWN;
    ev->note.text = "expiry or access time that does not precede its key";
    ev->note.key = rd_slice(NULL, 0);
    ev->note.type = NULL;
    ev->note.db = r->db;
    ev->note.record = r->record;
    st = took(r, &c, ev);
    return r->opts.notes && r->held.own && !stamp ? st : STEP_ON;
}

static void begin_value(struct rdb_reader *r, const struct rdb_event *ev)
{
    r->form = ev->key.type;
    r->type = rdb_template_whole(r->form);
    r->name_len = ev->key.name.len;
    r->shown_len = r->name_len < KEY_SHOWN ? r->name_len : KEY_SHOWN;
    rd_copy_short(r->shown, ev->key.name.ptr, r->shown_len);
    r->n_elems = 0;
    r->detail = r->opts.detail;
    r->step = r->batch != NULL ? rdb_value_quick : rdb_value_begin;
}

static int key_step(struct rdb_reader *r, struct rd_slice s, struct rdb_event *ev)
{
    struct cur c = cur_of(s);
    uint64_t n_enterprise = 0;
    begin_event(r, RDB_KEY, ev);
    while (!parse_key(r, &c, ev, &n_enterprise)) {
        if (c.want == 0 && c.cause == CUR_UNKNOWN)
            return unknown_type(r, &c);
        if (c.want == 0 && c.cause == CUR_APART)
            return c.p[0] == RDB_OP_KEY_META && has_opcode(r, RDB_OP_KEY_META) &&
                           r->dialect == RDB_REDIS
                       ? key_meta_begin(r, ev)
                       : hold_attributes(r, ev);
        int st = rdb_read_retry(r, &c, &s);
        if (st != STEP_ON)
            return st;
        c = cur_of(s);
        begin_event(r, RDB_KEY, ev);
    }
    ev->key.db = r->db;
    ev->key.record = ev->offset;
    ev->key.meta = rd_slice(NULL, 0);
    begin_value(r, ev);
    ev->key.type = r->type;
    count_enterprise(r, n_enterprise);
    int st = took(r, &c, ev);
    if (RD_UNLIKELY(n_enterprise > 0 || r->form != r->type))
        ev->raw = rd_slice(NULL, 0);
    if (RD_UNLIKELY(r->holds)) {
        if (r->held_apart)
            ev->raw = rd_slice(NULL, 0);
        rdb_read_drop_attributes(r);
    }
    return st;
}

/* -- opcodes -- */

/* The number of lengths that follow an opcode. */
enum { DB_NUMBERS = 1, DB_SIZE_NUMBERS = 2, SLOT_NUMBERS = 3 };

static bool parse_numbers(struct rdb_reader *r, struct cur *c, uint8_t n, struct rdb_event *ev)
{
    const uint8_t *op;
    uint64_t num[SLOT_NUMBERS];
    (void)r;
    if (!cur_take(c, 1, &op))
        return false;
    for (int i = 0; i < n; i++)
        if (!rdb_cur_len(c, &num[i]))
            return false;
    if (n == DB_NUMBERS) {
        ev->db = num[0];
    } else if (n == DB_SIZE_NUMBERS) {
        ev->db_size.keys = num[0];
        ev->db_size.expires = num[1];
    } else {
        ev->slot.slot = num[0];
        ev->slot.keys = num[1];
        ev->slot.expires = num[2];
    }
    return true;
}

static int numbers_step(struct rdb_reader *r, enum rdb_event_kind kind, uint8_t n,
                        struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_numbers, n, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, kind, ev);
    if (kind == RDB_DB)
        r->db = ev->db;
    return took(r, &c, ev);
}

static bool parse_aux_name(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    const uint8_t *op;
    (void)arg;
    return cur_take(c, 1, &op) && rdb_cur_str(r, c, &r->text2, &ev->aux.name);
}

/* AUX: a name and a value. The name is kept in r->text for all pieces of the value. */
static int aux_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_aux_name, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    struct rd_slice name = ev->aux.name;
    size_t prefix = (size_t)(c.p - c.base);
    if (prefix > r->piece)
        return rdb_read_fail(r, RD_ERR_LIMIT, rdb_read_offset(r), "auxiliary field name too long");
    rd_buf_reset(&r->text);
    if (!rd_buf_add(&r->text, name.ptr, name.len))
        return rdb_read_nomem(r, name.len);
    return rdb_read_prefixed(r, RDB_AUX, prefix, ev);
}

/* -- commands among the keys -- */

enum { UPDATE_MAX = 64 << 20 };

static const char update_too_long[] = "command among the keys longer than the limit of 64 MiB";

/* A mark, digits and CRLF. */
static bool take_number(struct cur *c, uint8_t mark, uint64_t *ret)
{
    const uint8_t *byte;
    struct rd_resp_number number = {0};
    enum rd_resp_scan scan = RD_RESP_SHORT;
    if (!cur_take(c, 1, &byte))
        return false;
    if (byte[0] != mark)
        return rdb_cur_refuse(c, byte, CUR_DAMAGED, "not a command");
    while (scan == RD_RESP_SHORT) {
        if (!cur_take(c, 1, &byte))
            return false;
        scan = rd_resp_number_step(&number, byte[0]);
    }
    if (scan == RD_RESP_BAD || number.value < 0)
        return rdb_cur_refuse(c, byte, CUR_DAMAGED, "not a number of a command");
    *ret = (uint64_t)number.value;
    return true;
}

static bool take_argument(struct cur *c)
{
    const uint8_t *bytes;
    uint64_t len;
    if (!take_number(c, '$', &len))
        return false;
    if (len > UPDATE_MAX)
        return rdb_cur_refuse(c, c->p, CUR_LIMIT, update_too_long);
    if (!cur_take(c, (size_t)len + 2, &bytes))
        return false;
    return (bytes[len] == '\r' && bytes[len + 1] == '\n') ||
           rdb_cur_refuse(c, bytes + len, CUR_DAMAGED, "argument without an end");
}

/* What was parsed is not parsed again when more has come. */
static bool parse_update(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    struct update *u = &r->update;
    (void)arg;
    (void)ev;
    if ((size_t)(c->end - c->base) < u->at) {
        c->want = u->at;
        return false;
    }
    c->p = c->base + u->at;
    if (u->at == 1) {
        if (!take_number(c, '*', &u->left))
            return false;
        if (u->left == 0)
            return rdb_cur_refuse(c, c->base + 1, CUR_DAMAGED, "command without arguments");
        u->at = (size_t)(c->p - c->base);
    }
    for (; u->left > 0; u->left--) {
        if (!take_argument(c))
            return false;
        u->at = (size_t)(c->p - c->base);
        if (u->at > UPDATE_MAX)
            return rdb_cur_refuse(c, c->p, CUR_LIMIT, update_too_long);
    }
    return true;
}

static int update_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    if (!r->opts.updates)
        return rdb_read_fail(r, RD_ERR_UNSUPPORTED, rdb_read_offset(r),
                             "a command among the keys (UPDATE), which only a replay applies: "
                             "this is the snapshot of a replication stream");
    if (r->update.record != r->record || r->update.at == 0)
        r->update = (struct update){.record = r->record, .at = 1};
    int st = rdb_read_parse(r, parse_update, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    r->update.at = 0;
    begin_event(r, RDB_UPDATE, ev);
    return took(r, &c, ev);
}

static bool parse_old_function(struct rdb_reader *r, struct cur *c, uint8_t arg,
                               struct rdb_event *ev)
{
    const uint8_t *op;
    struct rd_slice str;
    uint64_t described;
    (void)arg;
    if (!cur_take(c, 1, &op) || !rdb_cur_str(r, c, &r->text, &str) ||
        !rdb_cur_str(r, c, &r->text, &str) || !rdb_cur_len(c, &described) ||
        (described != 0 && !rdb_cur_str(r, c, &r->text, &str)) ||
        !rdb_cur_str(r, c, &r->text, &str))
        return false;
    ev->function.pre_ga = true;
    ev->function.code = (struct rdb_string){
        .ptr = str.ptr, .len = str.len, .total = str.len, .first = true, .more = false};
    return true;
}

/* The pre-release form of functions: name, engine, whether there is a description, [description],
 * code. All of it is one event, whose bytes are the stored strings. */
static int old_function_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_old_function, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, RDB_FUNCTION, ev);
    return took(r, &c, ev);
}

static bool parse_module_aux(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    const uint8_t *op;
    uint64_t opcode;
    (void)r;
    (void)arg;
    if (!cur_take(c, 1, &op) || !rdb_cur_len(c, &ev->module.id))
        return false;
    const uint8_t *at = c->p;
    if (!rdb_cur_len(c, &opcode))
        return false;
    if (opcode != RDB_MODULE_UINT)
        return rdb_cur_refuse(c, at, CUR_DAMAGED,
                              "module aux field without its position (before or after the keys)");
    return rdb_cur_len(c, &ev->module.when);
}

static int module_aux_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_module_aux, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, RDB_MODULE_AUX, ev);
    r->module_aux = true;
    r->n_elems = 0;
    r->tail_due = 0;
    r->value_off = ev->offset;
    r->step = rdb_module_run;
    return took(r, &c, ev);
}

/* Redis 13: count of classes, then for each a 32-bit class and module opcodes up to 0. */
int rdb_key_meta_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rd_slice s;
    int st = rdb_read_need(r, 4, &s);
    if (st != RDB_EVENT)
        return st;
    struct cur c = cur_of(s);
    const uint8_t *class = s.ptr;
    cur_take(&c, 4, &class);
    begin_event(r, RDB_KEY_META, ev);
    ev->module.id = rd_get_le32(class);
    ev->module.when = 0;
    r->meta_left--;
    r->module_aux = true;
    r->n_elems = 0;
    r->tail_due = 0;
    r->value_off = ev->offset;
    r->step = rdb_module_run;
    return took(r, &c, ev);
}

static bool parse_slot_import(struct rdb_reader *r, struct cur *c, uint8_t arg,
                              struct rdb_event *ev)
{
    const uint8_t *op;
    (void)arg;
    return cur_take(c, 1, &op) && rdb_cur_str(r, c, &r->text, &ev->slot_import.job) &&
           rdb_cur_len(c, &ev->slot_import.n_ranges);
}

static int slot_import_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_slot_import, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, RDB_SLOT_IMPORT, ev);
    r->ranges_left = ev->slot_import.n_ranges;
    return took(r, &c, ev);
}

/* Metadata is between a key's attributes and its type. */
static bool parse_key_meta(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    uint8_t op;
    (void)arg;
    if (!parse_attributes(r, c, &r->meta_held, &op))
        return false;
    const uint8_t *at = c->p;
    if (!rdb_cur_len(c, &ev->key_meta.n_classes))
        return false;
    return ev->key_meta.n_classes <= KEY_META_CLASSES ||
           rdb_cur_refuse(c, at, CUR_DAMAGED, "more metadata classes than a key can have");
}

static int key_meta_begin(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_key_meta, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, RDB_KEY_META_BEGIN, ev);
    r->held = r->meta_held;
    r->holds = true;
    r->meta_left = ev->key_meta.n_classes;
    r->step = r->meta_left > 0 ? rdb_key_meta_step : rdb_record_step;
    uint64_t n_enterprise = r->held.n_enterprise;
    r->held.n_enterprise = 0;
    count_enterprise(r, n_enterprise);
    st = took(r, &c, ev);
    if (n_enterprise > 0)
        ev->raw = rd_slice(NULL, 0);
    return st;
}

static bool parse_slot_range(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)r;
    (void)arg;
    return rdb_cur_len(c, &ev->slot_range.first) && rdb_cur_len(c, &ev->slot_range.last);
}

static int slot_range_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct cur c;
    int st = rdb_read_parse(r, parse_slot_range, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    begin_event(r, RDB_SLOT_RANGE, ev);
    r->ranges_left--;
    return took(r, &c, ev);
}

static int eof_step(struct rdb_reader *r, struct rdb_event *ev)
{
    if (r->batch != NULL && rdb_batch_run(r) == RDB_FAIL)
        return RDB_FAIL;
    r->type = NULL;
    rdb_read_consume(r, 1);
    r->step = trailer_step;
    return trailer_step(r, ev);
}

static int end_step(struct rdb_reader *r, struct rdb_event *ev)
{
    (void)r;
    (void)ev;
    return RDB_END;
}

static int trailer_step(struct rdb_reader *r, struct rdb_event *ev)
{
    bool present = r->version >= RDB_VERSION_CHECKSUM;
    struct rd_slice s = {0};
    if (present) {
        int st = rdb_read_need(r, RDB_TRAILER_LEN, &s);
        if (st != RDB_EVENT)
            return st;
    }
    begin_event(r, RDB_TRAILER, ev);
    ev->raw = rd_slice(s.ptr, present ? RDB_TRAILER_LEN : 0);
    ev->trailer.present = present;
    ev->trailer.stored = present ? rd_get_le64(s.ptr) : 0;
    ev->trailer.summed = r->summing;
    ev->trailer.computed = r->summing ? rd_src_sum(r->src) : 0;
    rd_src_sum_stop(r->src);
    r->summing = false;
    if (present)
        rdb_read_consume(r, RDB_TRAILER_LEN);
    r->step = end_step;
    return RDB_EVENT;
}

int rdb_record_step(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rd_slice s;
    if (r->pieces.active)
        return rdb_read_piece(r, ev);
    if (r->ranges_left > 0)
        return slot_range_step(r, ev);
    r->type = NULL;
    r->module_aux = false;
    r->record = rdb_read_offset(r);
    int st = rdb_read_need(r, 1, &s);
    if (st != RDB_EVENT)
        return st;
    uint8_t op = s.ptr[0];
    if (op < RDB_OP_HASH_TEMPLATE || (is_attribute(op) && has_opcode(r, op)))
        return key_step(r, s, ev);
    if (!has_opcode(r, op)) {
        struct cur c = cur_of(s);
        return unknown_type(r, &c);
    }
    switch (op) {
    case RDB_OP_SELECTDB:
        return numbers_step(r, RDB_DB, DB_NUMBERS, ev);
    case RDB_OP_RESIZEDB:
        return numbers_step(r, RDB_DB_SIZE, DB_SIZE_NUMBERS, ev);
    case RDB_OP_SLOT_INFO:
        return numbers_step(r, RDB_SLOT, SLOT_NUMBERS, ev);
    case RDB_OP_AUX:
        return aux_step(r, ev);
    case RDB_OP_FUNCTION2:
        return rdb_read_prefixed(r, RDB_FUNCTION, 1, ev);
    case RDB_OP_FUNCTION_PRE_GA:
        return old_function_step(r, ev);
    case RDB_OP_MODULE_AUX:
        return module_aux_step(r, ev);
    case RDB_OP_KEY_META:
        return r->dialect == RDB_VALKEY ? slot_import_step(r, ev) : key_meta_begin(r, ev);
    case RDB_OP_HASH_TEMPLATE:
        return r->dialect == RDB_VALKEY ? update_step(r, ev) : rdb_template_step(r, ev);
    default:
        return eof_step(r, ev);
    }
}

int rdb_payload_step(struct rdb_reader *r, struct rdb_event *ev)
{
    if (r->record == UINT64_MAX)
        return RDB_END;
    struct rd_slice s;
    int st = rdb_read_need(r, 1, &s);
    if (st != RDB_EVENT)
        return st;
    r->type = r->form = rdb_type_find(r->dialect, r->version, s.ptr[0]);
    if (r->type == NULL) {
        struct cur c = cur_of(s);
        return unknown_type(r, &c);
    }
    if (rdb_template_whole(r->type) != r->type)
        return rdb_read_corrupt(r, rdb_read_offset(r), rdb_template_alone);
    r->detail = r->opts.detail;
    rdb_read_consume(r, 1);
    r->record = UINT64_MAX;
    r->step = rdb_value_begin;
    return rdb_value_begin(r, ev);
}
