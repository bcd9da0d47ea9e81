#include "data/ndjson_read.h"

#include "base/mem.h"
#include "rdb/reader.h"
#include "data/ndjson_read_impl.h"

enum { SINCE_BINARY_SCORE = 8, DEFAULT_VERSION = 12, SLOT_INFO_MAX = 64 };

/* Values are written for this version and later only. */
enum { OLDEST_VERSION = 6 };

bool ndjson_reader_new(struct ndjson_reader **ret, struct rd_src *src,
                       const struct ndjson_read_opts *opts, struct rd_err *err)
{
    struct ndjson_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    if (!rdb_encoder_new(&r->encoder, err)) {
        rd_free(r);
        return false;
    }
    if (opts != NULL)
        r->opts = *opts;
    r->in = (struct json_read){.src = src, .err = &r->err};
    r->db = RDB_UNKNOWN;
    *ret = r;
    return true;
}

void ndjson_reader_free(struct ndjson_reader *r)
{
    if (r == NULL)
        return;
    struct rd_buf *bufs[] = {&r->key,  &r->meta,      &r->name, &r->slot_info,
                             &r->text, &r->ttl_names, &r->ttls};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        rd_buf_done(bufs[i]);
    stage_done(&r->value);
    stage_done(&r->plain);
    stage_done(&r->long_text);
    ndjson_read_stream_done(r);
    rdb_encoder_free(r->encoder);
    rd_free(r);
}

const struct rd_err *ndjson_reader_err(const struct ndjson_reader *r)
{
    return &r->err;
}

const struct stage *ndjson_reader_value(const struct ndjson_reader *r)
{
    return &r->value;
}

bool ndjson_reader_has_encoding(const struct ndjson_reader *r)
{
    return r->encoding != NULL;
}

/* ---- lines about the file ---- */

static bool read_header(struct ndjson_reader *r)
{
    char name[NDJSON_WORD], word[NDJSON_WORD];
    uint64_t version = 0;
    enum rdb_dialect dialect = RDB_REDIS;
    if (!json_expect(&r->in, '{'))
        return false;
    do {
        if (!json_word(&r->in, name, sizeof name) || !json_expect(&r->in, ':'))
            return false;
        if (strcmp(name, "version") == 0) {
            if (!json_u64(&r->in, &version))
                return false;
        } else if (strcmp(name, "dialect") == 0) {
            if (!json_word(&r->in, word, sizeof word))
                return false;
            dialect = strcmp(word, "valkey") == 0 ? RDB_VALKEY : RDB_REDIS;
        } else {
            return json_fail(&r->in, "unknown member");
        }
    } while (json_take(&r->in, ','));
    if (!json_expect(&r->in, '}'))
        return false;
    if (version > 999 || !rdb_version_known(dialect, (int)version))
        return json_fail(&r->in, "unknown version");
    if (r->started)
        return true; /* files that were concatenated */
    r->event = (struct rdb_event){.kind = RDB_HEADER};
    r->event.header.dialect = dialect;
    r->event.header.version = (int)(version < OLDEST_VERSION ? OLDEST_VERSION : version);
    r->has_event = true;
    return true;
}

static struct rdb_string text_string(const struct ndjson_reader *r)
{
    return (struct rdb_string){
        .ptr = r->text.ptr, .len = r->text.len, .total = r->text.len, .first = true};
}

/* A short string of a line that is not a key. */
static bool read_text(struct ndjson_reader *r)
{
    rd_buf_reset(&r->text);
    return ndjson_read_name(r, JSON_UTF8, &r->text);
}

static bool read_aux(struct ndjson_reader *r)
{
    rd_buf_reset(&r->name);
    if (!json_expect(&r->in, '{') || !ndjson_read_name(r, JSON_UTF8, &r->name) ||
        !json_expect(&r->in, ':') || !read_text(r) || !json_expect(&r->in, '}'))
        return false;
    r->event = (struct rdb_event){.kind = RDB_AUX};
    r->event.aux.name = rd_buf_slice(&r->name);
    r->event.aux.value = text_string(r);
    r->has_event = true;
    if (!rd_slice_is(r->event.aux.name, "slot-info") || r->text.len > SLOT_INFO_MAX)
        return true;
    /* The aux field is held back until the next key selects its database. */
    r->has_event = false;
    rd_buf_reset(&r->slot_info);
    return rd_buf_add(&r->slot_info, r->text.ptr, r->text.len) ||
           rd_err_nomem(&r->err, r->text.len);
}

static bool read_function(struct ndjson_reader *r, bool pre_ga)
{
    if (!read_text(r))
        return false;
    r->event = (struct rdb_event){.kind = RDB_FUNCTION};
    r->event.function.code = text_string(r);
    r->event.function.pre_ga = pre_ga;
    r->has_event = true;
    return true;
}

static bool refuse(struct ndjson_reader *r, const char *what)
{
    return rd_err_set(&r->err, RD_ERR_UNSUPPORTED, r->offset, "line %llu: %s cannot be read back",
                      (unsigned long long)r->line, what);
}

/* ---- keys ---- */

static bool find_kind(struct ndjson_reader *r, const char *word)
{
    for (int kind = 0; kind < RDB_KIND_COUNT; kind++) {
        if (strcmp(word, rdb_kind_name((enum rdb_kind)kind)) == 0) {
            r->kind = (enum rdb_kind)kind;
            r->has_kind = true;
            return true;
        }
    }
    return json_fail(&r->in, "unknown type");
}

/* The type of this kind with an encoding of this name; two types have skip lists. */
static const struct rdb_type *find_type(const struct ndjson_reader *r, const char *encoding)
{
    for (int id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        if (type->kind != r->kind || strcmp(type->encoding, encoding) != 0)
            continue;
        if (type->id == RDB_TYPE_ZSET && r->version >= SINCE_BINARY_SCORE)
            return rdb_type_get(RDB_TYPE_ZSET_2);
        return type;
    }
    return NULL;
}

static bool read_u64(struct ndjson_reader *r, uint64_t *ret)
{
    return json_u64(&r->in, ret);
}

static bool refuse_key(struct ndjson_reader *r, const char *what)
{
    char name[128];
    refuse(r, what);
    rd_err_quote(name, sizeof name, rd_buf_slice(&r->key));
    rd_err_doing(&r->err, "%s %s in db %llu", rdb_kind_name(r->kind), name,
                 (unsigned long long)r->key_db);
    return false;
}

/* Forms that a value is read from, but never written in: the writer chooses another one. */
static bool is_only_read(const struct rdb_type *type)
{
    return type->id == RDB_TYPE_BITMAP || type->id == RDB_TYPE_HASH_TMPL_LP ||
           type->id == RDB_TYPE_HASH_TMPL_ARRAY;
}

static bool can_read(const struct ndjson_reader *r)
{
    if (r->kind == RDB_KIND_STREAM)
        return r->encoding == NULL || r->encoding->id == RDB_TYPE_STREAM_LISTPACKS ||
               r->encoding->id == RDB_TYPE_STREAM_LISTPACKS_2 ||
               r->encoding->id == RDB_TYPE_STREAM_LISTPACKS_3 ||
               r->encoding->id == RDB_TYPE_STREAM_LISTPACKS_4;
    if (r->kind == RDB_KIND_MODULE || r->kind == RDB_KIND_ARRAY)
        return false;
    return r->encoding == NULL || r->encoding->id == RDB_TYPE_PATH_HASH ||
           rdb_encoder_can(r->encoding);
}

static bool read_key_value(struct ndjson_reader *r, const char *encoding)
{
    if (!r->has_kind || !r->has_name)
        return json_fail(&r->in, "value must follow key and type");
    if (r->kind == RDB_KIND_MODULE)
        return refuse_key(r, "the value of a module");
    r->encoding = encoding[0] == '\0' ? NULL : find_type(r, encoding);
    if (encoding[0] != '\0' && r->encoding == NULL)
        return json_fail(&r->in, "unknown encoding for this type");
    if (r->encoding != NULL && is_only_read(r->encoding))
        r->encoding = NULL;
    if (!can_read(r))
        return refuse_key(r, "this encoding");
    r->has_value = true;
    return ndjson_read_value(r);
}

/* Whether the bytes are a record of metadata, which goes into the output as it is. */
static bool is_key_meta(struct rd_slice meta, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.no_sum = true);
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_src *src;
    uint64_t left = 0;
    if (meta.len < 2 || meta.ptr[0] != RDB_OP_KEY_META ||
        !rd_src_open_memory(&src, meta, NULL, err))
        return false;
    bool ok = rdb_reader_new_records(&reader, src, RDB_REDIS, RDB_VERSION_REDIS_MAX, &opts, err);
    if (ok) {
        ok = rdb_reader_next(reader, &ev) == RDB_EVENT && ev.kind == RDB_KEY_META_BEGIN;
        for (left = ok ? ev.key_meta.n_classes : 0; ok && left > 0;) {
            ok = rdb_reader_next(reader, &ev) == RDB_EVENT;
            left -= ok && ev.kind == RDB_VALUE_END;
        }
        ok = ok && rd_src_offset(src) == meta.len;
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool read_key_meta(struct ndjson_reader *r)
{
    rd_buf_reset(&r->meta);
    if (!ndjson_read_name(r, JSON_HEX, &r->meta))
        return false;
    return is_key_meta(rd_buf_slice(&r->meta), &r->err) ||
           (r->err.code == RD_ERR_OK &&
            json_fail(&r->in, "key_meta does not hold metadata of a key"));
}

static bool read_member(struct ndjson_reader *r, const char *name, char encoding[NDJSON_WORD])
{
    char word[NDJSON_WORD];
    if (strcmp(name, "db") == 0) {
        r->has_db = true;
        return read_u64(r, &r->key_db);
    }
    if (strcmp(name, "key") == 0) {
        r->has_name = true;
        return ndjson_read_name(r, r->opts.strings, &r->key);
    }
    if (strcmp(name, "type") == 0)
        return json_word(&r->in, word, sizeof word) && find_kind(r, word);
    if (strcmp(name, "encoding") == 0)
        return json_word(&r->in, encoding, NDJSON_WORD);
    if (strcmp(name, "expire_ms") == 0)
        return json_i64(&r->in, &r->expire_ms);
    if (strcmp(name, "idle_s") == 0)
        return read_u64(r, &r->idle_s);
    if (strcmp(name, "freq") == 0)
        return read_u64(r, &r->freq);
    if (strcmp(name, "slot") == 0)
        return read_u64(r, &r->key_slot);
    if (strcmp(name, "key_meta") == 0)
        return read_key_meta(r);
    if (strcmp(name, "field_expire_ms") == 0)
        return ndjson_read_ttls(r);
    if (strcmp(name, "value") == 0)
        return read_key_value(r, encoding);
    return json_fail(&r->in, "unknown member");
}

static bool read_file_member(struct ndjson_reader *r, const char *name, bool *ret_known)
{
    *ret_known = true;
    if (strcmp(name, "rdb") == 0)
        return read_header(r);
    if (strcmp(name, "aux") == 0)
        return read_aux(r);
    if (strcmp(name, "function") == 0)
        return read_function(r, false);
    if (strcmp(name, "function_pre_ga") == 0)
        return read_function(r, true);
    if (strcmp(name, "module_aux") == 0)
        return refuse(r, "a record of a module");
    *ret_known = false;
    return true;
}

static void begin_line(struct ndjson_reader *r)
{
    rd_buf_reset(&r->key);
    rd_buf_reset(&r->meta);
    rd_buf_reset(&r->ttl_names);
    rd_buf_reset(&r->ttls);
    r->has_name = r->has_db = r->has_value = r->has_kind = false;
    r->key_db = 0;
    r->encoding = NULL;
    r->expire_ms = RDB_NO_EXPIRE;
    r->idle_s = r->freq = r->key_slot = RDB_UNKNOWN;
    r->offset = rd_src_offset(r->in.src);
    r->line = r->in.lines + 1;
    r->db_given = r->slot_given = false;
}

static bool read_key_line(struct ndjson_reader *r, char name[NDJSON_WORD])
{
    char encoding[NDJSON_WORD] = "";
    for (;;) {
        if (!read_member(r, name, encoding))
            return false;
        if (!json_take(&r->in, ','))
            break;
        if (!json_word(&r->in, name, NDJSON_WORD) || !json_expect(&r->in, ':'))
            return false;
    }
    if (!r->has_value)
        return json_fail(&r->in, "key without a value");
    r->has_key = true;
    return ndjson_read_finish(r);
}

static bool read_line(struct ndjson_reader *r)
{
    char name[NDJSON_WORD];
    bool known;
    begin_line(r);
    if (!json_expect(&r->in, '{') || !json_word(&r->in, name, sizeof name) ||
        !json_expect(&r->in, ':') || !read_file_member(r, name, &known))
        return false;
    return (known || read_key_line(r, name)) && json_expect(&r->in, '}');
}

/* ---- events ---- */

static void set_target(struct ndjson_reader *r, enum rdb_dialect dialect, int version)
{
    r->dialect = r->opts.version != 0 ? r->opts.dialect : dialect;
    r->version = r->opts.version != 0 ? r->opts.version : version;
}

/* The header comes first; if the first line is not a header, one is generated. */
static bool give_header(struct ndjson_reader *r, struct rdb_event *ret)
{
    static const char rdb[] = "{\"rdb\"";
    struct rd_slice s;
    *ret = (struct rdb_event){.kind = RDB_HEADER};
    ret->header.dialect = RDB_REDIS;
    ret->header.version = DEFAULT_VERSION;
    json_peek(&r->in);
    if (rd_src_need(r->in.src, sizeof rdb - 1, &s) == RD_SRC_OK &&
        memcmp(s.ptr, rdb, sizeof rdb - 1) == 0) {
        if (!read_line(r))
            return false;
        *ret = r->event;
        r->has_event = false;
    }
    r->started = true;
    set_target(r, ret->header.dialect, ret->header.version);
    return r->err.code == RD_ERR_OK;
}

/* The sizes of a slot, from a line of a Valkey 8 snapshot. The slot in a key's line does not say
 * how many keys follow, and servers rely on these numbers, so no sizes are made from it. */
static bool give_slot(struct ndjson_reader *r, struct rdb_event *ret)
{
    r->slot_given = true;
    if (r->slot_info.len == 0)
        return false;
    rd_buf_reset(&r->text);
    if (!rd_buf_add(&r->text, r->slot_info.ptr, r->slot_info.len))
        return rd_err_nomem(&r->err, SLOT_INFO_MAX);
    rd_buf_reset(&r->slot_info);
    *ret = (struct rdb_event){.kind = RDB_AUX};
    ret->aux.name = rd_slice_str("slot-info");
    ret->aux.value = text_string(r);
    return true;
}

/* Returns the events that precede a key, then the key. */
static bool give_key(struct ndjson_reader *r, struct rdb_event *ret)
{
    if (r->key_db != r->db) {
        r->db = r->key_db;
        *ret = (struct rdb_event){.kind = RDB_DB, .db = r->db};
        return true;
    }
    if (!r->slot_given && give_slot(r, ret))
        return true;
    r->has_key = false;
    *ret = (struct rdb_event){.kind = RDB_KEY};
    ret->key.name = rd_buf_slice(&r->key);
    ret->key.type = r->type;
    ret->key.db = r->db;
    ret->key.expire_ms = r->expire_ms;
    ret->key.idle_s = r->idle_s;
    ret->key.freq = r->freq;
    ret->key.meta = rd_buf_slice(&r->meta);
    return true;
}

enum ndjson_status ndjson_reader_next(struct ndjson_reader *r, struct rdb_event *ret)
{
    if (r->err.code != RD_ERR_OK)
        return NDJSON_FAIL;
    if (!r->started) {
        bool ok = give_header(r, ret);
        ret->offset = r->offset;
        return ok ? NDJSON_EVENT : NDJSON_FAIL;
    }
    while (!r->has_event && !r->has_key) {
        if (json_peek(&r->in) == 0) {
            if (r->err.code == RD_ERR_OK && rd_src_avail(r->in.src) == 0)
                return NDJSON_END;
            json_fail(&r->in, "the line does not begin with a brace");
            return NDJSON_FAIL;
        }
        if (!read_line(r))
            return NDJSON_FAIL;
    }
    if (r->has_event) {
        r->has_event = false;
        *ret = r->event;
    } else {
        give_key(r, ret);
    }
    ret->offset = r->offset;
    return r->err.code == RD_ERR_OK ? NDJSON_EVENT : NDJSON_FAIL;
}
