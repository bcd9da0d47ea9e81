#include "stat/read.h"

#include "base/copy.h"
#include "base/endian.h"
#include "base/mem.h"
#include "rdb/plain.h"
#include "stat/pack.h"

/* ---- one key ---- */

static bool begin_key(struct stat_pass *pass, const struct rdb_event *ev, struct rd_err *err)
{
    struct rd_slice name = ev->key.name;
    rd_buf_reset(&pass->name);
    if (!rd_buf_reserve(&pass->name, name.len + 1))
        return rd_err_nomem(err, name.len);
    rd_copy_short(pass->name.ptr, name.ptr, name.len);
    pass->key = (struct stat_key){.name = rd_slice(pass->name.ptr, name.len),
                                  .type = ev->key.type,
                                  .db = ev->key.db,
                                  .expire_ms = ev->key.expire_ms};
    stat_value_begin(&pass->value, pass->layout, ev->key.type);
    pass->lengths = pass->aside != NULL ? pass->aside : &pass->sum->lengths[ev->key.type->kind];
    pass->in_value = true;
    return true;
}

/* All of the key has been measured. */
static bool end_key(struct stat_pass *pass, struct rd_err *err)
{
    struct stat_key *key = &pass->key;
    if (pass->aside != NULL) {
        if (filter_wants_size(pass->filter, key->stored))
            stat_hist_merge(&pass->sum->lengths[key->type->kind], pass->aside);
        memset(pass->aside, 0, sizeof *pass->aside);
        if (!filter_wants_size(pass->filter, key->stored))
            return true;
    }
    stat_sum_add(pass->sum, key);
    return pass->row == NULL || pass->row(pass->row_ctx, key, err);
}

static uint64_t string_memory(const struct stat_layout *layout, const struct stat_key *key,
                              uint64_t len, bool number)
{
    const struct stat_string string = {.name_len = key->name.len,
                                       .len = len,
                                       .number = number,
                                       .expires = key->expire_ms != RDB_NO_EXPIRE};
    return stat_memory_string(layout, &string);
}

static bool end_value(struct stat_pass *pass, const struct rdb_event *ev, struct rd_err *err)
{
    struct stat_key *key = &pass->key;
    if (!pass->in_value)
        return true;
    pass->in_value = false;
    key->stored = ev->value_end.bytes;
    key->elements = ev->value_end.count;
    if (key->type->kind == RDB_KIND_STRING || key->type->kind == RDB_KIND_MODULE)
        key->elements = 1;
    key->largest = pass->value.largest;
    key->packed = stat_value_packed(&pass->value);
    key->memory =
        stat_value_key(&pass->value, key->stored, key->name.len, key->expire_ms != RDB_NO_EXPIRE);
    return end_key(pass, err);
}

static void elem(struct stat_pass *pass, const struct rdb_event *ev)
{
    stat_value_elem(&pass->value, ev);
    if (ev->elem.str.first)
        stat_hist_add(pass->lengths, pass->value.length, pass->weight);
}

static void packed(struct stat_pass *pass, const struct rdb_event *ev)
{
    uint64_t largest = ev->packed.blob.len;
    if (ev->packed.plain)
        stat_hist_add(pass->lengths, largest, pass->weight);
    else
        largest = stat_pack_lengths(ev->packed.blob, ev->packed.codec, pass->key.type, pass->weight,
                                    pass->lengths);
    stat_value_blob(&pass->value, ev);
    pass->value.largest = largest > pass->value.largest ? largest : pass->value.largest;
}

static bool pass_event(struct stat_pass *pass, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_KEY:
        return begin_key(pass, ev, err);
    case RDB_VALUE:
        if (ev->value.type->kind == RDB_KIND_MODULE)
            pass->key.module_id = ev->value.module_id;
        return true;
    case RDB_ELEM:
        elem(pass, ev);
        return true;
    case RDB_PACKED:
        packed(pass, ev);
        return true;
    case RDB_PACKED_LONG:
        stat_value_blob(&pass->value, ev);
        return true;
    case RDB_VALUE_END:
        return end_value(pass, ev, err);
    case RDB_GROUP:
    case RDB_PENDING:
    case RDB_CONSUMER:
    case RDB_OWNED:
    case RDB_PRODUCER:
    case RDB_PRODUCED:
        stat_value_group(&pass->value, ev);
        return true;
    default:
        return true;
    }
}

static void pass_done(struct stat_pass *pass)
{
    rd_buf_done(&pass->name);
    rd_free(pass->aside);
    pass->aside = NULL;
}

/* ---- the bytes in the window after a key ---- */

/* The header of a string. docs/format/rdb.md has the byte diagram. */
struct head {
    uint64_t before; /* bytes of the value before it */
    uint64_t size;   /* of the header, including the bytes of an integer */
    uint64_t stored; /* bytes after it */
    uint64_t len;    /* decompressed; 0 for an integer */
    int64_t num;
    bool is_int;
    bool lzf;
};

static bool get_len(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *q = *p;
    size_t have = (size_t)(end - q);
    if (have >= 1 && q[0] < 0x40) {
        *ret = q[0];
        *p = q + 1;
    } else if (have >= 2 && q[0] < 0x80) {
        *ret = (uint64_t)(q[0] & 63) << 8 | q[1];
        *p = q + 2;
    } else if (have >= 5 && q[0] == 0x80) {
        *ret = rd_get_be32(q + 1);
        *p = q + 5;
    } else if (have >= 9 && q[0] == 0x81) {
        *ret = rd_get_be64(q + 1);
        *p = q + 9;
    } else {
        return false;
    }
    return true;
}

/* False: the window is too short, or the encoding is unknown. */
static bool get_head(struct rd_slice seen, struct head *ret)
{
    const uint8_t *p = seen.ptr, *end = p + seen.len;
    *ret = (struct head){0};
    if (seen.len < 5)
        return false;
    if (p[0] >= 0xc0 && p[0] <= 0xc2) {
        static const uint8_t widths[] = {1, 2, 4};
        ret->is_int = true;
        ret->size = 1u + widths[p[0] - 0xc0];
        ret->num = p[0] == 0xc0   ? (int8_t)p[1]
                   : p[0] == 0xc1 ? (int16_t)rd_get_le16(p + 1)
                                  : (int32_t)rd_get_le32(p + 1);
        return true;
    }
    ret->lzf = p[0] == 0xc3;
    p += ret->lzf;
    if (!get_len(&p, end, &ret->stored))
        return false;
    ret->len = ret->stored;
    if (ret->lzf && !get_len(&p, end, &ret->len))
        return false;
    ret->size = (uint64_t)(p - seen.ptr);
    return true;
}

/* Whether the server stores this text as an integer. */
static bool is_number(const struct head *head, struct rd_slice seen)
{
    int64_t num;
    return head->is_int ||
           (head->len > 0 && head->len <= RD_NUM_I64_MAX && head->stored == head->len &&
            seen.len - head->size >= head->len &&
            rd_num_get_i64(rd_slice(seen.ptr + head->size, (size_t)head->len), &num));
}

static bool adopt(struct stat_read *read, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(read->reader));
    return false;
}

/* Fills in the key before its value is read. The name is borrowed from the event. */
static void quick_begin(struct stat_read *read, const struct rdb_event *ev, const struct head *head)
{
    struct stat_pass *pass = &read->pass;
    pass->key = (struct stat_key){.name = ev->key.name,
                                  .type = ev->key.type,
                                  .db = ev->key.db,
                                  .expire_ms = ev->key.expire_ms,
                                  .stored = head->before + head->size + head->stored,
                                  .elements = 1};
    pass->lengths = pass->aside != NULL ? pass->aside : &pass->sum->lengths[ev->key.type->kind];
}

/* Measures a string by its header. */
static void quick_string(struct stat_read *read, const struct head *head, struct rd_slice seen)
{
    struct stat_key *key = &read->pass.key;
    char digits[RD_NUM_I64_MAX];
    uint64_t len = head->is_int ? rd_num_put_i64(digits, head->num) : head->len;
    key->largest = len;
    key->memory = string_memory(read->layout, key, len, is_number(head, seen));
    stat_hist_add(read->pass.lengths, len, 1);
}

/* Returns the first decompressed bytes of a compressed string, as far as they are stored literally:
 * runs of up to 32 bytes, each after a byte with its length less one. */
static struct rd_slice literals(struct rd_slice lzf, uint8_t dst[STAT_PACK_HEAD])
{
    size_t n = 0, at = 0;
    while (n < STAT_PACK_HEAD && at < lzf.len && lzf.ptr[at] < 32) {
        size_t run = lzf.ptr[at++] + 1u;
        for (; run > 0 && at < lzf.len && n < STAT_PACK_HEAD; run--)
            dst[n++] = lzf.ptr[at++];
    }
    return rd_slice(dst, n);
}

/* Whether the elements of a compressed collection may be skipped. */
static bool may_pass(struct stat_read *read, const struct stat_key *key)
{
    const struct stat_top *a = &read->sum.by_memory, *b = &read->sum.by_elements;
    uint64_t n = read->n_packed[key->type->kind]++;
    if (read->exact || read->row != NULL || n < STAT_SAMPLE_FROM)
        return false;
    return !stat_top_wants(a, key->memory) && !stat_top_wants(b, key->elements);
}

/* Measures a collection that is one packed string within the window. *ret_done false: it has to be
 * decompressed, and its lengths count read->pass.weight times. */
static void quick_packed(struct stat_read *read, const struct head *head, struct rd_slice seen,
                         enum rdb_codec codec, bool *ret_done)
{
    struct stat_pass *pass = &read->pass;
    struct stat_key *key = &pass->key;
    struct rd_slice stored = rd_slice(seen.ptr + head->size, (size_t)head->stored);
    uint8_t bytes[STAT_PACK_HEAD];
    struct rd_slice first = head->lzf ? literals(stored, bytes) : stored;
    if (!stat_pack_count(first, codec, key->type, &key->elements) || key->elements == 0)
        return;
    key->memory = stat_memory_key(pass->layout, key->name.len, key->expire_ms != RDB_NO_EXPIRE) +
                  (key->type->kind == RDB_KIND_LIST
                       ? stat_memory_list(read->layout, key->type->id, head->len)
                       : stat_memory_blob(read->layout, key->type->id, head->len));
    key->largest = RDB_UNKNOWN;
    *ret_done = true;
    if (may_pass(read, key)) {
        if (read->n_packed[key->type->kind] % STAT_SAMPLE_EVERY != 0)
            return;
        pass->weight = STAT_SAMPLE_EVERY;
    }
    if (head->lzf)
        *ret_done = false;
    else
        key->largest = stat_pack_lengths(stored, codec, key->type, pass->weight, pass->lengths);
}

/* Finds the header of the only node of a list, its codec, and the bytes before it. False: the list
 * has several nodes, or a plain one. */
static bool one_node(struct rd_slice *seen, enum rdb_type_id id, enum rdb_codec *ret)
{
    enum { PACKED = 2 };
    const uint8_t *p = seen->ptr, *end = p + seen->len;
    uint64_t nodes, container = PACKED;
    if ((id != RDB_TYPE_LIST_QUICKLIST && id != RDB_TYPE_LIST_QUICKLIST_2) ||
        !get_len(&p, end, &nodes) || nodes != 1)
        return false;
    if (id == RDB_TYPE_LIST_QUICKLIST_2 && !get_len(&p, end, &container))
        return false;
    *seen = rd_slice(p, (size_t)(end - p));
    *ret = id == RDB_TYPE_LIST_QUICKLIST_2 ? RDB_LISTPACK : RDB_ZIPLIST;
    return container == PACKED;
}

/* Measures a key without its events if possible; *ret_done false: the caller must read them. */
static bool quick_key(struct stat_read *read, const struct rdb_event *ev, bool *ret_done,
                      struct rd_err *err)
{
    struct head head;
    enum rdb_codec codec = RDB_LISTPACK;
    enum rdb_type_id id = ev->key.type->id;
    struct rd_slice seen = rd_slice(read->src->cur, rd_src_avail(read->src));
    *ret_done = false;
    read->pass.weight = 1;
    /* The value is in the window, unless the key was longer than the window. */
    if (ev->offset + ev->raw.len != rd_src_offset(read->src) ||
        (id != RDB_TYPE_STRING && !stat_pack_codec(id, &codec) && !one_node(&seen, id, &codec)) ||
        !get_head(seen, &head))
        return true;
    head.before = (uint64_t)(seen.ptr - read->src->cur);
    if (id != RDB_TYPE_STRING && (head.is_int || seen.len - head.size < head.stored))
        return true;
    quick_begin(read, ev, &head);
    if (id == RDB_TYPE_STRING) {
        quick_string(read, &head, seen);
        *ret_done = true;
    } else {
        quick_packed(read, &head, seen, codec, ret_done);
    }
    return !*ret_done || (end_key(&read->pass, err) &&
                          (rdb_reader_skip_value(read->reader) == RDB_EVENT || adopt(read, err)));
}

/* ---- keys without events ---- */

static bool plain_key(struct stat_read *read, uint64_t db, const struct rdb_plain *plain,
                      struct rd_err *err)
{
    struct stat_pass *pass = &read->pass;
    const uint8_t *value = plain->name.ptr + plain->name.len,
                  *end = plain->raw.ptr + plain->raw.len;
    char digits[RD_NUM_I64_MAX];
    int64_t num;
    uint64_t len = plain->is_int ? rd_num_put_i64(digits, plain->num) : plain->value.len;
    bool is_number = plain->is_int || rd_num_get_i64(plain->value, &num);
    pass->key = (struct stat_key){.name = plain->name,
                                  .type = rdb_type_get(RDB_TYPE_STRING),
                                  .db = db,
                                  .expire_ms = plain->expire_ms,
                                  .stored = (uint64_t)(end - value),
                                  .elements = 1,
                                  .largest = len};
    pass->key.memory = string_memory(read->layout, &pass->key, len, is_number);
    pass->lengths = pass->aside != NULL ? pass->aside : &pass->sum->lengths[RDB_KIND_STRING];
    stat_hist_add(pass->lengths, len, 1);
    return end_key(pass, err);
}

/* Reads the plain keys that follow in the database; at most a batch, so that progress is shown. */
static bool plain_keys(struct stat_read *read, uint64_t db, struct rd_err *err)
{
    enum { AT_ONCE = 32, TURNS = 32 };
    struct rdb_plain keys[AT_ONCE];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t n = rdb_plain_take(read->reader, UINT64_MAX, keys, AT_ONCE);
        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++)
            if (!plain_key(read, db, &keys[i], err))
                return false;
    }
    return true;
}

static bool key_event(struct stat_read *read, const struct rdb_event *ev, struct rd_err *err)
{
    bool done, filtered = read->filter != NULL && filter_active(read->filter);
    uint64_t db = ev->key.db;
    if (filtered && !filter_wants(read->filter, ev))
        return rdb_reader_skip_value(read->reader) == RDB_EVENT || adopt(read, err);
    if (!quick_key(read, ev, &done, err))
        return false;
    if (!done)
        return pass_event(&read->pass, ev, err);
    return filtered || plain_keys(read, db, err);
}

/* ---- the metadata of the file ---- */

static void begin_file(struct stat_read *read, const struct rdb_event *ev)
{
    read->meta.dialect = ev->header.dialect;
    read->meta.version = ev->header.version;
    read->layout = read->wanted != NULL ? read->wanted
                                        : stat_layout_of(ev->header.dialect, ev->header.version);
    read->pass.layout = read->layout;
}

/* Valkey 8 writes the RDB version of Redis 7.2, Redis 8.0 that of 7.4. */
static void note_layout(struct stat_read *read)
{
    if (read->wanted == NULL)
        read->layout = stat_layout_of_release(read->layout, &read->meta.writer);
    read->pass.layout = read->layout;
}

static void note_time(struct stat_read *read, int64_t seconds)
{
    read->meta.ctime_s = seconds;
    if (seconds > 0 && seconds < INT64_MAX / 1000)
        read->sum.written_ms = seconds * 1000;
}

static void aux(struct stat_read *read, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice name = ev->aux.name, text = rdb_string_bytes(&ev->aux.value, tmp);
    int64_t num;
    if (!ev->aux.value.first || ev->aux.value.more)
        return;
    if (rdb_release_take(&read->meta.writer, name, text))
        note_layout(read);
    else if (rd_slice_is(name, "ctime") && rd_num_get_i64(text, &num))
        note_time(read, num);
    else if (rd_slice_is(name, "used-mem") && rd_num_get_i64(text, &num))
        read->meta.used_memory = num;
}

static bool event(struct stat_read *read, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_HEADER:
        begin_file(read, ev);
        return true;
    case RDB_AUX:
        aux(read, ev);
        return true;
    case RDB_FUNCTION:
        read->meta.functions += ev->function.code.first;
        return true;
    case RDB_KEY:
        return key_event(read, ev, err);
    case RDB_TRAILER:
        return read->at_end == NULL || read->at_end(read->ctx, ev, err);
    default:
        return pass_event(&read->pass, ev, err);
    }
}

/* ---- the whole file ---- */

static bool begin(struct stat_read *read, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .long_packed = true);
    if (!stat_sum_init(&read->sum, &read->opts, err) ||
        !rdb_reader_new(&read->reader, read->src, &opts, err))
        return false;
    read->pass = (struct stat_pass){
        .sum = &read->sum, .filter = read->filter, .row = read->row, .row_ctx = read->row_ctx};
    if (read->filter == NULL || !filter_needs_size(read->filter))
        return true;
    read->pass.aside = rd_calloc(1, sizeof *read->pass.aside);
    return read->pass.aside != NULL || rd_err_nomem(err, sizeof *read->pass.aside);
}

static void report_progress(struct stat_read *read)
{
    enum { STEP = 256 * 1024 };
    read->next = rd_src_offset(read->src) + STEP;
    rd_watch_at(read->watch, rd_src_offset(read->src));
}

bool stat_read_run(struct stat_read *read, struct rd_err *err)
{
    if (!begin(read, err))
        return false;
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(read->reader, &ev)) == RDB_EVENT) {
        if (RD_UNLIKELY(rd_src_offset(read->src) >= read->next))
            report_progress(read);
        if (!event(read, &ev, err))
            return false;
    }
    if (status != RDB_END)
        return adopt(read, err);
    read->meta.bytes = rd_src_offset(read->src);
    return stat_sum_end(&read->sum, err);
}

void stat_read_done(struct stat_read *read)
{
    pass_done(&read->pass);
    rdb_reader_free(read->reader);
    stat_sum_done(&read->sum);
}
