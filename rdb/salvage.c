#include "rdb/salvage.h"

#include "base/buf.h"
#include "base/endian.h"
#include "base/mem.h"
#include "rdb/mend/priv.h"
#include "rdb/twins.h"

#include <stdio.h>

enum {
    PROBED_MAX = 64,
    SEGMENTS = 2 * RING,
    VERSION_ALL = 12, /* has all types that releases up to 2025 write */
    VERSION_LEAST = 6 /* that is written when the version is not known */
};

/* Records that follow each other in the input and are kept. They are written late, because a record
 * may turn out to be damaged some records behind it. */
struct segment {
    uint64_t from, to;
    uint64_t db;
    bool keys; /* they are keys, which belong to a database */
};

struct salvage {
    struct scan scan;
    const struct rdb_salvage_opts *opts;
    struct rdb_salvage_result *res;
    struct rd_src *copy;
    struct rd_sink *out;
    struct rdb_keyset keys;
    struct rdb_twins twins;
    uint64_t out_db; /* selected in the output */
    bool out_began;
    struct segment segs[SEGMENTS]; /* not written yet, oldest first */
    size_t n_segs;
    int told;           /* version to write when the file does not tell; 0: not known yet */
    int needed;         /* the first version that has all of what was kept */
    uint64_t hollow_at; /* where the hollow key before this record begins, or RD_NO_OFFSET */
    struct rd_err *err;
};

/* -- output -- */

static bool sink_failed(struct salvage *v)
{
    rd_err_adopt(v->err, rd_sink_err(v->out));
    return false;
}

static bool begin_output(struct salvage *v)
{
    char magic[16];
    snprintf(magic, sizeof magic, v->res->dialect == RDB_VALKEY ? "VALKEY%03d" : "REDIS%04d",
             v->res->version);
    rd_sink_sum_begin(v->out, 0);
    v->out_began = true;
    return rd_sink_write(v->out, magic, RDB_MAGIC_LEN) || sink_failed(v);
}

static bool select_db(struct salvage *v, uint64_t db)
{
    uint8_t op[1 + 9] = {RDB_OP_SELECTDB};
    size_t n = 2;
    if (v->out_db == db)
        return true;
    v->out_db = db;
    if (db < 64) {
        op[1] = (uint8_t)db;
    } else if (db < 16384) {
        op[1] = (uint8_t)(0x40 | db >> 8);
        op[2] = (uint8_t)db;
        n = 3;
    } else {
        op[1] = 0x81;
        rd_put_be64(op + 2, db);
        n = 10;
    }
    return rd_sink_write(v->out, op, n) || sink_failed(v);
}

static bool copy_range(struct salvage *v, uint64_t from, uint64_t to)
{
    if (!rd_src_seek(v->copy, from, v->err))
        return false;
    while (from < to) {
        struct rd_slice s;
        if (rd_src_need(v->copy, 1, &s) != RD_SRC_OK) {
            rd_err_adopt(v->err, rd_src_err(v->copy));
            return rd_err_set(v->err, RD_ERR_IO, from,
                              "the input became shorter while it was read");
        }
        size_t n = s.len < to - from ? s.len : (size_t)(to - from);
        if (!rd_sink_write(v->out, s.ptr, n))
            return sink_failed(v);
        rd_src_consume(v->copy, n);
        from += n;
    }
    return true;
}

static bool write_segment(struct salvage *v, const struct segment *seg)
{
    if (v->out == NULL || seg->from == seg->to)
        return true;
    if (!v->out_began && !begin_output(v))
        return false;
    return (!seg->keys || select_db(v, seg->db)) && copy_range(v, seg->from, seg->to);
}

static bool flush(struct salvage *v)
{
    for (size_t i = 0; i < v->n_segs; i++)
        if (!write_segment(v, &v->segs[i]))
            return false;
    v->n_segs = 0;
    return true;
}

static bool keep(struct salvage *v, const struct record *rec)
{
    bool keys = rec->kind == RECORD_KEY;
    struct segment *last = v->n_segs > 0 ? &v->segs[v->n_segs - 1] : NULL;
    if (last != NULL && last->to == rec->start && last->keys == keys &&
        (!keys || last->db == rec->db)) {
        last->to = rec->end;
        return true;
    }
    if (v->n_segs == SEGMENTS) {
        if (!write_segment(v, &v->segs[0]))
            return false;
        memmove(v->segs, v->segs + 1, --v->n_segs * sizeof v->segs[0]);
    }
    v->segs[v->n_segs++] =
        (struct segment){.from = rec->start, .to = rec->end, .db = rec->db, .keys = keys};
    return true;
}

/* What was kept from `at` on comes out again, as far as it was not written. */
static void take_back(struct salvage *v, uint64_t at)
{
    struct scan *s = &v->scan;
    while (v->n_segs > 0 && v->segs[v->n_segs - 1].from >= at)
        v->n_segs--;
    if (v->n_segs > 0 && v->segs[v->n_segs - 1].to > at)
        v->segs[v->n_segs - 1].to = at;
    while (s->n_ring > 0 && s->ring[(s->n_ring - 1) % RING].start >= at) {
        v->res->keys -= s->ring[(s->n_ring - 1) % RING].kept;
        s->n_ring--;
    }
}

static bool end_output(struct salvage *v)
{
    if (!flush(v))
        return false;
    if (v->out == NULL)
        return true;
    if (!v->out_began && !begin_output(v))
        return false;
    uint8_t end[1 + RDB_TRAILER_LEN] = {RDB_OP_EOF};
    if (!rd_sink_write(v->out, end, 1))
        return sink_failed(v);
    rd_put_le64(end + 1, rd_sink_sum(v->out));
    return v->res->version < RDB_VERSION_CHECKSUM ||
           rd_sink_write(v->out, end + 1, RDB_TRAILER_LEN) || sink_failed(v);
}

/* -- report -- */

static void tell(struct salvage *v, struct rdb_loss *loss, const struct record *rec)
{
    if (v->res->first_loss == RD_NO_OFFSET)
        v->res->first_loss = loss->from;
    if (loss->from < v->res->damage)
        v->res->damage = loss->from;
    if (rec != NULL && rec->has_key) {
        loss->has_key = true;
        loss->key_len = rec->key_len;
        loss->key = rd_slice(rec->key, rec->key_len < sizeof rec->key ? (size_t)rec->key_len
                                                                      : sizeof rec->key);
        loss->type = rec->type;
    }
    if (v->opts->loss != NULL)
        v->opts->loss(v->opts->ctx, loss);
}

/* The first record that could not be read, or should not be there. */
static void suspect(struct salvage *v, const struct record *rec)
{
    if (v->res->damage == RD_NO_OFFSET)
        v->res->damage = v->res->guessed_version ? 0 : mend_place(&v->scan, rec);
}

static void lost_key(struct salvage *v, const struct record *rec, const char *why)
{
    suspect(v, rec);
    struct rdb_loss loss = {.kind = RDB_LOSS_KEY,
                            .from = rec->start,
                            .to = rec->end,
                            .at = RD_NO_OFFSET,
                            .why = why,
                            .db = rec->db};
    v->res->keys_dropped++;
    tell(v, &loss, rec);
}

/* Equal hashes are not enough to drop a key. */
static bool is_same_name(struct salvage *v, const struct record *rec, uint64_t other)
{
    if (v->twins.of == NULL)
        rdb_twins_init(&v->twins, v->scan.file, v->scan.dialect, v->scan.version);
    return rdb_twins_compare(&v->twins, rec->start, other) != RDB_TWINS_DIFFERENT;
}

/* Was a key of this name kept before? If not, it is now. Another name of the same hash is kept in
 * another place. */
static bool is_known(struct salvage *v, const struct record *rec, bool *ret)
{
    struct rdb_keyset_slot key = {rec->hash, rec->start};
    struct rdb_keyset_slot other;
    enum rdb_keyset_status st;
    *ret = false;
    while ((st = rdb_keyset_add(&v->keys, &key, &other, v->err)) == RDB_KEYSET_KNOWN && !*ret) {
        *ret = is_same_name(v, rec, other.record);
        key.hash = key.hash * 0x9e3779b97f4a7c15u | 1;
    }
    rd_err_adopt(v->err, &v->twins.err);
    return st != RDB_KEYSET_FAIL && v->twins.err.code == RD_ERR_OK;
}

/* Writes what could be read of a collection that breaks. */
static bool keep_part(struct salvage *v, const struct record *rec, uint64_t *ret_kept)
{
    struct mend_part part = {
        .dialect = v->res->dialect, .version = v->scan.version, .out_version = v->res->version};
    bool known = false;
    bool ok = mend_part_read(&part, v->copy, rec, v->err);
    if (ok && part.kept > 0)
        ok = is_known(v, rec, &known);
    if (known)
        part.kept = 0;
    if (ok && part.kept > 0)
        ok = (v->out_began || begin_output(v)) && select_db(v, rec->db) &&
             (rd_sink_write(v->out, part.record.ptr, part.record.len) || sink_failed(v));
    *ret_kept = part.kept;
    rd_buf_done(&part.record);
    return ok;
}

/* -- the walk -- */

struct place {
    uint64_t at;
    uint64_t db;
    bool done;
};

/* A key that was kept before: of the two, the other may be the one that was not there. */
static void twin(struct salvage *v, const struct record *rec)
{
    lost_key(v, rec, "duplicate-key");
    if (v->scan.db_at < v->res->damage)
        v->res->damage = v->scan.db_at;
}

static bool is_refused(struct salvage *v, const struct record *rec, bool *ret)
{
    *ret = true;
    if (rec->refused != NULL) {
        lost_key(v, rec, rec->refused);
        return true;
    }
    if (!is_known(v, rec, ret))
        return false;
    if (*ret)
        twin(v, rec);
    return true;
}

static void remember(struct salvage *v, const struct record *rec, bool kept)
{
    struct scan *s = &v->scan;
    s->ring[s->n_ring % RING].start = rec->start;
    s->ring[s->n_ring % RING].db = rec->db;
    s->ring[s->n_ring % RING].kept = kept;
    s->ring[s->n_ring % RING].packed = mend_is_packed(rec);
    s->ring[s->n_ring % RING].proof = mend_proof(s, rec);
    s->n_ring++;
}

static bool take_key(struct salvage *v, const struct record *rec)
{
    bool refused;
    if (!is_refused(v, rec, &refused))
        return false;
    remember(v, rec, !refused && !rec->unwanted);
    if (refused)
        return true;
    mend_habits_add(&v->scan.habits, rec);
    mend_shape_add(&v->scan, rec);
    v->needed = rec->since > v->needed ? rec->since : v->needed;
    if (v->opts->tick != NULL)
        v->opts->tick(v->opts->ctx, rec->start);
    if (rec->unwanted) {
        v->res->keys_unwanted++;
        return true;
    }
    v->res->keys++;
    return keep(v, rec);
}

static bool lost_range(struct salvage *v, const struct record *rec, const char *why, uint64_t at,
                       uint64_t from, const struct way_back *way)
{
    struct rdb_loss loss = {.kind = RDB_LOSS_RANGE,
                            .from = from,
                            .to = way->found ? way->at : v->scan.size,
                            .why = why,
                            .at = at,
                            .way_back = way->found ? way->how : "no sound record behind it",
                            .db = rec->db};
    bool head = from == rec->start && rec->has_key;
    if (head && v->opts->partial && v->out != NULL && rec->refused == NULL && !rec->unwanted &&
        mend_part_possible(v->res->version, rec->type)) {
        if (!keep_part(v, rec, &loss.kept))
            return false;
        if (loss.kept > 0) {
            loss.kind = RDB_LOSS_PARTIAL;
            v->res->keys_partial++;
            v->res->keys++;
        }
    }
    v->res->ranges++;
    v->res->bytes_lost += loss.to - loss.from;
    tell(v, &loss, head ? rec : NULL);
    return true;
}

/* A field, a function, what a module keeps beside the keys. */
static bool take_other(struct salvage *v, const struct record *rec)
{
    struct rdb_loss loss = {.kind = RDB_LOSS_RANGE,
                            .from = rec->start,
                            .to = rec->end,
                            .at = RD_NO_OFFSET,
                            .why = rec->refused,
                            .way_back = "the next record",
                            .db = rec->db};
    if (rec->refused == NULL) {
        v->needed = rec->since > v->needed ? rec->since : v->needed;
        return keep(v, rec);
    }
    suspect(v, rec);
    v->res->ranges++;
    v->res->bytes_lost += rec->end - rec->start;
    tell(v, &loss, NULL);
    return true;
}

/* The record at rec->start broke: the way back is looked for, and what lies between is lost. */
static bool broken(struct salvage *v, struct record *rec, const char *why, uint64_t at,
                   struct place *place)
{
    struct scan *s = &v->scan;
    struct way_back way;
    char text[RD_ERR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", why);
    uint64_t left = mend_fields_left(s, rec);
    suspect(v, rec);
    if (mend_resync(s, rec->start, place->db, left, &way) == MEND_FAIL) {
        rd_err_adopt(v->err, &s->err);
        return false;
    }
    uint64_t from = rec->start;
    if (way.found && way.at < rec->start) {
        uint64_t i = s->n_ring;
        while (i > 0 && s->ring[(i - 1) % RING].start > way.at)
            i--;
        from = s->ring[(i - 1) % RING].start;
        take_back(v, from);
    }
    if (!lost_range(v, rec, text, at, from, &way))
        return false;
    place->done = !way.found;
    place->at = way.at;
    place->db = way.db;
    v->hollow_at = RD_NO_OFFSET;
    s->n_ring = 0; /* what lies before the lost range is settled */
    return !way.found || mend_scan_at(s, place->at, place->db, UINT64_MAX) ||
           (rd_err_adopt(v->err, &s->err), false);
}

/* An end mark that is not at the end of the file may be a damaged byte: it is, where records
 * follow. */
static bool early_end(struct salvage *v, struct record *rec, struct place *place)
{
    struct scan *s = &v->scan;
    struct way_back way;
    if (mend_resync(s, rec->start, place->db, 0, &way) == MEND_FAIL) {
        rd_err_adopt(v->err, &s->err);
        return false;
    }
    if (!way.found) {
        v->res->found_end = true;
        place->done = true;
        return true;
    }
    return broken(v, rec, "end mark with records behind it", rec->start, place);
}

static bool one_record(struct salvage *v, struct record *rec, struct place *place)
{
    struct scan *s = &v->scan;
    enum mend_status st = mend_record(s, rec);
    if (st == MEND_FAIL) {
        rd_err_adopt(v->err, &s->err);
        return false;
    }
    if (st == MEND_BROKEN) {
        const struct rd_err *err = rdb_reader_err(s->reader);
        return broken(v, rec, err->text, err->offset, place);
    }
    if (rec->hollow && v->hollow_at != RD_NO_OFFSET) {
        rec->start = v->hollow_at;
        rec->has_key = false;
        take_back(v, v->hollow_at);
        return broken(v, rec, "a range of zeros", rec->start, place);
    }
    v->hollow_at = rec->hollow ? rec->start : RD_NO_OFFSET;
    place->at = rec->end;
    switch (rec->kind) {
    case RECORD_KEY:
        return take_key(v, rec);
    case RECORD_DB:
        place->db = rec->db;
        s->db_at = rec->start;
        break;
    case RECORD_HINT:
        break;
    case RECORD_OTHER:
        if (!take_other(v, rec))
            return false;
        break;
    case RECORD_END:
        if (rec->end != s->size)
            return early_end(v, rec, place);
        v->res->found_end = true;
        place->done = true;
        return true;
    }
    remember(v, rec, false);
    return true;
}

/* -- the header -- */

struct release {
    const char *prefix;
    int version;
};

/* What a server of that release writes. */
static int version_of_release(struct rd_slice name, struct rd_slice value,
                              enum rdb_dialect *dialect)
{
    static const struct release redis[] = {{"3.2.", 7},  {"4.", 8},    {"5.", 9},
                                           {"6.0.", 9},  {"6.2.", 9},  {"7.0.", 10},
                                           {"7.2.", 11}, {"7.4.", 12}, {"8.", 12}};
    static const struct release valkey[] = {{"7.2.", 11}, {"8.", 11}, {"9.", 80}};
    bool is_valkey = rd_slice_is(name, "valkey-ver");
    if (!is_valkey && !rd_slice_is(name, "redis-ver"))
        return 0;
    const struct release *table = is_valkey ? valkey : redis;
    size_t n = is_valkey ? sizeof valkey / sizeof *valkey : sizeof redis / sizeof *redis;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(table[i].prefix);
        if (value.len >= len && memcmp(value.ptr, table[i].prefix, len) == 0) {
            *dialect = table[i].version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
            return table[i].version;
        }
    }
    return 0;
}

/* Reads the fields in front of the keys: which release wrote the file? 0: they do not say. */
static int probe_release(struct scan *s, enum rdb_dialect *dialect)
{
    if (!mend_scan_at(s, RDB_MAGIC_LEN, 0, UINT64_MAX))
        return 0;
    for (int i = 0; i < PROBED_MAX; i++) {
        struct rdb_event ev;
        char tmp[RD_NUM_I64_MAX];
        if (rdb_reader_next(s->reader, &ev) != RDB_EVENT || ev.kind != RDB_AUX)
            return 0;
        int version =
            version_of_release(ev.aux.name, rdb_string_bytes(&ev.aux.value, tmp), dialect);
        if (version != 0)
            return version;
    }
    return 0;
}

/* Dialect and version of the file; from its header where it can be read and nothing speaks against
 * it. */
static bool find_version(struct salvage *v)
{
    struct scan *s = &v->scan;
    struct rdb_salvage_result *res = v->res;
    struct rdb_reader *r;
    struct rdb_event ev;
    bool known = false;
    if (!mend_scan_version(s, RDB_REDIS, 12) || !rd_src_seek(s->src, 0, &s->err) ||
        !rdb_reader_new(&r, s->src, NULL, &s->err))
        return false;
    if (rdb_reader_next(r, &ev) == RDB_EVENT) {
        known = true;
        res->dialect = ev.header.dialect;
        res->version = ev.header.version;
    }
    rdb_reader_free(r);
    rd_src_sum_stop(s->src);
    enum rdb_dialect dialect = RDB_REDIS;
    if (known && !mend_scan_version(s, res->dialect, res->version))
        return false;
    int version = probe_release(s, &dialect);
    rd_err_reset(&s->err);
    if (version != 0 && (!known || version != res->version)) {
        res->dialect = dialect;
        res->version = version;
        res->guessed_version = true;
    } else if (!known) {
        /* Nothing tells: it is read as a version that has all types, and written as the first
         * version that has those which were found. */
        res->dialect = RDB_REDIS;
        res->version = v->told > 0 ? v->told : VERSION_ALL;
        res->guessed_version = true;
        return mend_scan_version(s, RDB_REDIS, VERSION_ALL);
    }
    return mend_scan_version(s, res->dialect, res->version);
}

static bool walk(struct salvage *v)
{
    struct place place = {.at = RDB_MAGIC_LEN};
    bool ok = find_version(v);
    if (ok && v->scan.size <= RDB_MAGIC_LEN)
        return true;
    if (!ok || !mend_scan_at(&v->scan, RDB_MAGIC_LEN, 0, UINT64_MAX)) {
        rd_err_adopt(v->err, &v->scan.err);
        return false;
    }
    struct record *rec = rd_calloc(1, sizeof *rec);
    if (rec == NULL)
        return rd_err_nomem(v->err, sizeof *rec);
    while (ok && !place.done) {
        rec->db = place.db;
        ok = one_record(v, rec, &place);
    }
    rd_free(rec);
    return ok;
}

/* Can the header be read? The source stands at its beginning again. */
static bool header_is_known(struct rd_src *src, bool *ret, struct rd_err *err)
{
    struct rdb_reader *r;
    struct rdb_event ev;
    if (!rd_src_seek(src, 0, err) || !rdb_reader_new(&r, src, NULL, err))
        return false;
    *ret = rdb_reader_next(r, &ev) == RDB_EVENT;
    rdb_reader_free(r);
    rd_src_sum_stop(src);
    return rd_src_seek(src, 0, err);
}

/* One walk over the file. *needed: as told, and then what it should have been. */
static bool pass(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                 const struct rdb_salvage_opts *opts, int *needed, struct rdb_salvage_result *ret,
                 struct rd_err *err)
{
    *ret = (struct rdb_salvage_result){.first_loss = RD_NO_OFFSET, .damage = RD_NO_OFFSET};
    struct salvage *v = rd_calloc(1, sizeof *v);
    if (v == NULL)
        return rd_err_nomem(err, sizeof *v);
    v->opts = opts;
    v->res = ret;
    v->copy = copy;
    v->out = out;
    v->out_db = UINT64_MAX;
    v->hollow_at = RD_NO_OFFSET;
    v->told = *needed;
    v->needed = VERSION_LEAST;
    v->err = err;
    bool ok = mend_scan_init(&v->scan, src, opts, err) && walk(v) && end_output(v);
    *needed = v->needed;
    ret->unchecked = v->keys.lost;
    mend_scan_done(&v->scan);
    rdb_keyset_done(&v->keys);
    rdb_twins_done(&v->twins);
    rd_free(v);
    return ok;
}

bool rdb_salvage(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                 const struct rdb_salvage_opts *opts, struct rdb_salvage_result *ret,
                 struct rd_err *err)
{
    struct rd_err own = {0};
    struct rd_err *e = err != NULL ? err : &own;
    const struct rdb_salvage_opts silent = {.seed = {opts->seed[0], opts->seed[1]},
                                            .partial = opts->partial,
                                            .wants = opts->wants,
                                            .ctx = opts->ctx};
    int needed = 0;
    bool known = true;
    *ret = (struct rdb_salvage_result){.first_loss = RD_NO_OFFSET, .damage = RD_NO_OFFSET};
    if (out != NULL && rd_src_can_seek(src) && !header_is_known(src, &known, e))
        return false;
    if (!known && !pass(src, copy, NULL, &silent, &needed, ret, e))
        return false;
    return pass(src, copy, out, opts, &needed, ret, e);
}
