#include "base/endian.h"
#include "rdb/reader.h"
#include "data/ndjson_read_impl.h"

/* ---- strings ---- */

bool ndjson_read_string(struct ndjson_reader *r, enum json_form form)
{
    bool more = true;
    struct rd_sink *to = NULL;
    rd_buf_reset(&r->text);
    r->is_long = false;
    r->text_len = 0;
    if (!json_expect(&r->in, '"'))
        return false;
    while (more) {
        size_t room = r->text.cap - r->text.len, len;
        if (room < 256 && !rd_buf_reserve(&r->text, room = 4096))
            return rd_err_nomem(&r->err, room);
        room = r->text.cap - r->text.len;
        if (!json_piece(&r->in, form, r->text.ptr + r->text.len, room, &len, &more))
            return false;
        r->text.len += len;
        r->text_len += len;
        if (r->text.len < NDJSON_HELD_MAX && (!r->is_long || more))
            continue;
        if (!r->is_long && !stage_begin(&r->long_text, &to, &r->err))
            return false;
        r->is_long = true;
        if (!rd_sink_write(to, r->text.ptr, r->text.len)) {
            rd_err_adopt(&r->err, rd_sink_err(to));
            return false;
        }
        rd_buf_reset(&r->text);
    }
    return !r->is_long || stage_end(&r->long_text, &r->err);
}

bool ndjson_read_name(struct ndjson_reader *r, enum json_form form, struct rd_buf *buf)
{
    size_t start = buf->len, len;
    bool more = true;
    if (!json_expect(&r->in, '"'))
        return false;
    while (more) {
        if (buf->len - start > NDJSON_NAME_MAX)
            return rd_err_set(&r->err, RD_ERR_LIMIT, rd_src_offset(r->in.src),
                              "name longer than %d bytes", NDJSON_NAME_MAX);
        if (!rd_buf_reserve(buf, 64))
            return rd_err_nomem(&r->err, 64);
        if (!json_piece(&r->in, form, buf->ptr + buf->len, buf->cap - buf->len, &len, &more))
            return false;
        buf->len += len;
    }
    return true;
}

static bool emit_long(struct ndjson_reader *r, struct rdb_event *ev,
                      bool (*put)(void *ctx, const struct rdb_event *ev, struct rd_err *err),
                      void *ctx)
{
    struct rd_src *src;
    struct rd_slice s;
    uint64_t left = r->text_len;
    bool ok = true;
    if (!stage_source(&r->long_text, -1, &src, &r->err))
        return false;
    while (ok && left > 0 && rd_src_need(src, 1, &s) == RD_SRC_OK) {
        left -= s.len;
        ev->elem.str.ptr = s.ptr;
        ev->elem.str.len = s.len;
        ev->elem.str.more = left > 0;
        ok = put(ctx, ev, &r->err);
        ev->elem.str.first = false;
        rd_src_consume(src, s.len);
    }
    if (ok && left > 0)
        rd_err_adopt(&r->err, rd_src_err(src));
    rd_src_close(src);
    return ok && left == 0;
}

bool ndjson_read_emit(struct ndjson_reader *r, struct rdb_event *ev,
                      bool (*put)(void *ctx, const struct rdb_event *ev, struct rd_err *err),
                      void *ctx)
{
    ev->kind = RDB_ELEM;
    ev->elem.str = (struct rdb_string){
        .ptr = r->text.ptr, .len = r->text.len, .total = r->text_len, .first = true};
    return r->is_long ? emit_long(r, ev, put, ctx) : put(ctx, ev, &r->err);
}

static bool put_encoder(void *ctx, const struct rdb_event *ev, struct rd_err *err)
{
    struct ndjson_reader *r = ctx;
    return rdb_encoder_put(r->encoder, ev, err);
}

static bool put_text(struct ndjson_reader *r, enum rdb_role role, double score)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.score = score;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    return ndjson_read_emit(r, &ev, put_encoder, r);
}

/* ---- elements ---- */

static bool read_score(struct ndjson_reader *r, double *ret)
{
    char text[64];
    size_t len;
    if (json_peek(&r->in) == '"') {
        if (!json_word(&r->in, text, sizeof text))
            return false;
        len = strlen(text);
        if (strcmp(text, "inf") != 0 && strcmp(text, "-inf") != 0 && strcmp(text, "nan") != 0)
            return json_fail(&r->in, "score expected");
    } else if (!json_number(&r->in, text, sizeof text, &len)) {
        return false;
    }
    return rd_num_get_f64(rd_slice(text, len), ret) || json_fail(&r->in, "invalid number");
}

static bool read_member(struct ndjson_reader *r)
{
    double score = 0;
    bool zset = r->kind == RDB_KIND_ZSET;
    if (zset && !json_expect(&r->in, '['))
        return false;
    if (!ndjson_read_string(r, r->opts.strings))
        return false;
    if (zset && (!json_expect(&r->in, ',') || !read_score(r, &score) || !json_expect(&r->in, ']')))
        return false;
    return put_text(r, r->kind == RDB_KIND_LIST ? RDB_ROLE_ELEMENT : RDB_ROLE_MEMBER, score);
}

static bool read_array(struct ndjson_reader *r)
{
    if (!json_expect(&r->in, '['))
        return false;
    if (json_take(&r->in, ']'))
        return true;
    do
        if (!read_member(r))
            return false;
    while (json_take(&r->in, ','));
    return json_expect(&r->in, ']');
}

static bool read_pair(struct ndjson_reader *r)
{
    return ndjson_read_string(r, r->opts.strings) && put_text(r, RDB_ROLE_FIELD, 0) &&
           json_expect(&r->in, ':') && ndjson_read_string(r, r->opts.strings) &&
           put_text(r, RDB_ROLE_VALUE, 0);
}

static bool read_object(struct ndjson_reader *r)
{
    if (!json_expect(&r->in, '{'))
        return false;
    if (json_take(&r->in, '}'))
        return true;
    do
        if (!read_pair(r))
            return false;
    while (json_take(&r->in, ','));
    return json_expect(&r->in, '}');
}

/* ---- path hashes ---- */

static bool end_encoding(struct ndjson_reader *r, struct stage *stage)
{
    struct rd_slice head;
    if (!rdb_encoder_end(r->encoder, &head, &r->err) || !stage_end(stage, &r->err))
        return false;
    stage_put_front(stage, head);
    return true;
}

/* A length and the bytes, as in RDB files. */
static bool write_text(struct ndjson_reader *r, struct rd_sink *to, struct rd_slice text)
{
    uint8_t head[5] = {0x80};
    size_t n = sizeof head;
    rd_put_be32(head + 1, (uint32_t)text.len);
    if (text.len < 64) {
        head[0] = (uint8_t)text.len;
        n = 1;
    }
    if (rd_sink_write(to, head, n) && rd_sink_write(to, text.ptr, text.len))
        return true;
    rd_err_adopt(&r->err, rd_sink_err(to));
    return false;
}

/* Without any, the staged hash is its number only. */
static bool has_fields(struct ndjson_reader *r)
{
    return stage_size(&r->plain) > 1 || json_fail(&r->in, "path without fields");
}

/* The fields of one path are a hash, whose number precedes them. */
static bool read_path(struct ndjson_reader *r, struct rd_sink *to)
{
    struct rd_buf path = {0};
    struct rd_sink *fields;
    bool ok = ndjson_read_name(r, r->opts.strings, &path) && json_expect(&r->in, ':') &&
              write_text(r, to, rd_buf_slice(&path)) && stage_begin(&r->plain, &fields, &r->err) &&
              rdb_encoder_begin(r->encoder, rdb_type_get(RDB_TYPE_HASH), RDB_NO_EXPIRE, fields,
                                &r->err) &&
              read_object(r) && end_encoding(r, &r->plain) && has_fields(r) &&
              stage_move(&r->plain, to, &r->err);
    rd_buf_done(&path);
    return ok;
}

static bool read_paths(struct ndjson_reader *r)
{
    struct rd_sink *to;
    uint8_t count[9] = {0x81};
    uint64_t n = 0;
    r->type = r->encoding;
    if (!stage_begin(&r->value, &to, &r->err) || !json_expect(&r->in, '{'))
        return false;
    if (!json_take(&r->in, '}')) {
        do {
            if (!read_path(r, to))
                return false;
            n++;
        } while (json_take(&r->in, ','));
        if (!json_expect(&r->in, '}'))
            return false;
    }
    rd_put_be64(count + 1, n);
    if (n < 64)
        count[0] = (uint8_t)n;
    if (!stage_end(&r->value, &r->err))
        return false;
    stage_put_front(&r->value, rd_slice(count, n < 64 ? 1 : sizeof count));
    return true;
}

bool ndjson_read_ttls(struct ndjson_reader *r)
{
    if (!json_expect(&r->in, '{'))
        return false;
    if (json_take(&r->in, '}'))
        return true;
    do {
        struct ndjson_ttl ttl = {.at = r->ttl_names.len};
        if (!ndjson_read_name(r, r->opts.strings, &r->ttl_names) || !json_expect(&r->in, ':') ||
            !json_i64(&r->in, &ttl.expire_ms))
            return false;
        ttl.len = r->ttl_names.len - ttl.at;
        if (!rd_buf_add(&r->ttls, &ttl, sizeof ttl))
            return rd_err_nomem(&r->err, sizeof ttl);
    } while (json_take(&r->in, ','));
    return json_expect(&r->in, '}');
}

/* ---- values ---- */

static bool has_field_ttl(const struct rdb_type *type)
{
    enum rdb_type_id id = type->id;
    return id == RDB_TYPE_HASH_METADATA || id == RDB_TYPE_HASH_LISTPACK_EX ||
           id == RDB_TYPE_HASH_METADATA_PRE_GA || id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA ||
           id == RDB_TYPE_HASH_2;
}

/* The type for staging a value without a named encoding. */
static enum rdb_type_id table_type(enum rdb_kind kind)
{
    switch ((int)kind) {
    case RDB_KIND_LIST:
        return RDB_TYPE_LIST;
    case RDB_KIND_SET:
        return RDB_TYPE_SET;
    case RDB_KIND_ZSET:
        return RDB_TYPE_ZSET_2;
    case RDB_KIND_HASH:
        return RDB_TYPE_HASH;
    default:
        return RDB_TYPE_STRING;
    }
}

/* A hash is staged as a plain one until the expiries of its fields are known. */
static bool waits(const struct ndjson_reader *r)
{
    return r->kind == RDB_KIND_HASH && (r->encoding == NULL || has_field_ttl(r->encoding));
}

bool ndjson_read_value(struct ndjson_reader *r)
{
    struct stage *stage = waits(r) ? &r->plain : &r->value;
    struct rd_sink *to;
    if (r->kind == RDB_KIND_STREAM)
        return ndjson_read_stream(r);
    if (r->encoding != NULL && r->encoding->id == RDB_TYPE_PATH_HASH)
        return read_paths(r);
    r->type = r->encoding != NULL ? r->encoding : rdb_type_get(table_type(r->kind));
    if (waits(r))
        r->type = rdb_type_get(RDB_TYPE_HASH);
    if (!stage_begin(stage, &to, &r->err) ||
        !rdb_encoder_begin(r->encoder, r->type, RDB_NO_EXPIRE, to, &r->err))
        return false;
    bool ok;
    if (r->kind == RDB_KIND_STRING)
        ok = ndjson_read_string(r, r->opts.strings) && put_text(r, RDB_ROLE_STRING, 0);
    else
        ok = r->kind == RDB_KIND_HASH ? read_object(r) : read_array(r);
    return ok && end_encoding(r, stage);
}

/* ---- expiries ---- */

static size_t n_ttls(const struct ndjson_reader *r)
{
    return r->ttls.len / sizeof(struct ndjson_ttl);
}

static const struct ndjson_ttl *get_ttl(const struct ndjson_reader *r, size_t i)
{
    return (const struct ndjson_ttl *)(const void *)r->ttls.ptr + i;
}

static int64_t lowest_ttl(const struct ndjson_reader *r)
{
    int64_t lowest = RDB_NO_EXPIRE;
    for (size_t i = 0; i < n_ttls(r); i++) {
        int64_t ms = get_ttl(r, i)->expire_ms;
        if (lowest == RDB_NO_EXPIRE || ms < lowest)
            lowest = ms;
    }
    return lowest;
}

/* Fields with an expiry have the same order in both objects. */
static bool merge(struct ndjson_reader *r, struct rdb_reader *reader)
{
    struct rdb_event ev;
    enum rdb_status status;
    size_t next = 0;
    bool match = false;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        char tmp[RD_NUM_I64_MAX];
        if (ev.kind != RDB_ELEM)
            continue;
        struct rd_slice piece = rdb_string_bytes(&ev.elem.str, tmp);
        if (ev.elem.role == RDB_ROLE_FIELD) {
            if (ev.elem.str.first)
                rd_buf_reset(&r->text);
            if (!rd_buf_add(&r->text, piece.ptr, piece.len))
                return rd_err_nomem(&r->err, piece.len);
            const struct ndjson_ttl *ttl = next < n_ttls(r) ? get_ttl(r, next) : NULL;
            match =
                ttl != NULL && ttl->len == r->text.len &&
                (ttl->len == 0 || memcmp(r->ttl_names.ptr + ttl->at, r->text.ptr, ttl->len) == 0);
        } else if (match && !ev.elem.str.more) {
            ev.elem.expire_ms = get_ttl(r, next++)->expire_ms;
        }
        if (!rdb_encoder_put(r->encoder, &ev, &r->err))
            return false;
    }
    if (status == RDB_FAIL)
        rd_err_adopt(&r->err, rdb_reader_err(reader));
    else if (next < n_ttls(r))
        json_fail(&r->in,
                  "field_expire_ms names a field that is not in the value, or not in order");
    return r->err.code == RD_ERR_OK;
}

static bool recode(struct ndjson_reader *r)
{
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rd_sink *to;
    int64_t lowest = lowest_ttl(r);
    if (lowest != RDB_NO_EXPIRE && lowest < 0)
        return json_fail(&r->in, "negative field expiry");
    if (!stage_begin(&r->value, &to, &r->err) ||
        !rdb_encoder_begin(r->encoder, r->type, lowest, to, &r->err) ||
        !stage_source(&r->plain, rdb_type_get(RDB_TYPE_HASH)->number, &src, &r->err))
        return false;
    bool ok = rdb_reader_new_value(&reader, src, RDB_REDIS, RDB_VERSION_REDIS_MAX, NULL, &r->err);
    if (ok) {
        ok = merge(r, reader);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok && end_encoding(r, &r->value);
}

bool ndjson_read_finish(struct ndjson_reader *r)
{
    if (n_ttls(r) > 0 && !waits(r))
        return json_fail(&r->in, "field_expire_ms, but the encoding does not support field expiry");
    if (!waits(r))
        return true;
    r->type = r->encoding;
    if (r->encoding == NULL)
        r->type = rdb_type_get(n_ttls(r) > 0 ? RDB_TYPE_HASH_METADATA : RDB_TYPE_HASH);
    if (r->type->id == RDB_TYPE_HASH) {
        stage_swap(&r->value, &r->plain);
        return true;
    }
    return recode(r);
}
