#include "base/copy.h"
#include "engine/snapshot_kept.h"

#include "base/mem.h"
#include "engine/by_slot.h"
#include "engine/lru.h"
#include "engine/script.h"
#include "engine/value/kept.h"
#include "rdb/plain.h"

enum {
    WAITING = 16,
    PLAIN = 32,               /* keys loaded at a time */
    RECORD_MIN = 4,           /* minimum bytes of a key with its value */
    RESERVE_UNKNOWN = 1 << 20 /* keys to reserve space for if the size of the file is unknown */
};

/* An entry that is not in its table yet: its bucket is being prefetched. */
struct waiting {
    struct engine_entry *entry;
    struct engine_db *db;
    uint64_t hash;
    uint64_t offset;
};

struct engine_loader {
    struct engine *engine;
    struct rd_src *src; /* NULL: the reader is the caller's */
    struct rdb_reader *reader;
    struct engine_load_opts opts;
    struct engine_load_info info;
    int64_t now_ms;
    uint32_t lru_new;
    struct engine_db *db;

    struct waiting waiting[WAITING]; /* a ring */
    unsigned first_waiting;
    unsigned n_waiting;

    /* The key being read. */
    struct rd_slice key;
    struct rd_buf name; /* its name, unless it is in the window of the reader */
    uint64_t hash;
    uint64_t offset;
    int64_t expire_ms;
    uint32_t lru;
    const struct engine_type_ops *ops; /* NULL: a string that was complete and is stored */
    enum engine_mem_kind mem_kind;
    struct engine_value value;
    bool in_value;
    bool skipping;
    const struct rdb_type *kept; /* of a value that is being copied */
    struct rd_buf copy;
    struct rd_sink *to_copy;

    struct rd_buf script; /* of the AUX field being read */

    /* The buffer for kept records; NULL outside of them. */
    struct engine_kept_records *keeping;
};

static const enum engine_type type_of_kind[RDB_KIND_COUNT] = {
    [RDB_KIND_STRING] = ENGINE_STRING, [RDB_KIND_LIST] = ENGINE_LIST,
    [RDB_KIND_SET] = ENGINE_SET,       [RDB_KIND_ZSET] = ENGINE_ZSET,
    [RDB_KIND_HASH] = ENGINE_HASH,     [RDB_KIND_STREAM] = ENGINE_STREAM,
    [RDB_KIND_MODULE] = ENGINE_MODULE, [RDB_KIND_ARRAY] = ENGINE_KEPT,
};

/* ---- life ---- */

static struct engine_loader *new_loader(struct engine *e, const struct engine_load_opts *opts,
                                        const struct engine_env *env)
{
    struct engine_loader *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->engine = e;
    l->opts = opts != NULL ? *opts : (struct engine_load_opts){0};
    l->now_ms = env->now_us / 1000;
    l->lru_new = engine_lru_new(&e->config, l->now_ms);
    l->db = e->dbs[0];
    l->info.saved_s = INT64_MIN;
    return l;
}

static void forget_former(struct engine *e)
{
    struct engine_scope scope = engine_enter(e);
    engine_extra_free(e->extra);
    e->extra = engine_calloc(1, sizeof *e->extra);
    engine_leave(e, scope);
    engine_scripts_outdated(e);
}

bool engine_loader_new(struct engine_loader **ret, struct engine *e, struct rd_src *src,
                       const struct engine_load_opts *opts, const struct engine_env *env,
                       struct rd_err *err)
{
    struct engine_loader *l = new_loader(e, opts, env);
    if (l == NULL)
        return rd_err_nomem(err, sizeof *l);
    struct rdb_reader_opts how =
        RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED, .no_sum = l->opts.no_sum,
                        .max_name = ENGINE_NAME_MAX, .updates = l->opts.on_update != NULL);
    if (!rdb_reader_new(&l->reader, src, &how, err)) {
        rd_free(l);
        return false;
    }
    l->src = src;
    forget_former(e);
    *ret = l;
    return true;
}

bool engine_loader_new_reader(struct engine_loader **ret, struct engine *e,
                              struct rdb_reader *reader, const struct engine_load_opts *opts,
                              const struct engine_env *env, struct rd_err *err)
{
    struct engine_loader *l = new_loader(e, opts, env);
    if (l == NULL)
        return rd_err_nomem(err, sizeof *l);
    l->reader = reader;
    forget_former(e);
    *ret = l;
    return true;
}

static void drop_value(struct engine_loader *l)
{
    if (l->in_value && l->ops != NULL)
        engine_value_free(&l->value);
    l->in_value = false;
}

void engine_loader_free(struct engine_loader *l)
{
    if (l == NULL)
        return;
    struct engine_scope scope = engine_enter(l->engine);
    drop_value(l);
    engine_leave(l->engine, scope);
    if (l->src != NULL)
        rdb_reader_free(l->reader);
    if (l->to_copy != NULL)
        rd_sink_close(l->to_copy, NULL);
    rd_buf_done(&l->copy);
    rd_buf_done(&l->name);
    rd_buf_done(&l->script);
    rd_free(l);
}

const struct engine_load_info *engine_loader_info(const struct engine_loader *l)
{
    return &l->info;
}

/* ---- keys ---- */

static bool refuse(const struct engine_loader *l, const struct rdb_event *ev, enum rd_err_code code,
                   const char *what, struct rd_err *err)
{
    char name[128];
    rd_err_quote(name, sizeof name, l->key);
    rd_err_set(err, code, ev->offset, "%s", what);
    rd_err_doing(err, "key %s in db %u", name, l->db->id);
    return false;
}

static uint32_t lru_of(const struct engine_loader *l, const struct rdb_event *ev)
{
    bool lfu = engine_lfu_on(&l->engine->config);
    if (lfu && ev->key.freq != RDB_UNKNOWN)
        return engine_lfu_from_counter((unsigned)ev->key.freq, l->now_ms);
    if (!lfu && ev->key.idle_s != RDB_UNKNOWN)
        return engine_lru_from_idle(
            (int64_t)(ev->key.idle_s < UINT32_MAX ? ev->key.idle_s : UINT32_MAX), l->now_ms);
    return l->lru_new;
}

static void expect_key(struct engine_loader *l, struct rd_slice key, uint64_t offset)
{
    l->key = key;
    l->offset = offset;
    l->hash = engine_table_hash(&l->db->keys, key);
    engine_table_prefetch(&l->db->keys, l->hash);
}

/* Expired keys are dropped. */
static bool stays(const struct engine_loader *l)
{
    return l->expire_ms == ENGINE_NO_EXPIRE || l->expire_ms >= l->now_ms || l->opts.keep_expired;
}

static void drop_expired(const struct engine_loader *l, struct rd_slice key)
{
    if (l->opts.on_expired != NULL)
        l->opts.on_expired(l->opts.ctx, l->db->id, key);
}

static bool begin_key(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    l->expire_ms = ev->key.expire_ms == RDB_NO_EXPIRE ? ENGINE_NO_EXPIRE : ev->key.expire_ms;
    l->skipping = !stays(l);
    if (l->skipping) {
        drop_expired(l, ev->key.name);
        return true;
    }
    rd_buf_reset(&l->name);
    if (!rd_buf_add(&l->name, ev->key.name.ptr, ev->key.name.len))
        return rd_err_nomem(err, ev->key.name.len);
    l->lru = lru_of(l, ev);
    expect_key(l, rd_buf_slice(&l->name), ev->key.record);
    if (!l->engine->config.keep_newer || !engine_kept_is(ev->key.type))
        return true;
    l->kept = ev->key.type;
    rd_buf_reset(&l->copy);
    return rd_sink_open_buf(&l->to_copy, &l->copy, NULL, err);
}

static bool begin_value(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    enum engine_type type = type_of_kind[ev->value.type->kind];
    if (engine_kept_is(ev->value.type))
        return refuse(l, ev, RD_ERR_UNSUPPORTED, "arrays and path hashes are not supported", err);
    l->in_value = true;
    l->ops = engine_type_ops(type);
    l->mem_kind = engine_type_mem(type);
    l->value = (struct engine_value){.type = type & 15u};
    return true;
}

/* Adds the oldest waiting entry to its table. */
static bool link_first(struct engine_loader *l, struct rd_err *err)
{
    struct waiting *w = &l->waiting[l->first_waiting];
    struct rd_slice key = engine_entry_key(w->entry);
    struct engine_table_slot slot;
    struct engine_entry *there = NULL;
    l->first_waiting = (l->first_waiting + 1) % WAITING;
    l->n_waiting--;
    while ((there = engine_table_find_or_slot_hash(&w->db->keys, w->hash, key, &slot)) != NULL &&
           l->opts.merge)
        engine_db_remove(w->db, there, NULL);
    if (there != NULL) {
        char name[128];
        rd_err_set(err, RD_ERR_CORRUPT, w->offset, "duplicate key %s in db %u",
                   rd_err_quote(name, sizeof name, key), w->db->id);
        engine_value_free(&w->entry->value);
        engine_free(w->entry);
        return false;
    }
    engine_table_add_at(&w->db->keys, &slot, w->entry);
    if (RD_UNLIKELY(w->db->by_slot != NULL))
        engine_by_slot_add(w->db->by_slot, w->entry);
    w->db->n_by_type[w->entry->value.type]++;
    if (w->entry->expire_ms != ENGINE_NO_EXPIRE)
        engine_table_add(&w->db->expires, w->entry);
    engine_db_note_parts(w->db, w->entry);
    return true;
}

static bool link_all(struct engine_loader *l, struct rd_err *err)
{
    bool ok = true;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    while (l->n_waiting > 0)
        ok &= link_first(l, err);
    engine_mem_leave(before);
    return ok;
}

/* Stores the value of the current key. text: of an EMBSTR. */
static bool store(struct engine_loader *l, const struct engine_value *value, struct rd_slice text,
                  struct rd_err *err)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    struct engine_entry *entry = engine_alloc(sizeof *entry + l->key.len + text.len);
    entry->value = *value;
    entry->value.lru = l->lru & 0xffffff;
    entry->expire_ms = l->expire_ms;
    entry->key_len = (uint32_t)l->key.len;
    rd_copy_short(entry->key, l->key.ptr, l->key.len);
    if (value->encoding == ENGINE_EMBSTR) {
        entry->value.u.bytes = entry->key + l->key.len;
        rd_copy_short(entry->value.u.bytes, text.ptr, text.len);
    }
    bool ok = l->n_waiting < WAITING || link_first(l, err);
    l->waiting[(l->first_waiting + l->n_waiting++) % WAITING] =
        (struct waiting){.entry = entry, .db = l->db, .hash = l->hash, .offset = l->offset};
    engine_mem_leave(before);
    l->info.keys++;
    return ok;
}

static bool store_text(struct engine_loader *l, struct rd_slice text, struct rd_err *err)
{
    struct engine_value value = {
        .type = ENGINE_STRING, .encoding = ENGINE_EMBSTR, .len = (uint32_t)text.len};
    if (text.len <= ENGINE_EMBSTR_MAX && !rd_num_get_i64(text, &value.u.num))
        return store(l, &value, text, err);
    value = engine_string_new(text);
    return store(l, &value, rd_slice(NULL, 0), err);
}

/* Most values are strings, and most strings are in one piece. */
static bool is_whole_string(const struct engine_loader *l, const struct rdb_event *ev)
{
    return ev->kind == RDB_ELEM && ev->elem.role == RDB_ROLE_STRING && ev->elem.str.first &&
           !ev->elem.str.more && l->ops != NULL;
}

static bool store_number(struct engine_loader *l, int64_t num, struct rd_err *err)
{
    struct engine_value value = {.type = ENGINE_STRING, .encoding = ENGINE_INT, .u.num = num};
    return store(l, &value, rd_slice(NULL, 0), err);
}

static bool store_string(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    const struct rdb_string *str = &ev->elem.str;
    l->ops = NULL;
    return str->is_int ? store_number(l, str->num, err)
                       : store_text(l, rd_slice(str->ptr, str->len), err);
}

static bool store_plain(struct engine_loader *l, const struct rdb_plain *key, struct rd_err *err)
{
    l->expire_ms = key->expire_ms == RDB_NO_EXPIRE ? ENGINE_NO_EXPIRE : key->expire_ms;
    l->lru = l->lru_new;
    if (!stays(l)) {
        l->info.expired++;
        drop_expired(l, key->name);
        return true;
    }
    expect_key(l, key->name, key->offset);
    return key->is_int ? store_number(l, key->num, err) : store_text(l, key->value, err);
}

/* Reads the plain keys after the current one; at most max. */
static bool take_plain(struct engine_loader *l, uint64_t max, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    for (size_t n; max > 0; max -= n) {
        n = rdb_plain_take(l->reader, UINT64_MAX, keys, max < PLAIN ? (size_t)max : PLAIN);
        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++)
            if (!store_plain(l, &keys[i], err))
                return false;
    }
    return true;
}

/* Servers drop empty collections, but not empty streams. */
static bool is_void(const struct engine_value *v)
{
    return v->type != ENGINE_STRING && v->type != ENGINE_STREAM && v->type != ENGINE_MODULE &&
           engine_value_count(v) == 0;
}

static bool store_value(struct engine_loader *l, struct rd_err *err)
{
    struct engine_value value = l->value;
    l->in_value = false;
    if (value.type == ENGINE_STRING && value.encoding == ENGINE_RAW &&
        value.len <= ENGINE_EMBSTR_MAX) {
        bool ok = store_text(l, rd_slice(value.u.bytes, value.len), err);
        engine_value_free(&value);
        return ok;
    }
    if (!is_void(&value))
        return store(l, &value, rd_slice(NULL, 0), err);
    l->info.empty++;
    if (l->opts.on_empty != NULL)
        l->opts.on_empty(l->opts.ctx, l->key);
    engine_value_free(&value);
    return true;
}

static bool take_value_event(struct engine_loader *l, const struct rdb_event *ev,
                             struct rd_err *err)
{
    if (is_whole_string(l, ev))
        return store_string(l, ev, err);
    if (l->ops != NULL) {
        enum engine_mem_kind before = engine_mem_enter(l->mem_kind);
        l->engine->had_producers |= ev->kind == RDB_IDMP;
        bool ok = l->ops->load(&l->value, ev, &l->engine->config, err);
        engine_mem_leave(before);
        if (!ok)
            return refuse(l, ev, RD_ERR_CORRUPT, "invalid value", err);
    }
    if (ev->kind != RDB_VALUE_END)
        return true;
    l->in_value = false;
    return l->ops == NULL || store_value(l, err);
}

/* ---- records other than keys ---- */

static bool select_db(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->db >= l->engine->n_dbs) {
        const struct rd_err_reason reason = {RDB_REASON_DB, {ev->db, l->engine->n_dbs}};
        return rd_err_set_reason(
            err, RD_ERR_LIMIT, ev->offset, reason,
            "the file contains database %llu, but this data set has only %u databases",
            (unsigned long long)ev->db, l->engine->n_dbs);
    }
    l->db = l->engine->dbs[ev->db];
    return true;
}

/* The file can claim any number of keys, so the number is checked against its size. */
static void reserve(struct engine_loader *l, const struct rdb_event *ev)
{
    uint64_t most = RESERVE_UNKNOWN;
    if (l->src != NULL && rd_src_size(l->src) != RD_NO_OFFSET)
        most =
            rd_src_size(l->src) > ev->offset ? (rd_src_size(l->src) - ev->offset) / RECORD_MIN : 0;
    uint64_t keys = ev->db_size.keys < most ? ev->db_size.keys : most;
    uint64_t expires = ev->db_size.expires < keys ? ev->db_size.expires : keys;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_KEYS);
    if (keys > 0)
        engine_table_reserve(&l->db->keys, (size_t)keys);
    if (expires > 0)
        engine_table_reserve(&l->db->expires, (size_t)expires);
    engine_mem_leave(before);
}

static bool keep_old_function(struct engine_loader *l, const struct rdb_event *ev,
                              struct rd_err *err)
{
    l->info.functions++;
    l->engine->extra->n_functions++;
    engine_scripts_outdated(l->engine);
    return engine_extra_add_old_function(&l->engine->extra->functions, ev) ||
           rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset,
                      "function in an unsupported format from before Redis 7.0");
}

/* The bytes of a kept record, event by event. */
static bool keep_event(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    struct engine_extra *kept = l->engine->extra;
    bool more = ev->kind != RDB_VALUE_END;
    if (ev->kind == RDB_FUNCTION && ev->function.pre_ga)
        return keep_old_function(l, ev, err);
    if (ev->kind == RDB_MODULE_AUX) {
        l->keeping = ev->module.when == 2 ? &kept->after : &kept->before;
    } else if (ev->kind == RDB_AUX || ev->kind == RDB_FUNCTION) {
        const struct rdb_string *s = ev->kind == RDB_AUX ? &ev->aux.value : &ev->function.code;
        bool is_function = ev->kind == RDB_FUNCTION;
        l->info.functions += is_function && s->first;
        kept->n_functions += is_function && s->first;
        if (is_function)
            engine_scripts_outdated(l->engine);
        more = s->more;
        l->keeping = is_function ? &kept->functions : &kept->before;
    }
    engine_extra_add(l->keeping, ev->raw);
    if (!more)
        l->keeping = NULL;
    return true;
}

static void take_header(struct engine_loader *l, const struct rdb_event *ev)
{
    l->info.dialect = l->engine->extra->dialect = ev->header.dialect;
    l->info.version = l->engine->extra->version = ev->header.version;
}

static bool check_sum(const struct rdb_event *ev, struct rd_err *err)
{
    if (!ev->trailer.present || !ev->trailer.summed || ev->trailer.stored == 0 ||
        ev->trailer.stored == ev->trailer.computed)
        return true;
    const struct rd_err_reason reason = {RDB_REASON_SUM,
                                         {ev->trailer.stored, ev->trailer.computed}};
    return rd_err_set_reason(err, RD_ERR_CHECKSUM, ev->offset, reason,
                             "checksum mismatch: stored %016llx, computed %016llx",
                             (unsigned long long)ev->trailer.stored,
                             (unsigned long long)ev->trailer.computed);
}

static void note_aux(struct engine_loader *l, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    int64_t s;
    if (!ev->aux.value.first || ev->aux.value.more)
        return;
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, tmp);
    if (rd_slice_is(ev->aux.name, "ctime") && rd_num_get_i64(value, &s) && s >= 0)
        l->info.saved_s = s;
    if (l->opts.on_aux != NULL)
        l->opts.on_aux(l->opts.ctx, ev->aux.name, value);
}

static bool take_script(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    const struct rdb_string *value = &ev->aux.value;
    if (!l->opts.keep_scripts || ev->kind != RDB_AUX || !rd_slice_is(ev->aux.name, "lua"))
        return true;
    struct rd_slice piece = rdb_string_bytes(value, tmp);
    if (value->first)
        rd_buf_reset(&l->script);
    if (!rd_buf_add(&l->script, piece.ptr, piece.len))
        return rd_err_nomem(err, piece.len);
    if (!value->more)
        engine_script_keep(l->engine, rd_buf_slice(&l->script));
    return true;
}

/* The keys before it must be in their tables. From now on a key can come again. */
static bool update(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    struct rd_slice command = rd_slice(ev->raw.ptr + 1, ev->raw.len - 1);
    if (l->opts.on_update == NULL)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset, "a command among the keys");
    l->opts.merge = true;
    return link_all(l, err) && l->opts.on_update(l->opts.ctx, l->db->id, command, err);
}

static bool take_record(struct engine_loader *l, const struct rdb_event *ev, struct rd_err *err)
{
    if (!take_script(l, ev, err))
        return false;
    if (l->keeping != NULL)
        return keep_event(l, ev, err);
    switch (ev->kind) {
    case RDB_KEY:
        return begin_key(l, ev, err);
    case RDB_VALUE:
        return begin_value(l, ev, err) && take_value_event(l, ev, err);
    case RDB_HEADER:
        take_header(l, ev);
        return true;
    case RDB_DB:
        return select_db(l, ev, err);
    case RDB_DB_SIZE:
        reserve(l, ev);
        return true;
    case RDB_AUX:
        note_aux(l, ev);
        /* Sizes of slots are those of this file only. */
        return l->opts.no_aux || rd_slice_is(ev->aux.name, "slot-info") || keep_event(l, ev, err);
    case RDB_FUNCTION:
    case RDB_MODULE_AUX:
        return keep_event(l, ev, err);
    case RDB_UPDATE:
        return update(l, ev, err);
    case RDB_KEY_META_BEGIN:
        return rd_err_set(err, RD_ERR_UNSUPPORTED, ev->offset,
                          "module metadata of keys is not supported");
    case RDB_TRAILER:
        return check_sum(ev, err);
    default:
        return true; /* cluster slots */
    }
}

/* ---- stepping ---- */

static enum rdb_status fail(const struct engine_loader *l, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(l->reader));
    return RDB_FAIL;
}

static enum rdb_status skip(struct engine_loader *l)
{
    enum rdb_status status = rdb_reader_skip_value(l->reader);
    if (status == RDB_EVENT) {
        l->skipping = false;
        l->info.expired++;
    }
    return status;
}

/* Copies a value of a type that only newer servers have. */
static enum rdb_status copy(struct engine_loader *l, struct rd_err *err)
{
    enum rdb_status status = rdb_reader_copy_value(l->reader, l->to_copy);
    if (status != RDB_EVENT)
        return status;
    bool ok = rd_sink_close(l->to_copy, err);
    l->to_copy = NULL;
    if (!ok)
        return RDB_FAIL;
    struct engine_value value = engine_kept_value(l->kept, rd_buf_slice(&l->copy));
    l->kept = NULL;
    return store(l, &value, rd_slice(NULL, 0), err) ? RDB_EVENT : RDB_FAIL;
}

static uint64_t n_passed(const struct engine_loader *l)
{
    return l->info.keys + l->info.expired;
}

/* One event, and the plain keys after it, up to a goal of n_passed(). RDB_EVENT: done. */
static enum rdb_status advance(struct engine_loader *l, uint64_t goal, struct rd_err *err)
{
    if (l->skipping)
        return skip(l);
    if (RD_UNLIKELY(l->kept != NULL))
        return copy(l, err);
    struct rdb_event ev;
    enum rdb_status status = rdb_reader_next(l->reader, &ev);
    if (status != RDB_EVENT)
        return status;
    bool ok = l->in_value ? take_value_event(l, &ev, err) : take_record(l, &ev, err);
    if (ok && ev.kind == RDB_VALUE_END && l->keeping == NULL)
        ok = take_plain(l, goal > n_passed(l) ? goal - n_passed(l) : 0, err);
    if (!ok)
        rd_err_origin(err, l->src != NULL ? rd_src_origin(l->src) : NULL);
    return ok ? RDB_EVENT : RDB_FAIL;
}

static enum rdb_status step(struct engine_loader *l, uint64_t n_keys, struct rd_err *err)
{
    uint64_t goal = n_keys < UINT64_MAX - n_passed(l) ? n_passed(l) + n_keys : UINT64_MAX;
    enum rdb_status status = RDB_EVENT;
    while (status == RDB_EVENT && n_passed(l) < goal)
        status = advance(l, goal, err);
    return status == RDB_FAIL ? fail(l, err) : status;
}

enum rdb_status engine_loader_step(struct engine_loader *l, uint64_t n_keys, struct rd_err *err)
{
    struct engine_scope scope = engine_enter(l->engine);
    enum rdb_status status = step(l, n_keys, err);
    if (!link_all(l, err))
        status = RDB_FAIL;
    engine_leave(l->engine, scope);
    if (l->src != NULL)
        l->info.offset = rd_src_offset(l->src);
    return status;
}

bool engine_load(struct engine *e, struct rd_src *src, const struct engine_load_opts *opts,
                 const struct engine_env *env, struct engine_load_info *ret, struct rd_err *err)
{
    struct engine_loader *l;
    if (!engine_loader_new(&l, e, src, opts, env, err))
        return false;
    enum rdb_status status = engine_loader_step(l, UINT64_MAX, err);
    if (status == RDB_MORE)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the source has no known end");
    if (ret != NULL)
        *ret = l->info;
    engine_loader_free(l);
    return status == RDB_END;
}
