#include "engine/snapshot_kept.h"

#include "engine/lru.h"
#include "engine/snapshot_pair.h"
#include "engine/value/hash.h"
#include "engine/value/kept.h"
#include "engine/value/stream.h"
#include "rdb/version.h"
#include "rdb/writer.h"

enum { AHEAD = 16, ROW = 1024 };

struct saver {
    struct engine *engine;
    const struct engine_save_opts *opts;
    struct rdb_writer *writer;
    struct rd_sink *sink;
    struct engine_pair *pair; /* NULL: one thread */
    unsigned db;              /* database of the keys */
    bool fields_expire;       /* in the output */
    bool with_idle;
    bool with_freq;
    uint64_t n_keys;
};

static bool put(const struct saver *s, const struct rdb_event *ev, struct rd_err *err)
{
    return rdb_writer_put(s->writer, ev, err);
}

/* ---- records other than keys ---- */

static bool put_aux(const struct saver *s, struct rd_err *err)
{
    for (size_t i = 0; i < s->opts->n_aux; i++) {
        const struct engine_aux *aux = &s->opts->aux[i];
        struct rdb_event ev = {.kind = RDB_AUX, .inner = RD_NO_OFFSET};
        ev.aux.name = aux->name;
        ev.aux.value.ptr = aux->value.ptr;
        ev.aux.value.len = aux->value.len;
        ev.aux.value.total = aux->value.len;
        ev.aux.value.first = true;
        if (!put(s, &ev, err))
            return false;
    }
    return true;
}

static bool is_replaced(const struct saver *s, const struct rdb_event *ev)
{
    for (size_t i = 0; ev->kind == RDB_AUX && i < s->opts->n_aux; i++)
        if (rd_slice_eq(ev->aux.name, s->opts->aux[i].name))
            return true;
    return false;
}

static bool put_events(const struct saver *s, struct rdb_reader *reader, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        if (ev.kind != RDB_TRAILER && !is_replaced(s, &ev) && !put(s, &ev, err))
            return false;
    if (status != RDB_END)
        rd_err_adopt(err, rdb_reader_err(reader));
    return status == RDB_END;
}

/* The records get an end for the reader. */
static bool put_kept(const struct saver *s, struct engine_kept_records *records, struct rd_err *err)
{
    const struct engine_extra *kept = s->engine->extra;
    static const uint8_t end[1 + RDB_TRAILER_LEN] = {RDB_OP_EOF};
    size_t len = records->len;
    engine_extra_add(records, rd_slice(end, sizeof end));
    records->len = len;
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_reader_opts how = RDB_READER_OPTS(.no_sum = true);
    if (!rd_src_open_memory(&src, rd_slice(records->ptr, len + sizeof end), NULL, err))
        return false;
    bool ok = rdb_reader_new_records(&reader, src, kept->dialect, kept->version, &how, err);
    if (ok) {
        ok = put_events(s, reader, err);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

/* ---- keys ---- */

static bool put_entry(const struct saver *s, struct rdb_writer *w, const struct engine_entry *entry,
                      const struct engine_value *value, struct rd_err *err)
{
    bool expires = entry->expire_ms != ENGINE_NO_EXPIRE;
    struct rdb_event ev;
    ev.kind = RDB_KEY;
    ev.offset = 0;
    ev.inner = RD_NO_OFFSET;
    ev.raw = rd_slice(NULL, 0);
    ev.key.name = engine_entry_key(entry);
    ev.key.type = engine_value_in_files(&entry->value);
    ev.key.db = s->db;
    ev.key.record = 0;
    ev.key.expire_ms = expires ? entry->expire_ms : RDB_NO_EXPIRE;
    ev.key.expire_in_s = false;
    ev.key.meta = rd_slice(NULL, 0);
    ev.key.idle_s =
        s->with_idle ? engine_lru_idle_ms(&entry->value, s->opts->now_ms) / 1000 : RDB_UNKNOWN;
    ev.key.freq = s->with_freq ? entry->value.lru & 0xff : RDB_UNKNOWN;
    return rdb_writer_put(w, &ev, err) && engine_type_ops(value->type)->save(value, w, err);
}

static void forget(void *ctx, struct rd_slice field)
{
    (void)ctx;
    (void)field;
}

/* Expired fields must not reappear in a version without field expiry. */
static bool put_without_due(const struct saver *s, struct rdb_writer *w,
                            const struct engine_entry *entry, struct rd_err *err)
{
    struct engine_value alive = engine_value_dup(&entry->value);
    engine_hash_expire_due(&alive, s->opts->now_ms, forget, NULL);
    bool ok = engine_hash_count(&alive) == 0 || put_entry(s, w, entry, &alive, err);
    engine_value_free(&alive);
    return ok;
}

/* An engine_pair_put_fn. */
static bool put_key(void *ctx, struct rdb_writer *w, const struct engine_entry *entry,
                    struct rd_err *err)
{
    const struct saver *s = ctx;
    bool expires = entry->expire_ms != ENGINE_NO_EXPIRE;
    if (s->opts->keep_expired && (s->fields_expire || entry->value.type != ENGINE_HASH))
        return put_entry(s, w, entry, &entry->value, err);
    if (!s->opts->keep_expired && expires && entry->expire_ms < s->opts->now_ms)
        return true;
    if (entry->value.type == ENGINE_HASH) {
        int64_t next_ms = engine_hash_next_expire(&entry->value);
        if (next_ms != ENGINE_HASH_NO_EXPIRE && next_ms < s->opts->now_ms)
            return put_without_due(s, w, entry, err);
    }
    return put_entry(s, w, entry, &entry->value, err);
}

/* Writes the keys one by one here. Entries and their data are spread over the heap: both are
 * prefetched. */
static bool put_each(struct saver *s, const struct engine_entry *const *entries, size_t n,
                     struct rd_err *err)
{
    for (size_t i = 0; i < n && i < AHEAD; i++)
        engine_entry_prefetch(entries[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            engine_entry_prefetch(entries[i + AHEAD]);
        if (i + AHEAD / 2 < n)
            engine_value_prefetch(&entries[i + AHEAD / 2]->value);
        if (!put_key(s, s->writer, entries[i], err))
            return false;
        if (s->opts->each != NULL)
            s->opts->each(s->opts->ctx, ++s->n_keys);
    }
    return true;
}

/* Whether a value is large in the file. */
static bool is_huge(const struct engine_entry *entry)
{
    enum { BYTES = 16 << 20, PARTS = 1 << 18 };
    return entry->value.type == ENGINE_STRING ? entry->value.len > BYTES
                                              : engine_value_effort(&entry->value) > PARTS;
}

/* Adds the keys of a row to those that both threads write. */
static bool put_shared(struct saver *s, const struct engine_entry *const *entries, size_t n,
                       struct rd_err *err)
{
    for (size_t i = 0; i < n && i < AHEAD; i++)
        engine_entry_prefetch(entries[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            engine_entry_prefetch(entries[i + AHEAD]);
        if (!engine_pair_add(s->pair, entries[i], is_huge(entries[i]), err))
            return false;
    }
    s->n_keys += n;
    if (s->opts->each != NULL)
        s->opts->each(s->opts->ctx, s->n_keys);
    return true;
}

static bool put_keys(struct saver *s, struct engine_db *db, struct rd_err *err)
{
    const struct engine_entry *row[ROW];
    struct engine_table_iter it;
    bool ok = true;
    size_t n;
    engine_table_iter_begin(&it, &db->keys);
    do {
        n = 0;
        while (n < ROW && (row[n] = engine_table_iter_next(&it)) != NULL)
            n++;
        ok = s->pair != NULL ? put_shared(s, row, n, err) : put_each(s, row, n, err);
    } while (ok && n == ROW);
    engine_table_iter_end(&it);
    return ok && (s->pair == NULL || engine_pair_flush(s->pair, err));
}

static bool put_db(struct saver *s, struct engine_db *db, struct rd_err *err)
{
    struct rdb_event select = {.kind = RDB_DB, .inner = RD_NO_OFFSET, .db = db->id};
    struct rdb_event size = {.kind = RDB_DB_SIZE, .inner = RD_NO_OFFSET};
    size.db_size.keys = engine_db_count(db);
    size.db_size.expires = engine_table_count(&db->expires);
    s->db = db->id;
    return put(s, &select, err) && put(s, &size, err) &&
           (s->pair == NULL || engine_pair_select(s->pair, &select, err)) && put_keys(s, db, err);
}

static bool put_all(struct saver *s, struct rd_err *err)
{
    struct engine_extra *kept = s->engine->extra;
    if (!put_aux(s, err) || (kept != NULL && !put_kept(s, &kept->before, err)) ||
        (kept != NULL && !s->opts->no_functions && !put_kept(s, &kept->functions, err)))
        return false;
    for (unsigned i = 0; i < s->engine->n_dbs && !s->opts->no_keys; i++)
        if (engine_db_count(s->engine->dbs[i]) > 0 && !put_db(s, s->engine->dbs[i], err))
            return false;
    return (kept == NULL || put_kept(s, &kept->after, err)) && rdb_writer_end(s->writer, err);
}

static bool policy_is_lru(const struct engine_config *config)
{
    return config->maxmemory_policy == ENGINE_ALLKEYS_LRU ||
           config->maxmemory_policy == ENGINE_VOLATILE_LRU;
}

bool engine_save(struct engine *e, struct rd_sink *sink, const struct engine_save_opts *opts,
                 struct rd_err *err)
{
    struct rdb_writer_opts how =
        RDB_WRITER_OPTS(.dialect = opts->dialect,
                        .version = opts->version == 0 && opts->dialect == RDB_REDIS
                                       ? RDB_VERSION_OF_7_0
                                       : opts->version,
                        .compress = opts->compress, .no_checksum = opts->no_checksum,
                        .lossy = opts->lossy);
    struct saver s = {
        .engine = e,
        .fields_expire = how.dialect == RDB_VALKEY || how.version >= RDB_VERSION_OF_7_4,
        .opts = opts,
        .sink = sink,
        .with_idle = opts->with_access && policy_is_lru(&e->config),
        .with_freq = opts->with_access && engine_lfu_on(&e->config),
    };
    if (!rdb_writer_new(&s.writer, sink, &how, err))
        return false;
    struct engine_scope scope = engine_enter(e);
    const struct engine_pair_own own = {s.writer, sink};
    if (opts->two_threads)
        s.pair = engine_pair_new(&how, &own, put_key, &s);
    bool ok = put_all(&s, err);
    engine_pair_free(s.pair);
    engine_leave(e, scope);
    rdb_writer_free(s.writer);
    return ok;
}

/* ---- what it takes to hold everything ---- */

/* db->parts contains these hashes, and possibly others. */
static bool has_field_expiry(struct engine_db *db)
{
    bool found = false;
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &db->parts);
    for (const struct engine_entry *e; !found && (e = engine_table_iter_next(&it)) != NULL;)
        found = engine_value_next_expire(&e->value) != RDB_NO_EXPIRE;
    engine_table_iter_end(&it);
    return found;
}

/* A stream remembers producers, or has settings for them. */
static bool has_producers(struct engine_db *db)
{
    bool found = false;
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &db->keys);
    for (const struct engine_entry *e; !found && (e = engine_table_iter_next(&it)) != NULL;)
        found = e->value.type == ENGINE_STREAM && e->value.u.stream->idmp != NULL;
    engine_table_iter_end(&it);
    return found;
}

int engine_save_version(const struct engine *e)
{
    int version = RDB_VERSION_OF_7_0;
    for (unsigned i = 0; i < e->n_dbs; i++) {
        if (e->had_producers && has_producers(e->dbs[i]))
            return RDB_VERSION_OF_8_6;
        if (has_field_expiry(e->dbs[i]))
            version = RDB_VERSION_OF_7_4;
    }
    return version;
}

enum rdb_dialect engine_dialect(const struct engine *e)
{
    if (e->config.level != ENGINE_LEVEL_7_0)
        return e->config.level == ENGINE_LEVEL_VALKEY_9_1 ? RDB_VALKEY : RDB_REDIS;
    return e->extra != NULL ? e->extra->dialect : RDB_REDIS;
}

/* Values of newer servers need their dialect and version. */
static void fit_kept(struct engine_db *db, enum rdb_dialect *dialect, int *version)
{
    struct engine_table_iter it;
    if (db->n_by_type[ENGINE_KEPT] == 0)
        return;
    engine_table_iter_begin(&it, &db->keys);
    for (const struct engine_entry *e; (e = engine_table_iter_next(&it)) != NULL;) {
        if (e->value.type != ENGINE_KEPT)
            continue;
        const struct rdb_type *type = e->value.u.kept->type;
        enum rdb_dialect its = type->family == RDB_FAMILY_VALKEY ? RDB_VALKEY : RDB_REDIS;
        *version = its == *dialect && *version > type->since ? *version : type->since;
        *dialect = its;
    }
    engine_table_iter_end(&it);
}

void engine_save_fitting(const struct engine *e, enum rdb_dialect *ret_dialect, int *ret_version)
{
    const struct engine_extra *kept = e->extra;
    int needed = engine_save_version(e);
    *ret_dialect = kept != NULL ? kept->dialect : RDB_REDIS;
    *ret_version =
        kept != NULL && kept->version > RDB_VERSION_OF_7_0 ? kept->version : RDB_VERSION_OF_7_0;
    bool holds = *ret_dialect == RDB_VALKEY ? needed < RDB_VERSION_OF_8_6 : *ret_version >= needed;
    if (!holds) {
        *ret_dialect = RDB_REDIS;
        *ret_version = needed;
    }
    for (unsigned i = 0; i < e->n_dbs; i++)
        fit_kept(e->dbs[i], ret_dialect, ret_version);
}
