#include "data/ndjson.h"

#include "base/mem.h"
#include "rdb/plain.h"
#include "data/ndjson_impl.h"

/* Text is escaped directly into the sink's buffer, in pieces of this many input bytes. */
enum { PIECE = 8192, SLOT_INFO_MAX = 64, SCORE_MAX = RD_NUM_F64_MAX + 4, TEXT_SHORT = 64 };

enum { KEY_LABELS = 256 }; /* bytes of a line in addition to the name and value of a plain key */

/* ---- writing text to the sink ---- */

/* At least `room` writable bytes: in the sink's buffer, or in a scratch area if that is too small.
 */
static uint8_t *begin(struct ndjson *lines, size_t room)
{
    struct rd_sink *sink = lines->sink;
    if (RD_LIKELY((size_t)(sink->end - sink->cur) >= room))
        return sink->cur;
    if (rd_sink_flush(sink) && (size_t)(sink->end - sink->cur) >= room)
        return sink->cur;
    return lines->scratch;
}

static void commit(struct ndjson *lines, uint8_t *from, uint8_t *to)
{
    if (RD_LIKELY(from != lines->scratch))
        lines->sink->cur = to;
    else
        rd_sink_write(lines->sink, from, (size_t)(to - from));
}

void ndjson_u64(struct ndjson *lines, uint64_t v)
{
    char digits[RD_NUM_I64_MAX];
    rd_sink_write(lines->sink, digits, rd_num_put_u64(digits, v));
}

void ndjson_i64(struct ndjson *lines, int64_t v)
{
    char digits[RD_NUM_I64_MAX];
    rd_sink_write(lines->sink, digits, rd_num_put_i64(digits, v));
}

static void put_label(struct ndjson *lines, const char *label)
{
    rd_sink_write(lines->sink, label, strlen(label));
}

void ndjson_put_u64(struct ndjson *lines, const char *label, uint64_t v)
{
    put_label(lines, label);
    ndjson_u64(lines, v);
}

void ndjson_put_i64(struct ndjson *lines, const char *label, int64_t v)
{
    put_label(lines, label);
    ndjson_i64(lines, v);
}

void ndjson_piece(struct ndjson *lines, struct rd_slice piece, bool more)
{
    do {
        size_t n = piece.len < PIECE ? piece.len : PIECE;
        uint8_t *dst = begin(lines, json_text_room(n));
        uint8_t *end =
            json_text_put(&lines->text, dst, rd_slice(piece.ptr, n), more || n < piece.len);
        commit(lines, dst, end);
        piece = rd_slice(n == 0 ? piece.ptr : piece.ptr + n, piece.len - n);
    } while (piece.len > 0);
}

void ndjson_string(struct ndjson *lines, struct rd_slice bytes)
{
    rd_sink_byte(lines->sink, '"');
    ndjson_piece(lines, bytes, false);
    rd_sink_byte(lines->sink, '"');
}

void ndjson_piece_to(struct ndjson *lines, struct rd_buf *buf, struct rd_slice piece, bool more)
{
    if (!rd_buf_reserve(buf, json_text_room(piece.len))) {
        lines->nomem = true;
        return;
    }
    uint8_t *end = json_text_put(&lines->text, buf->ptr + buf->len, piece, more);
    buf->len = (size_t)(end - buf->ptr);
}

void ndjson_string_to(struct ndjson *lines, struct rd_buf *buf, struct rd_slice bytes)
{
    lines->nomem |= !rd_buf_add_byte(buf, '"');
    ndjson_piece_to(lines, buf, bytes, false);
    lines->nomem |= !rd_buf_add_byte(buf, '"');
}

void ndjson_id(struct ndjson *lines, struct rdb_stream_id id)
{
    char text[2 * RD_NUM_I64_MAX + 3];
    size_t len = 0;
    text[len++] = '"';
    len += rd_num_put_u64(text + len, id.ms);
    text[len++] = '-';
    len += rd_num_put_u64(text + len, id.seq);
    text[len++] = '"';
    rd_sink_write(lines->sink, text, len);
}

/* Text outside the data is UTF-8, whatever form is chosen for the data. */
static void put_utf8(struct ndjson *lines, struct rd_slice bytes)
{
    enum json_form form = lines->text.form;
    lines->text.form = JSON_UTF8;
    ndjson_string(lines, bytes);
    lines->text.form = form;
}

/* ---- keys ---- */

/* Valkey stores the slot of the following keys in an aux field: "slot,keys,expires". */
static void note_slot_info(struct ndjson *lines, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, tmp);
    if (!rd_slice_is(ev->aux.name, "slot-info"))
        return;
    if (ev->aux.value.first)
        rd_buf_reset(&lines->slot_info);
    if (lines->slot_info.len + value.len <= SLOT_INFO_MAX)
        lines->nomem |= !rd_buf_add(&lines->slot_info, value.ptr, value.len);
    if (ev->aux.value.more)
        return;
    struct rd_slice all = rd_buf_slice(&lines->slot_info);
    const uint8_t *comma = all.len == 0 ? NULL : memchr(all.ptr, ',', all.len);
    uint64_t slot;
    if (comma != NULL && rd_num_get_u64(rd_slice(all.ptr, (size_t)(comma - all.ptr)), &slot))
        lines->slot = slot;
}

/* Only modules know what is in it. */
static void put_key_meta(struct ndjson *lines, struct rd_slice meta)
{
    static const char digits[] = "0123456789abcdef";
    NDJSON_LIT(lines, ",\"key_meta\":\"");
    for (size_t i = 0; i < meta.len; i++) {
        const char pair[] = {digits[meta.ptr[i] >> 4], digits[meta.ptr[i] & 15]};
        rd_sink_write(lines->sink, pair, sizeof pair);
    }
    NDJSON_LIT(lines, "\"");
}

static void put_key(struct ndjson *lines, const struct rdb_event *ev)
{
    ndjson_put_u64(lines, "{\"db\":", ev->key.db);
    NDJSON_LIT(lines, ",\"key\":");
    ndjson_string(lines, ev->key.name);
    NDJSON_LIT(lines, ",\"type\":\"");
    put_label(lines, rdb_kind_name(ev->key.type->kind));
    NDJSON_LIT(lines, "\",\"encoding\":\"");
    put_label(lines, ev->key.type->encoding);
    NDJSON_LIT(lines, "\"");
    if (ev->key.expire_ms != RDB_NO_EXPIRE)
        ndjson_put_i64(lines, ",\"expire_ms\":", ev->key.expire_ms);
    if (ev->key.idle_s != RDB_UNKNOWN)
        ndjson_put_u64(lines, ",\"idle_s\":", ev->key.idle_s);
    if (ev->key.freq != RDB_UNKNOWN)
        ndjson_put_u64(lines, ",\"freq\":", ev->key.freq);
    if (lines->slot != RDB_UNKNOWN)
        ndjson_put_u64(lines, ",\"slot\":", lines->slot);
    if (ev->key.meta.len > 0)
        put_key_meta(lines, ev->key.meta);
    NDJSON_LIT(lines, ",\"value\":");
}

/* ---- values ---- */

static void put_module(struct ndjson *lines, uint64_t id)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(id, name);
    NDJSON_LIT(lines, "{\"module\":");
    put_utf8(lines, rd_slice_str(name));
    ndjson_put_u64(lines, ",\"version\":", rdb_module_encver(id));
}

static bool has_field_expiry(const struct rdb_type *type)
{
    return type->id == RDB_TYPE_HASH_METADATA_PRE_GA ||
           type->id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA || type->id == RDB_TYPE_HASH_METADATA ||
           type->id == RDB_TYPE_HASH_LISTPACK_EX || type->id == RDB_TYPE_HASH_2;
}

static void put_value(struct ndjson *lines, const struct rdb_event *ev)
{
    lines->type = ev->value.type;
    lines->has_ttl = has_field_expiry(lines->type);
    lines->in_value = true;
    lines->n_elems = 0;
    rd_buf_reset(&lines->ttl);
    switch (lines->type->kind) {
    case RDB_KIND_LIST:
    case RDB_KIND_SET:
    case RDB_KIND_ZSET:
    case RDB_KIND_ARRAY:
        NDJSON_LIT(lines, "[");
        break;
    case RDB_KIND_HASH:
        NDJSON_LIT(lines, "{");
        break;
    case RDB_KIND_STREAM:
        ndjson_stream_begin(lines);
        break;
    case RDB_KIND_MODULE:
        put_module(lines, ev->value.module_id);
        ndjson_module_begin(lines, ev->value.module_id);
        break;
    case RDB_KIND_STRING:
        break;
    }
}

/* JSON readers may lose the sign of -0, and JSON has no numbers for infinities and NaN. */
static uint8_t *add_score(uint8_t *to, double v)
{
    char *digits = (char *)to + 1;
    size_t len = rd_num_put_f64(digits, v);
    bool word = digits[len - 1] == 'f' || digits[len - 1] == 'n';
    if (word) {
        digits[-1] = digits[len] = '"';
        return to + len + 2;
    }
    memmove(to, digits, len);
    if (len == 2 && memcmp(to, "-0", 2) == 0) {
        memcpy(to + len, ".0", 2);
        len += 2;
    }
    return to + len;
}

void ndjson_f64(struct ndjson *lines, double v)
{
    uint8_t text[SCORE_MAX];
    rd_sink_write(lines->sink, text, (size_t)(add_score(text, v) - text));
}

/* The part of an element's text in this event, with its quotes. */
static void put_text(struct ndjson *lines, const struct rdb_string *str)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(str, tmp);
    if (RD_UNLIKELY(piece.len > PIECE || str->more || !str->first)) {
        if (str->first)
            rd_sink_byte(lines->sink, '"');
        ndjson_piece(lines, piece, str->more);
        if (!str->more)
            rd_sink_byte(lines->sink, '"');
        return;
    }
    uint8_t *from = begin(lines, json_text_room(piece.len) + 2), *to = from;
    *to++ = '"';
    to = json_text_put(&lines->text, to, piece, false);
    *to++ = '"';
    commit(lines, from, to);
}

static void separate(struct ndjson *lines)
{
    if (lines->n_elems++ > 0)
        rd_sink_byte(lines->sink, ',');
}

static void put_member(struct ndjson *lines, const struct rdb_event *ev)
{
    bool zset = lines->type->kind == RDB_KIND_ZSET;
    if (ev->elem.str.first) {
        separate(lines);
        if (zset)
            rd_sink_byte(lines->sink, '[');
    }
    put_text(lines, &ev->elem.str);
    if (zset && !ev->elem.str.more) {
        rd_sink_byte(lines->sink, ',');
        ndjson_f64(lines, ev->elem.score);
        rd_sink_byte(lines->sink, ']');
    }
}

static void put_item(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->elem.str.first) {
        separate(lines);
        ndjson_put_u64(lines, "[", ev->elem.index);
        rd_sink_byte(lines->sink, ',');
    }
    put_text(lines, &ev->elem.str);
    if (!ev->elem.str.more)
        rd_sink_byte(lines->sink, ']');
}

/* Whether a field has an expiry is known only after its value, so its escaped name waits in a
 * buffer. */
static void put_ttl_field(struct ndjson *lines, const struct rdb_string *str)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_buf *ttl = &lines->ttl;
    if (str->first)
        lines->ttl_mark = ttl->len;
    size_t from = ttl->len;
    if (str->first)
        lines->nomem |= !rd_buf_add_byte(ttl, '"');
    ndjson_piece_to(lines, ttl, rdb_string_bytes(str, tmp), str->more);
    if (!str->more)
        lines->nomem |= !rd_buf_add_byte(ttl, '"');
    if (!lines->nomem)
        rd_sink_write(lines->sink, ttl->ptr + from, ttl->len - from);
}

static void put_ttl(struct ndjson *lines, int64_t expire_ms)
{
    char text[RD_NUM_I64_MAX + 2];
    size_t len = 0;
    if (expire_ms == RDB_NO_EXPIRE) {
        lines->ttl.len = lines->ttl_mark;
        return;
    }
    text[len++] = ':';
    len += rd_num_put_i64(text + len, expire_ms);
    text[len++] = ',';
    lines->nomem |= !rd_buf_add(&lines->ttl, text, len);
}

static void put_field(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->elem.str.first && !lines->in_path)
        separate(lines);
    lines->in_path = false;
    if (lines->has_ttl)
        put_ttl_field(lines, &ev->elem.str);
    else
        put_text(lines, &ev->elem.str);
    if (!ev->elem.str.more)
        rd_sink_byte(lines->sink, ':');
}

/* An object for each path. */
static void put_path(struct ndjson *lines, const struct rdb_event *ev)
{
    if (lines->n_elems > 0)
        rd_sink_byte(lines->sink, '}');
    separate(lines);
    put_text(lines, &ev->elem.str);
    NDJSON_LIT(lines, ":{");
    lines->in_path = true;
}

static void put_field_value(struct ndjson *lines, const struct rdb_event *ev)
{
    put_text(lines, &ev->elem.str);
    if (!ev->elem.str.more && lines->has_ttl)
        put_ttl(lines, ev->elem.expire_ms);
}

static void put_pair(struct ndjson *lines, const struct rdb_event *ev)
{
    struct ndjson_stream *st = &lines->stream;
    bool field = ev->elem.role == RDB_ROLE_FIELD;
    if (field && ev->elem.str.first) {
        if (st->pair_started)
            rd_sink_byte(lines->sink, ',');
        st->pair_started = true;
        rd_sink_byte(lines->sink, '[');
    }
    put_text(lines, &ev->elem.str);
    if (ev->elem.str.more)
        return;
    if (field)
        rd_sink_byte(lines->sink, ',');
    else if (--st->pairs_left == 0)
        NDJSON_LIT(lines, "]]}");
    else
        rd_sink_byte(lines->sink, ']');
}

static void put_elem(struct ndjson *lines, const struct rdb_event *ev)
{
    if (lines->type->kind == RDB_KIND_STREAM) {
        put_pair(lines, ev);
        return;
    }
    switch (ev->elem.role) {
    case RDB_ROLE_STRING:
        put_text(lines, &ev->elem.str);
        break;
    case RDB_ROLE_ELEMENT:
    case RDB_ROLE_MEMBER:
        put_member(lines, ev);
        break;
    case RDB_ROLE_FIELD:
        put_field(lines, ev);
        break;
    case RDB_ROLE_VALUE:
        put_field_value(lines, ev);
        break;
    case RDB_ROLE_ITEM:
        put_item(lines, ev);
        break;
    case RDB_ROLE_PATH:
        put_path(lines, ev);
        break;
    }
}

static bool conclude(struct ndjson *lines, struct rd_err *err)
{
    if (RD_UNLIKELY(lines->nomem))
        return rd_err_nomem(err, 0);
    if (RD_UNLIKELY(lines->sink->failed)) {
        if (err != NULL)
            rd_err_adopt(err, rd_sink_err(lines->sink));
        return false;
    }
    return true;
}

/* A quoted string at `to`, which must have room for it. */
static inline uint8_t *add_text(struct ndjson *lines, uint8_t *to, const struct rdb_text *text)
{
    struct rd_slice s = rd_slice(text->ptr, text->len);
    char digits[RD_NUM_I64_MAX];
    *to++ = '"';
    if (text->is_int && lines->text.form == JSON_UTF8) {
        to += rd_num_put_i64((char *)to, text->num);
        *to++ = '"';
        return to;
    }
    if (text->is_int)
        s = rd_slice(digits, rd_num_put_i64(digits, text->num));
    if (RD_LIKELY(s.len <= TEXT_SHORT && lines->text.form == JSON_UTF8 &&
                  json_text_put_plain(to, s)))
        to += s.len;
    else
        to = json_text_put(&lines->text, to, s, false);
    *to++ = '"';
    return to;
}

static inline uint8_t *add_element(struct ndjson *lines, uint8_t *to, const struct rdb_text *text,
                                   bool zset)
{
    if (text->role == RDB_ROLE_VALUE)
        *to++ = ':';
    else if (lines->n_elems++ > 0)
        *to++ = ',';
    if (!zset)
        return add_text(lines, to, text);
    *to++ = '[';
    to = add_text(lines, to, text);
    *to++ = ',';
    to = add_score(to, text->score);
    *to++ = ']';
    return to;
}

/* A field and its value arrive together; the colon is written with the value. */
bool ndjson_put_texts(struct ndjson *lines, const struct rdb_text *texts, size_t n,
                      struct rd_err *err)
{
    bool zset = lines->type->kind == RDB_KIND_ZSET;
    for (size_t i = 0; i < n; i++) {
        size_t len = texts[i].is_int ? RD_NUM_I64_MAX : texts[i].len;
        uint8_t *from = begin(lines, json_text_room(len) + SCORE_MAX + 8);
        commit(lines, from, add_element(lines, from, &texts[i], zset));
    }
    return conclude(lines, err);
}

/* ---- plain keys ---- */

static inline uint8_t *add_label(uint8_t *to, const char *label, size_t len)
{
    memcpy(to, label, len);
    return to + len;
}

#define ADD_LIT(to, literal) add_label(to, literal, sizeof(literal) - 1)

static uint8_t *add_plain(struct ndjson *lines, uint8_t *to, uint64_t db,
                          const struct rdb_plain *key)
{
    const struct rdb_text name = {.ptr = key->name.ptr, .len = key->name.len};
    const struct rdb_text value = {
        .ptr = key->value.ptr, .len = key->value.len, .num = key->num, .is_int = key->is_int};
    to = ADD_LIT(to, "{\"db\":");
    to += rd_num_put_u64((char *)to, db);
    to = ADD_LIT(to, ",\"key\":");
    to = add_text(lines, to, &name);
    to = ADD_LIT(to, ",\"type\":\"string\",\"encoding\":\"string\"");
    if (key->expire_ms != RDB_NO_EXPIRE) {
        to = ADD_LIT(to, ",\"expire_ms\":");
        to += rd_num_put_i64((char *)to, key->expire_ms);
    }
    if (lines->slot != RDB_UNKNOWN) {
        to = ADD_LIT(to, ",\"slot\":");
        to += rd_num_put_u64((char *)to, lines->slot);
    }
    to = ADD_LIT(to, ",\"value\":");
    to = add_text(lines, to, &value);
    return ADD_LIT(to, "}\n");
}

bool ndjson_put_plain(struct ndjson *lines, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = keys[i].name.len + (keys[i].is_int ? RD_NUM_I64_MAX : keys[i].value.len);
        uint8_t *from = begin(lines, 2 * json_text_room(0) + json_text_room(len) + KEY_LABELS);
        commit(lines, from, add_plain(lines, from, db, &keys[i]));
    }
    return conclude(lines, err);
}

/* ---- entries of streams ---- */

bool ndjson_put_entry(struct ndjson *lines, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err)
{
    ndjson_entry_begin(lines, id);
    for (size_t i = 0; i < n; i++) {
        bool field = i % 2 == 0;
        size_t len = texts[i].is_int ? RD_NUM_I64_MAX : texts[i].len;
        uint8_t *from = begin(lines, json_text_room(len) + 4), *to = from;
        if (field && i > 0)
            *to++ = ',';
        *to++ = field ? '[' : ',';
        to = add_text(lines, to, &texts[i]);
        if (!field)
            *to++ = ']';
        commit(lines, from, to);
    }
    NDJSON_LIT(lines, "]}");
    return conclude(lines, err);
}

static void put_hash_end(struct ndjson *lines)
{
    if (lines->type->id == RDB_TYPE_PATH_HASH && lines->n_elems > 0)
        rd_sink_byte(lines->sink, '}');
    rd_sink_byte(lines->sink, '}');
    if (lines->ttl.len == 0)
        return;
    NDJSON_LIT(lines, ",\"field_expire_ms\":{");
    rd_sink_write(lines->sink, lines->ttl.ptr, lines->ttl.len - 1);
    rd_sink_byte(lines->sink, '}');
}

static void put_value_end(struct ndjson *lines, const struct rdb_event *ev)
{
    if (!lines->in_value)
        return;
    lines->in_value = false;
    switch (lines->type->kind) {
    case RDB_KIND_LIST:
    case RDB_KIND_SET:
    case RDB_KIND_ZSET:
    case RDB_KIND_ARRAY:
        NDJSON_LIT(lines, "]");
        break;
    case RDB_KIND_HASH:
        put_hash_end(lines);
        break;
    case RDB_KIND_STREAM:
        ndjson_stream_end(lines);
        break;
    case RDB_KIND_MODULE:
        ndjson_module_end(lines);
        ndjson_put_u64(lines, ",\"size\":", ev->value_end.bytes);
        rd_sink_byte(lines->sink, '}');
        break;
    case RDB_KIND_STRING:
        break;
    }
    NDJSON_LIT(lines, "}\n");
}

/* ---- lines about the file ---- */

static void put_header(struct ndjson *lines, const struct rdb_event *ev)
{
    ndjson_put_i64(lines, "{\"rdb\":{\"version\":", ev->header.version);
    NDJSON_LIT(lines, ",\"dialect\":\"");
    put_label(lines, rdb_dialect_name(ev->header.dialect));
    NDJSON_LIT(lines, "\"}}\n");
}

/* A string of the file's metadata, which can arrive in pieces. */
static void put_frame_text(struct ndjson *lines, const struct rdb_string *str)
{
    enum json_form form = lines->text.form;
    lines->text.form = JSON_UTF8;
    put_text(lines, str);
    lines->text.form = form;
}

static void put_aux(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->aux.value.first) {
        NDJSON_LIT(lines, "{\"aux\":{");
        put_utf8(lines, ev->aux.name);
        rd_sink_byte(lines->sink, ':');
    }
    put_frame_text(lines, &ev->aux.value);
    if (!ev->aux.value.more)
        NDJSON_LIT(lines, "}}\n");
}

static void put_function(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->function.code.first && ev->function.pre_ga)
        NDJSON_LIT(lines, "{\"function_pre_ga\":");
    else if (ev->function.code.first)
        NDJSON_LIT(lines, "{\"function\":");
    put_frame_text(lines, &ev->function.code);
    if (!ev->function.code.more)
        NDJSON_LIT(lines, "}\n");
}

static void put_module_aux(struct ndjson *lines, const struct rdb_event *ev)
{
    NDJSON_LIT(lines, "{\"module_aux\":");
    put_module(lines, ev->module.id);
    ndjson_put_u64(lines, ",\"when\":", ev->module.when);
    NDJSON_LIT(lines, "}}\n");
}

static void put_meta(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->kind == RDB_HEADER)
        put_header(lines, ev);
    else if (ev->kind == RDB_AUX)
        put_aux(lines, ev);
    else if (ev->kind == RDB_FUNCTION)
        put_function(lines, ev);
    else if (ev->kind == RDB_MODULE_AUX)
        put_module_aux(lines, ev);
}

/* ---- events ---- */

bool ndjson_new(struct ndjson **ret, struct rd_sink *sink, const struct ndjson_opts *opts,
                struct rd_err *err)
{
    size_t scratch = 2 * json_text_room(0) + json_text_room(PIECE) + KEY_LABELS;
    struct ndjson *lines = rd_calloc(1, sizeof *lines);
    if (lines == NULL)
        return rd_err_nomem(err, sizeof *lines);
    lines->scratch = rd_alloc(scratch);
    if (lines->scratch == NULL) {
        rd_free(lines);
        return rd_err_nomem(err, scratch);
    }
    lines->sink = sink;
    if (opts != NULL)
        lines->opts = *opts;
    lines->text.form = lines->opts.strings;
    lines->slot = RDB_UNKNOWN;
    *ret = lines;
    return true;
}

void ndjson_free(struct ndjson *lines)
{
    if (lines == NULL)
        return;
    rd_buf_done(&lines->ttl);
    rd_buf_done(&lines->slot_info);
    rd_buf_done(&lines->module.text);
    rd_buf_done(&lines->stream.consumers);
    rd_free(lines->stream.pending);
    rd_free(lines->stream.names);
    rd_free(lines->scratch);
    rd_free(lines);
}

uint64_t ndjson_slot(const struct ndjson *lines)
{
    return lines->slot;
}

bool ndjson_is_opaque(const struct ndjson *lines)
{
    return lines->module.opaque;
}

void ndjson_set_slot(struct ndjson *lines, uint64_t slot)
{
    lines->slot = slot;
}

void ndjson_note(struct ndjson *lines, const struct rdb_event *ev)
{
    if (ev->kind == RDB_DB)
        lines->slot = RDB_UNKNOWN;
    else if (ev->kind == RDB_SLOT)
        lines->slot = ev->slot.slot;
    else if (ev->kind == RDB_AUX)
        note_slot_info(lines, ev);
}

static void put_frame(struct ndjson *lines, const struct rdb_event *ev)
{
    ndjson_note(lines, ev);
    if (lines->opts.meta)
        put_meta(lines, ev);
}

bool ndjson_put(struct ndjson *lines, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_KEY:
        put_key(lines, ev);
        break;
    case RDB_VALUE:
        put_value(lines, ev);
        break;
    case RDB_ELEM:
        put_elem(lines, ev);
        break;
    case RDB_VALUE_END:
        put_value_end(lines, ev);
        break;
    case RDB_ENTRY:
    case RDB_STREAM:
    case RDB_GROUP:
    case RDB_PENDING:
    case RDB_CONSUMER:
    case RDB_OWNED:
    case RDB_NACKED:
    case RDB_IDMP:
    case RDB_IDMP_END:
    case RDB_PRODUCER:
    case RDB_PRODUCED:
        ndjson_stream_put(lines, ev);
        break;
    case RDB_HEADER:
    case RDB_AUX:
    case RDB_DB:
    case RDB_SLOT:
    case RDB_FUNCTION:
    case RDB_MODULE_AUX:
        put_frame(lines, ev);
        break;
    case RDB_MODULE_ITEM:
        if (lines->in_value)
            ndjson_module_put(lines, ev);
        break;
    case RDB_DB_SIZE:
    case RDB_KEY_META_BEGIN:
    case RDB_KEY_META:
    case RDB_SLOT_IMPORT:
    case RDB_SLOT_RANGE:
    case RDB_TEMPLATE:
    case RDB_UPDATE: /* readers of tools do not give it */
    case RDB_PACKED:
    case RDB_PACKED_LONG:
    case RDB_NOTE:
    case RDB_TRAILER:
        break;
    }
    return conclude(lines, err);
}
