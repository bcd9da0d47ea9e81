#include "jobs/rows_impl.h"

#include "base/crc16.h"
#include "base/mem.h"
#include "base/src.h"
#include "json/text.h"
#include "rdb/version.h"

/* ---- text and bytes ---- */

bool rows_is_text(struct rd_slice bytes)
{
    const uint64_t high = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    if (bytes.len == 0)
        return true;
    const uint8_t *p = bytes.ptr, *end = p + bytes.len;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8) {
            memcpy(&eight, p, 8);
            /* A zero byte borrows from its high bit. */
            if (((eight | (eight - ones)) & high) == 0) {
                p += 8;
                continue;
            }
        }
        size_t n = *p == 0 ? 0 : *p < 0x80 ? 1 : json_text_character(p, (size_t)(end - p));
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

/* ---- rows ---- */

static void add(struct rows_row *row, struct rows_cell cell, struct rd_slice bytes)
{
    row->cells[row->n] = cell;
    row->bytes[row->n++] = bytes;
}

void rows_int(struct rows_row *row, int64_t num)
{
    add(row, (struct rows_cell){.kind = ROWS_INT, .num = num}, rd_slice(NULL, 0));
}

void rows_null(struct rows_row *row)
{
    add(row, (struct rows_cell){.kind = ROWS_NULL}, rd_slice(NULL, 0));
}

void rows_count(struct rows_row *row, uint64_t num)
{
    if (num == RDB_UNKNOWN)
        rows_null(row);
    else
        rows_int(row, (int64_t)num);
}

static void rows_time(struct rows_row *row, int64_t ms)
{
    if (ms == RDB_NO_EXPIRE)
        rows_null(row);
    else
        rows_int(row, ms);
}

/* What is not a number is NULL: SQLite has no other value for it. */
void rows_real(struct rows_row *row, double real)
{
    add(row, (struct rows_cell){.kind = ROWS_REAL, .real = real}, rd_slice(NULL, 0));
}

static void rows_blob(struct rows_row *row, struct rd_slice bytes)
{
    add(row, (struct rows_cell){.kind = ROWS_BLOB}, bytes);
}

void rows_text(struct rows_row *row, struct rd_slice text)
{
    add(row, (struct rows_cell){.kind = rows_is_text(text) ? ROWS_TEXT : ROWS_BLOB}, text);
}

void rows_word(struct rows_row *row, const char *word)
{
    add(row, (struct rows_cell){.kind = ROWS_TEXT}, rd_slice_str(word));
}

static void rows_long(struct rows_row *row, enum rows_kind kind, uint64_t length)
{
    add(row, (struct rows_cell){.kind = kind, .num = (int64_t)length}, rd_slice(NULL, 0));
}

/* Two cells. */
void rows_id(struct rows_row *row, struct rdb_stream_id id)
{
    rows_int(row, (int64_t)id.ms);
    rows_int(row, (int64_t)id.seq);
}

static bool conclude(const struct rows *rows, struct rd_err *err)
{
    if (RD_LIKELY(!rows->sink->failed))
        return true;
    rd_err_adopt(err, rd_sink_err(rows->sink));
    return false;
}

static size_t size_of(const struct rows_row *row)
{
    size_t size = sizeof(struct rows_head) + row->n * sizeof(struct rows_cell);
    for (unsigned i = 0; i < row->n; i++)
        size += row->bytes[i].len;
    return (size + 7) & ~(size_t)7;
}

static void write_row(uint8_t *to, const struct rows_row *row, size_t size)
{
    const struct rows_head head = {
        .table = (uint8_t)row->table, .n_cells = (uint8_t)row->n, .size = (uint32_t)size};
    size_t at = sizeof head + row->n * sizeof(struct rows_cell);
    memcpy(to, &head, sizeof head);
    for (unsigned i = 0; i < row->n; i++) {
        struct rows_cell cell = row->cells[i];
        struct rd_slice bytes = row->bytes[i];
        if (cell.kind == ROWS_TEXT || cell.kind == ROWS_BLOB) {
            cell.len = (uint32_t)bytes.len;
            cell.num = (int64_t)at;
            if (bytes.len > 0)
                memcpy(to + at, bytes.ptr, bytes.len);
            at += bytes.len;
        }
        memcpy(to + sizeof head + i * sizeof cell, &cell, sizeof cell);
    }
    memset(to + at, 0, size - at);
}

bool rows_put(struct rows *rows, const struct rows_row *row, struct rd_err *err)
{
    struct rd_sink *sink = rows->sink;
    size_t size = size_of(row);
    if (size > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "a row of more than 4 GiB");
    if (RD_UNLIKELY((size_t)(sink->end - sink->cur) < size) && rd_sink_flush(sink) &&
        (size_t)(sink->end - sink->cur) < size) {
        rd_buf_reset(&rows->raw);
        if (!rd_buf_reserve(&rows->raw, size))
            return rd_err_nomem(err, size);
        write_row(rows->raw.ptr, row, size);
        rd_sink_write(sink, rows->raw.ptr, size);
    } else if (!sink->failed) {
        write_row(sink->cur, row, size);
        sink->cur += size;
    }
    return conclude(rows, err);
}

static void put_piece(struct rows *rows, struct rd_slice piece)
{
    static const uint8_t zeros[8];
    size_t pad = -piece.len & 7;
    const struct rows_head head = {.table = ROWS_PIECE,
                                   .pad = (uint16_t)pad,
                                   .size = (uint32_t)(sizeof head + piece.len + pad)};
    if (piece.len == 0)
        return;
    rd_sink_write(rows->sink, &head, sizeof head);
    rd_sink_write(rows->sink, piece.ptr, piece.len);
    rd_sink_write(rows->sink, zeros, pad);
}

/* ---- strings of events ---- */

static bool too_long(const struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    char name[128];
    rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset,
               "a string of more than %d bytes: SQLite does not store it", ROWS_STRING_MAX);
    rd_err_quote(name, sizeof name, rd_buf_slice(&rows->name));
    rd_err_doing(err, "%s %s in db %llu", rdb_kind_name(rows->type->kind), name,
                 (unsigned long long)rows->db);
    return false;
}

/* Takes a piece of a string. *ret_done: it was the last one, and the string is in the text, or
 * written already. A whole string is borrowed from the event. */
struct taken {
    struct rd_slice whole;
    char digits[RD_NUM_I64_MAX];
    bool done;
    bool is_long;
    uint64_t length;
};

static bool take(struct rows *rows, const struct rdb_event *ev, const struct rdb_string *str,
                 struct taken *ret, struct rd_err *err)
{
    *ret = (struct taken){.done = !str->more};
    struct rd_slice piece = rdb_string_bytes(str, ret->digits);
    if (str->first && !str->more) {
        ret->whole = piece;
        return true;
    }
    rows->length = str->first ? piece.len : rows->length + piece.len;
    if (rows->length > ROWS_STRING_MAX)
        return too_long(rows, ev, err);
    put_piece(rows, piece);
    ret->is_long = true;
    ret->length = rows->length;
    return true;
}

static void add_taken(struct rows_row *row, const struct taken *taken)
{
    if (taken->is_long)
        rows_long(row, ROWS_LONG, taken->length);
    else
        rows_text(row, taken->whole);
}

bool rows_copy(struct rd_buf *to, struct rd_slice from, struct rd_err *err)
{
    rd_buf_reset(to);
    return rd_buf_add(to, from.ptr, from.len) || rd_err_nomem(err, from.len);
}

static bool hold(struct rows_text *text, const struct taken *taken, struct rd_err *err)
{
    text->is_set = true;
    text->is_long = taken->is_long;
    text->length = taken->length;
    return taken->is_long || rows_copy(&text->held, taken->whole, err);
}

static void add_held(struct rows_row *row, const struct rows_text *text)
{
    if (!text->is_set)
        rows_null(row);
    else if (text->is_long)
        rows_long(row, ROWS_LONG, text->length);
    else
        rows_text(row, rd_buf_slice(&text->held));
}

/* ---- elements ---- */

static enum rows_table table_of(enum rdb_kind kind)
{
    static const enum rows_table tables[RDB_KIND_COUNT] = {
        [RDB_KIND_STRING] = ROWS_STRINGS,    [RDB_KIND_LIST] = ROWS_LIST_ELEMENTS,
        [RDB_KIND_SET] = ROWS_SET_MEMBERS,   [RDB_KIND_ZSET] = ROWS_ZSET_MEMBERS,
        [RDB_KIND_HASH] = ROWS_HASH_FIELDS,  [RDB_KIND_STREAM] = ROWS_STREAM_ENTRIES,
        [RDB_KIND_ARRAY] = ROWS_ARRAY_ITEMS, [RDB_KIND_MODULE] = ROWS_MODULES,
    };
    return tables[kind];
}

/* What follows the string in the row of an element. */
static void add_rest(const struct rows *rows, struct rows_row *row, double score, int64_t expire_ms)
{
    if (rows->type->kind == RDB_KIND_ZSET) {
        rows_real(row, score);
    } else if (rows->type->kind == RDB_KIND_HASH) {
        rows_time(row, expire_ms);
        add_held(row, &rows->path);
    }
}

static bool put_pair(struct rows *rows, const struct taken *value, int64_t expire_ms,
                     struct rd_err *err)
{
    bool stream = rows->type->kind == RDB_KIND_STREAM;
    struct rows_row row = {.table = stream ? ROWS_STREAM_FIELDS : ROWS_HASH_FIELDS};
    add_held(&row, &rows->field);
    add_taken(&row, value);
    add_rest(rows, &row, 0, expire_ms);
    rows->field.is_set = false;
    return rows_put(rows, &row, err);
}

static bool put_elem(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct taken taken;
    struct rows_row row = {.table = table_of(rows->type->kind)};
    stat_value_elem(&rows->value, ev);
    rows->in_pack = ev->offset == rows->value.inside;
    if (!take(rows, ev, &ev->elem.str, &taken, err))
        return false;
    if (!taken.done)
        return conclude(rows, err);
    switch (ev->elem.role) {
    case RDB_ROLE_FIELD:
        return hold(&rows->field, &taken, err);
    case RDB_ROLE_PATH:
        return hold(&rows->path, &taken, err);
    case RDB_ROLE_VALUE:
        return put_pair(rows, &taken, ev->elem.expire_ms, err);
    case RDB_ROLE_ITEM:
        rows_count(&row, ev->elem.index);
        break;
    default:
        break;
    }
    add_taken(&row, &taken);
    add_rest(rows, &row, ev->elem.score, RDB_NO_EXPIRE);
    return rows_put(rows, &row, err);
}

static struct rd_slice text_bytes(const struct rdb_text *text, char digits[RD_NUM_I64_MAX])
{
    return text->is_int ? rd_slice(digits, rd_num_put_i64(digits, text->num))
                        : rd_slice(text->ptr, text->len);
}

/* Counts a string that is an allocation of the server. */
static void measure(struct rows *rows, const struct rdb_text *text)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .offset = RD_NO_OFFSET - 1};
    if (rows->in_pack)
        return;
    ev.elem.role = (enum rdb_role)text->role;
    ev.elem.score = text->score;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str = (struct rdb_string){.ptr = text->ptr,
                                      .len = text->len,
                                      .total = text->len,
                                      .num = text->num,
                                      .is_int = text->is_int,
                                      .first = true};
    stat_value_elem(&rows->value, &ev);
}

bool rows_texts(struct rows *rows, const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct taken taken = {.done = true};
        struct rows_row row = {.table = table_of(rows->type->kind)};
        taken.whole = text_bytes(&texts[i], taken.digits);
        measure(rows, &texts[i]);
        bool ok;
        if (texts[i].role == RDB_ROLE_FIELD) {
            ok = hold(&rows->field, &taken, err);
        } else if (texts[i].role == RDB_ROLE_VALUE) {
            ok = put_pair(rows, &taken, RDB_NO_EXPIRE, err);
        } else {
            add_taken(&row, &taken);
            add_rest(rows, &row, texts[i].score, RDB_NO_EXPIRE);
            ok = rows_put(rows, &row, err);
        }
        if (!ok)
            return false;
    }
    return true;
}

bool rows_entry(struct rows *rows, struct rdb_stream_id id, const struct rdb_text *texts, size_t n,
                struct rd_err *err)
{
    struct rows_row row = {.table = ROWS_STREAM_ENTRIES};
    rows_id(&row, id);
    rows_int(&row, (int64_t)(n / 2));
    return rows_put(rows, &row, err) && rows_texts(rows, texts, n, err);
}

static bool begin_entry(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct rows_row row = {.table = ROWS_STREAM_ENTRIES};
    rows_id(&row, ev->entry.id);
    rows_count(&row, ev->entry.n_fields);
    return rows_put(rows, &row, err);
}

/* ---- keys ---- */

static bool begin_key(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    rows->in_value = true;
    rows->in_pack = false;
    rows->type = ev->key.type;
    rows->db = ev->key.db;
    rows->idle_s = ev->key.idle_s;
    rows->freq = ev->key.freq;
    rows->expire_ms = ev->key.expire_ms;
    rows->field.is_set = rows->path.is_set = false;
    stat_value_begin(&rows->value, rows->layout, ev->key.type);
    return rows_copy(&rows->name, ev->key.name, err) && rows_copy(&rows->meta, ev->key.meta, err);
}

/* The row of a key, up to its sums. */
static void add_key(struct rows_row *row, uint64_t db, struct rd_slice name,
                    const struct rdb_type *type, int64_t expire_ms)
{
    rows_count(row, db);
    rows_text(row, name);
    rows_word(row, rdb_kind_name(type->kind));
    rows_word(row, type->encoding);
    rows_time(row, expire_ms);
}

/* The last cell is not a column: the table of the value. */
static void add_sums(struct rows_row *row, struct rd_slice name, uint64_t count, uint64_t bytes,
                     uint64_t memory)
{
    rows_count(row, count);
    rows_count(row, bytes);
    rows_count(row, memory);
    rows_int(row, rd_hash_slot(name));
}

static bool end_key(struct rows *rows, uint64_t count, uint64_t bytes, struct rd_err *err)
{
    struct rows_row row = {.table = ROWS_KEYS};
    struct rd_slice name = rd_buf_slice(&rows->name);
    bool single = rows->type->kind == RDB_KIND_STRING || rows->type->kind == RDB_KIND_MODULE;
    rows->in_value = false;
    add_key(&row, rows->db, name, rows->type, rows->expire_ms);
    add_sums(&row, name, single ? 1 : count, bytes,
             stat_value_key(&rows->value, bytes, name.len, rows->expire_ms != RDB_NO_EXPIRE));
    rows_count(&row, rows->idle_s);
    rows_count(&row, rows->freq);
    if (rows->meta.len > 0)
        rows_blob(&row, rd_buf_slice(&rows->meta));
    else
        rows_null(&row);
    rows_int(&row, table_of(rows->type->kind));
    return rows_put(rows, &row, err);
}

static bool put_plain(struct rows *rows, uint64_t db, const struct rdb_plain *key,
                      struct rd_err *err)
{
    struct rows_row value = {.table = ROWS_STRINGS}, row = {.table = ROWS_KEYS};
    char digits[RD_NUM_I64_MAX];
    int64_t num;
    struct rd_slice text =
        key->is_int ? rd_slice(digits, rd_num_put_i64(digits, key->num)) : key->value;
    const struct stat_string string = {
        .name_len = key->name.len,
        .len = text.len,
        .number = key->is_int || (text.len <= RD_NUM_I64_MAX && rd_num_get_i64(text, &num)),
        .expires = key->expire_ms != RDB_NO_EXPIRE};
    const uint8_t *begin = key->name.ptr + key->name.len, *end = key->raw.ptr + key->raw.len;
    rows_text(&value, text);
    add_key(&row, db, key->name, rdb_type_get(RDB_TYPE_STRING), key->expire_ms);
    add_sums(&row, key->name, 1, (uint64_t)(end - begin),
             stat_memory_string(rows->layout, &string));
    rows_null(&row);
    rows_null(&row);
    rows_null(&row);
    rows_int(&row, ROWS_STRINGS);
    return rows_put(rows, &value, err) && rows_put(rows, &row, err);
}

bool rows_plain(struct rows *rows, uint64_t db, const struct rdb_plain *keys, size_t n,
                struct rd_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!put_plain(rows, db, &keys[i], err))
            return false;
    return true;
}

bool rows_module(struct rows *rows, uint64_t id, struct rd_src *src, uint64_t size,
                 struct rd_slice json, struct rd_err *err)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    struct rows_row row = {.table = ROWS_MODULES};
    struct rd_slice piece;
    while (rd_src_need(src, 1, &piece) == RD_SRC_OK) {
        piece = rd_slice(src->cur, rd_src_avail(src));
        put_piece(rows, piece);
        rd_src_consume(src, piece.len);
    }
    rdb_module_name(id, name);
    rows_text(&row, rd_slice_str(name));
    rows_int(&row, rdb_module_encver(id));
    rows_long(&row, ROWS_LONG_BLOB, size);
    if (json.len > 0)
        rows_text(&row, json);
    else
        rows_null(&row);
    return rows_put(rows, &row, err) && end_key(rows, 1, size, err);
}

/* ---- records beside the keys ---- */

static bool begin_record(struct rows *rows, const char *kind, struct rd_slice name,
                         struct rd_err *err)
{
    rows->record = kind;
    rows->length = 0;
    return rows_copy(&rows->record_name, name, err);
}

static bool end_record(struct rows *rows, enum rows_kind kind, struct rd_err *err)
{
    struct rows_row row = {.table = ROWS_RECORDS};
    rows_word(&row, rows->record);
    rows_text(&row, rd_buf_slice(&rows->record_name));
    rows_long(&row, kind, rows->length);
    rows->record = NULL;
    return rows_put(rows, &row, err);
}

/* The next piece of a record; the last one ends it. */
static bool put_record(struct rows *rows, struct rd_slice piece, enum rows_kind kind, bool more,
                       struct rd_err *err)
{
    rows->length += piece.len;
    if (rows->length > ROWS_STRING_MAX)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "a record of more than %d bytes: SQLite does not store it",
                          ROWS_STRING_MAX);
    put_piece(rows, piece);
    return more ? conclude(rows, err) : end_record(rows, kind, err);
}

static bool copy_string(struct rows *rows, const char *kind, struct rd_slice name,
                        const struct rdb_string *str, enum rows_kind form, struct rd_err *err)
{
    char digits[RD_NUM_I64_MAX];
    return (!str->first || begin_record(rows, kind, name, err)) &&
           put_record(rows, rdb_string_bytes(str, digits), form, str->more, err);
}

static bool put_header(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    char digits[RD_NUM_I64_MAX];
    size_t len = rd_num_put_i64(digits, ev->header.version);
    rows->layout = stat_layout_of(ev->header.dialect, ev->header.version);
    return begin_record(rows, "rdb", rd_slice_str(rdb_dialect_name(ev->header.dialect)), err) &&
           put_record(rows, rd_slice(digits, len), ROWS_LONG, false, err);
}

static bool put_aux(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    char digits[RD_NUM_I64_MAX];
    struct rdb_release release = {0};
    const struct rdb_string *value = &ev->aux.value;
    if (value->first && !value->more &&
        rdb_release_take(&release, ev->aux.name, rdb_string_bytes(value, digits)))
        rows->layout = stat_layout_of_release(rows->layout, &release);
    return copy_string(rows, "aux", ev->aux.name, value, ROWS_LONG, err);
}

static bool begin_module_aux(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(ev->module.id, name);
    return begin_record(rows, "module-aux", rd_slice_str(name), err) &&
           put_record(rows, ev->raw, ROWS_LONG_BLOB, true, err);
}

static bool begin_import(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    rows->ranges_left = ev->slot_import.n_ranges;
    return begin_record(rows, "slot-import", ev->slot_import.job, err) &&
           put_record(rows, ev->raw, ROWS_LONG_BLOB, rows->ranges_left > 0, err);
}

static bool beside(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_HEADER:
        return put_header(rows, ev, err);
    case RDB_AUX:
        return put_aux(rows, ev, err);
    case RDB_FUNCTION:
        return copy_string(rows, ev->function.pre_ga ? "function-pre-ga" : "function",
                           rd_slice(NULL, 0), &ev->function.code,
                           ev->function.pre_ga ? ROWS_LONG_BLOB : ROWS_LONG, err);
    case RDB_MODULE_AUX:
        return begin_module_aux(rows, ev, err);
    case RDB_MODULE_ITEM:
    case RDB_VALUE_END:
        return rows->record == NULL ||
               put_record(rows, ev->raw, ROWS_LONG_BLOB, ev->kind == RDB_MODULE_ITEM, err);
    case RDB_SLOT_IMPORT:
        return begin_import(rows, ev, err);
    case RDB_SLOT_RANGE:
        return put_record(rows, ev->raw, ROWS_LONG_BLOB, --rows->ranges_left > 0, err);
    default:
        return true;
    }
}

/* ---- events ---- */

static bool end_value(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    return (rows->type->kind != RDB_KIND_STREAM || rows_stream_end(rows, err)) &&
           end_key(rows, ev->value_end.count, ev->value_end.bytes, err);
}

bool rows_event(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind == RDB_KEY)
        return begin_key(rows, ev, err);
    if (!rows->in_value)
        return beside(rows, ev, err);
    switch (ev->kind) {
    case RDB_ELEM:
        return put_elem(rows, ev, err);
    case RDB_ENTRY:
        return begin_entry(rows, ev, err);
    case RDB_PACKED_LONG:
        stat_value_blob(&rows->value, ev);
        return true;
    case RDB_VALUE_END:
        return end_value(rows, ev, err);
    case RDB_VALUE:
        return true;
    default:
        stat_value_group(&rows->value, ev);
        return rows_stream_event(rows, ev, err);
    }
}

bool rows_new(struct rows **ret, struct rd_sink *sink, const struct stat_layout *layout,
              struct rd_err *err)
{
    struct rows *rows = rd_calloc(1, sizeof *rows);
    if (rows == NULL)
        return rd_err_nomem(err, sizeof *rows);
    rows->sink = sink;
    rows->layout = layout != NULL ? layout : stat_layout_of(RDB_REDIS, RDB_VERSION_OF_7_4);
    if (!rows_stream_new(&rows->stream, err)) {
        rd_free(rows);
        return false;
    }
    *ret = rows;
    return true;
}

void rows_free(struct rows *rows)
{
    if (rows == NULL)
        return;
    rows_stream_free(rows->stream);
    rd_buf_done(&rows->raw);
    rd_buf_done(&rows->name);
    rd_buf_done(&rows->meta);
    rd_buf_done(&rows->field.held);
    rd_buf_done(&rows->path.held);
    rd_buf_done(&rows->record_name);
    rd_free(rows);
}
