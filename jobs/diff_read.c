/* Reads both sides into records, each on a thread of its own.
 *
 *     keys     key: hash (16)       value: kind and flags (1)  record (8)  content (16)
 *                                          db (8), if not 0    expiry (8), if any
 *     closer   key: record (8)      value: db (8)  hash (16)
 *
 * The first pass hashes the bytes in which a value is stored: equal bytes are equal values, and
 * hashing is much faster than decoding. Only the values whose bytes differ are decoded, in a second
 * pass. Without a checksum, nothing but decoding shows that a value is damaged, so then the first
 * pass decodes everything.
 */
#include "jobs/diff_impl.h"

#include "base/endian.h"
#include "base/worker.h"
#include "rdb/plain.h"

#include <stdatomic.h>

enum {
    CLOSER_LEN = 8 + RD_HASH128_LEN,
    RECORD_MAX = 1 + 8 + RD_HASH128_LEN + 8 + 8,
    HAS_DB = 0x80,
    HAS_EXPIRY = 0x40,
    KIND = 0x3f,
    TRAILER = 8, /* bytes of a checksum */
    SINK_BUFFER = 4096,
    PLAIN = 64
};

/* ---- records ---- */

static bool put_record(struct diff *diff, enum diff_side side, const struct diff_record *record,
                       struct rd_err *err)
{
    const struct diff_key *key = &record->key;
    uint8_t value[RECORD_MAX], *p = value + 9;
    value[0] = (uint8_t)key->kind;
    rd_put_be64(value + 1, key->record);
    rd_hash128_put(p, key->content);
    p += RD_HASH128_LEN;
    if (record->db != 0) {
        value[0] |= HAS_DB;
        rd_put_be64(p, record->db);
        p += 8;
    }
    if (key->expire_ms != RDB_NO_EXPIRE) {
        value[0] |= HAS_EXPIRY;
        rd_put_be64(p, (uint64_t)key->expire_ms);
        p += 8;
    }
    return sort_add(&diff->keys[side], rd_slice(record->hash, RD_HASH128_LEN),
                    rd_slice(value, (size_t)(p - value)), err);
}

static void get_record(struct diff_record *ret, struct rd_slice hash, const uint8_t *value)
{
    const uint8_t *p = value + 9 + RD_HASH128_LEN;
    memcpy(ret->hash, hash.ptr, RD_HASH128_LEN);
    ret->key = (struct diff_key){.present = true,
                                 .kind = (enum rdb_kind)(value[0] & KIND),
                                 .expire_ms = RDB_NO_EXPIRE,
                                 .record = rd_get_be64(value + 1),
                                 .content = rd_hash128_get(value + 9)};
    ret->db = 0;
    if ((value[0] & HAS_DB) != 0) {
        ret->db = rd_get_be64(p);
        p += 8;
    }
    if ((value[0] & HAS_EXPIRY) != 0)
        ret->key.expire_ms = (int64_t)rd_get_be64(p);
}

bool diff_next_record(struct diff *diff, enum diff_side side, struct diff_record *ret,
                      bool *ret_end, struct rd_err *err)
{
    struct rd_slice hash, value;
    if (!sort_next(&diff->keys[side], &hash, &value, ret_end, err))
        return false;
    if (!*ret_end)
        get_record(ret, hash, value.ptr);
    return true;
}

bool diff_read_closer(struct diff *diff, enum diff_side side, const uint8_t *hash,
                      const struct diff_found *found, struct rd_err *err)
{
    struct sort *sort = &diff->closer[side];
    uint8_t key[8], value[CLOSER_LEN];
    if (sort->arena == NULL && !sort_init(sort, DIFF_MEMORY / 4, err))
        return false;
    rd_put_be64(key, found->key[side].record);
    rd_put_be64(value, found->db);
    memcpy(value + 8, hash, RD_HASH128_LEN);
    return sort_add(sort, rd_slice(key, sizeof key), rd_slice(value, sizeof value), err);
}

/* ---- one pass over one side ---- */

struct pass {
    struct diff *diff;
    enum diff_side side;
    bool shown; /* its progress */
    struct rdb_content content;
    struct rd_sink *sink; /* adds the bytes of a stored value to `stored` */
    struct rd_siphash stored;
    struct diff_record record;
    bool in_value; /* false: in a record of a module */
    struct rd_siphash function;
    struct rdb_event trailer;
    atomic_bool *failed; /* one of the passes */
    bool ok;
    struct rd_err err;
};

static void tick(const struct pass *pass)
{
    rd_watch_at(pass->diff->watch, rd_src_offset(pass->diff->in[pass->side].src));
}

static bool hash_bytes(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct pass *pass = impl;
    (void)err;
    rd_siphash_add(&pass->stored, ptr, len);
    return true;
}

static bool close_hash(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

/* Types of different dialects may share a number, but not their description. */
static void begin_stored(struct pass *pass, const struct rdb_type *type)
{
    rd_siphash_begin(&pass->stored, pass->diff->hashing.key);
    rd_siphash_add_u64(&pass->stored, (uint64_t)(uintptr_t)type);
}

static bool end_key(struct pass *pass, struct rd_hash128 content)
{
    pass->record.key.content = content;
    pass->in_value = false;
    pass->diff->counts.keys[pass->side]++;
    return put_record(pass->diff, pass->side, &pass->record, &pass->err);
}

static void begin_key(struct pass *pass, uint64_t db, struct rd_slice name,
                      const struct diff_key *key)
{
    struct diff_record *record = &pass->record;
    rd_hash128_put(record->hash, rdb_content_key(&pass->diff->hashing, db, name));
    record->db = db;
    record->key = *key;
}

static void begin_key_event(struct pass *pass, const struct rdb_event *ev)
{
    const struct diff_key key = {.present = true,
                                 .kind = ev->key.type->kind,
                                 .expire_ms = ev->key.expire_ms,
                                 .record = ev->key.record};
    begin_key(pass, ev->key.db, ev->key.name, &key);
}

/* Reads keys with short strings without events, as long as they follow each other. */
static bool read_plain(struct pass *pass)
{
    struct rdb_reader *reader = pass->diff->in[pass->side].reader;
    struct rdb_plain keys[PLAIN];
    size_t n;
    if (filter_active(pass->diff->opts->filter))
        return true;
    while ((n = rdb_plain_take(reader, UINT64_MAX, keys, PLAIN)) > 0) {
        for (size_t i = 0; i < n; i++) {
            const struct rdb_plain *plain = &keys[i];
            const struct diff_key key = {.present = true,
                                         .kind = RDB_KIND_STRING,
                                         .expire_ms = plain->expire_ms,
                                         .record = plain->offset};
            const uint8_t *value = plain->name.ptr + plain->name.len;
            begin_key(pass, pass->record.db, plain->name, &key);
            begin_stored(pass, rdb_type_get(RDB_TYPE_STRING));
            rd_siphash_add(&pass->stored, value, (size_t)(plain->raw.ptr + plain->raw.len - value));
            if (!end_key(pass, rd_siphash_end(&pass->stored)))
                return false;
        }
        if (pass->shown)
            tick(pass);
    }
    return true;
}

static bool read_stored(struct pass *pass, const struct rdb_event *ev)
{
    const struct again *in = &pass->diff->in[pass->side];
    begin_stored(pass, ev->key.type);
    if (rdb_reader_copy_value(in->reader, pass->sink) != RDB_EVENT || !rd_sink_flush(pass->sink))
        return again_fail(in, &pass->err);
    return end_key(pass, rd_siphash_end(&pass->stored)) && read_plain(pass);
}

static bool read_key(struct pass *pass, const struct rdb_event *ev)
{
    struct diff *diff = pass->diff;
    struct again *in = &diff->in[pass->side];
    bool wanted;
    if (pass->shown)
        tick(pass);
    if (!sized_wants(&in->sized, ev, &wanted, &pass->err))
        return false;
    if (!wanted)
        return rdb_reader_skip_value(in->reader) == RDB_EVENT || again_fail(in, &pass->err);
    begin_key_event(pass, ev);
    if (diff->stored)
        return read_stored(pass, ev);
    pass->in_value = true;
    return true;
}

/* The order of libraries does not matter. */
static void read_function(struct pass *pass, const struct rdb_string *code)
{
    struct diff *diff = pass->diff;
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(code, tmp);
    if (code->first)
        rd_siphash_begin(&pass->function, diff->hashing.key);
    rd_siphash_add(&pass->function, bytes.ptr, bytes.len);
    if (code->more)
        return;
    diff->functions[pass->side] =
        rd_hash128_add(diff->functions[pass->side], rd_siphash_end(&pass->function));
    diff->n_functions[pass->side]++;
}

static bool read_content(struct pass *pass, const struct rdb_event *ev)
{
    return rdb_content_put(&pass->content, ev, &pass->err) &&
           (ev->kind != RDB_VALUE_END || end_key(pass, rdb_content_sum(&pass->content)));
}

static bool read_event(struct pass *pass, const struct rdb_event *ev)
{
    if (pass->in_value)
        return read_content(pass, ev);
    if (ev->kind == RDB_KEY)
        return read_key(pass, ev);
    if (ev->kind == RDB_FUNCTION)
        read_function(pass, &ev->function.code);
    if (ev->kind == RDB_TRAILER)
        pass->trailer = *ev;
    return true;
}

static bool read_all(struct pass *pass)
{
    const struct again *in = &pass->diff->in[pass->side];
    struct rdb_event ev;
    enum rdb_status status = RDB_END;
    while (!atomic_load_explicit(pass->failed, memory_order_relaxed) &&
           (status = rdb_reader_next(in->reader, &ev)) == RDB_EVENT) {
        if (read_event(pass, &ev))
            continue;
        rd_err_origin(&pass->err, rd_src_origin(in->src));
        return false;
    }
    return status != RDB_FAIL || again_fail(in, &pass->err);
}

/* Reads the contents of the values that need a closer look, in the order of the file. */
static bool read_chosen(struct pass *pass)
{
    struct diff *diff = pass->diff;
    struct again *in = &diff->in[pass->side];
    struct rd_slice key, value;
    bool end;
    if (!sort_begin(&diff->closer[pass->side], &pass->err))
        return false;
    while (!atomic_load_explicit(pass->failed, memory_order_relaxed) &&
           sort_next(&diff->closer[pass->side], &key, &value, &end, &pass->err)) {
        struct rdb_event ev;
        if (end)
            return true;
        if (!again_seek(in, rd_get_be64(key.ptr), rd_get_be64(value.ptr), &ev, &pass->err))
            return false;
        begin_key_event(pass, &ev);
        memcpy(pass->record.hash, value.ptr + 8, RD_HASH128_LEN);
        for (pass->in_value = true; pass->in_value;) {
            if (rdb_reader_next(in->reader, &ev) != RDB_EVENT)
                return again_fail(in, &pass->err);
            if (!read_content(pass, &ev)) {
                rd_err_origin(&pass->err, rd_src_origin(in->src));
                return false;
            }
        }
    }
    return false;
}

/* ---- both sides ---- */

struct passes {
    struct pass pass[2];
    bool (*read)(struct pass *pass);
    atomic_bool failed;
};

static bool open_pass(struct passes *passes, struct diff *diff, enum diff_side side,
                      struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = hash_bytes, .close = close_hash};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = SINK_BUFFER);
    struct pass *pass = &passes->pass[side];
    *pass = (struct pass){.diff = diff, .side = side, .failed = &passes->failed};
    rdb_content_init(&pass->content, &diff->hashing);
    return rd_sink_new(&pass->sink, &ops, pass, &opts, err) &&
           sort_init(&diff->keys[side], DIFF_MEMORY / 2, err);
}

static void run_pass(struct passes *passes, enum diff_side side)
{
    struct pass *pass = &passes->pass[side];
    pass->ok = passes->read(pass) && sort_begin(&pass->diff->keys[side], &pass->err);
    if (!pass->ok)
        atomic_store(&passes->failed, true);
}

static void run_passes(void *arg, unsigned worker)
{
    run_pass(arg, worker == 0 ? DIFF_B : DIFF_A);
}

/* Runs both passes: on two threads, or one after the other. Shows the progress of the pass on this
 * thread. */
static bool run_both(struct passes *passes, struct rd_err *err)
{
    struct pass *a = &passes->pass[DIFF_A], *b = &passes->pass[DIFF_B];
    struct diff *diff = a->diff;
    struct rd_worker *worker = rd_worker_new(1);
    bool whole = passes->read == read_all;
    b->shown = whole;
    a->shown = whole && worker == NULL;
    if (whole && !again_rewind(&diff->in[DIFF_A], diff->opts->name[DIFF_A], err))
        return rd_worker_free(worker), false;
    if (worker == NULL)
        run_pass(passes, DIFF_A);
    if (whole && !again_rewind(&diff->in[DIFF_B], diff->opts->name[DIFF_B], err))
        return rd_worker_free(worker), false;
    if (worker != NULL) {
        rd_worker_start(worker, run_passes, passes);
        rd_worker_join(worker);
        rd_worker_free(worker);
    } else {
        run_pass(passes, DIFF_B);
    }
    if (whole)
        rd_watch_end(diff->watch);
    const struct pass *failed = a->err.code != RD_ERR_OK ? a : b;
    if (failed->err.code != RD_ERR_OK)
        rd_err_adopt(err, &failed->err);
    return a->ok && b->ok;
}

static bool check_end(struct diff *diff, const struct pass *pass, struct rd_err *err)
{
    return pass->trailer.kind != RDB_TRAILER ||
           again_check_end(&diff->in[pass->side], &pass->trailer, err);
}

static bool read_sides(struct diff *diff, bool (*read)(struct pass *pass), struct rd_err *err)
{
    struct passes passes = {.read = read};
    bool ok = open_pass(&passes, diff, DIFF_A, err) && open_pass(&passes, diff, DIFF_B, err) &&
              run_both(&passes, err) && check_end(diff, &passes.pass[DIFF_A], err) &&
              check_end(diff, &passes.pass[DIFF_B], err);
    rd_sink_abort(passes.pass[DIFF_A].sink);
    rd_sink_abort(passes.pass[DIFF_B].sink);
    return ok;
}

/* Whether the file ends with a checksum, which its reader will compare. */
static bool has_sum(const struct again *in)
{
    struct rd_err ignored = {0};
    struct rd_slice sum;
    return in->version >= 5 && rd_src_size(in->src) != RD_NO_OFFSET &&
           rd_src_size(in->src) > TRAILER &&
           rd_src_seek(in->src, rd_src_size(in->src) - TRAILER, &ignored) &&
           rd_src_need(in->src, TRAILER, &sum) == RD_SRC_OK && rd_get_le64(sum.ptr) != 0;
}

bool diff_read(struct diff *diff, struct rd_err *err)
{
    diff->stored = has_sum(&diff->in[DIFF_A]) && has_sum(&diff->in[DIFF_B]);
    return read_sides(diff, read_all, err);
}

bool diff_read_contents(struct diff *diff, struct rd_err *err)
{
    const uint64_t keys[2] = {diff->counts.keys[DIFF_A], diff->counts.keys[DIFF_B]};
    sort_done(&diff->keys[DIFF_A]);
    sort_done(&diff->keys[DIFF_B]);
    diff->stored = false;
    bool ok = read_sides(diff, read_chosen, err);
    memcpy(diff->counts.keys, keys, sizeof keys);
    return ok;
}

void diff_read_done(struct diff *diff)
{
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        sort_done(&diff->keys[side]);
        sort_done(&diff->closer[side]);
    }
}
