/* resync.c - finds the next position from which records are readable.
 *
 * A record may begin at any byte. A position is accepted if a long enough chain of records follows,
 * all of them sound to the last element and with different names, and if the first of them looks
 * like the other keys of the file: a false record that begins one byte too early, in the remains of
 * a damaged one, leads to the same good records.
 */
#include "rdb/recover/recover_impl.h"

#include "base/endian.h"

enum { DATABASES_MAX = 1 << 16, LATER_MAX = 1024, LATER_WORK = 512 << 20, HASHES = 64 };

struct chain {
    unsigned weight;
    unsigned n; /* records */
    unsigned keys;
    bool strange;            /* a key did not look like the keys of this file */
    enum record_kind second; /* the kind of the record after the first one */
    bool to_end;             /* the last record was the end of the file */
    bool cut;                /* it broke off because the input ends */
    bool over;               /* it continued beyond the limit */
    uint64_t end;            /* where it stopped */
    struct record first;
    unsigned before; /* records that begin before `join` */
    bool joined;     /* a record begins exactly at `join` */
    bool over_join;  /* `join` lies inside a record */
};

/* Whether a record can begin with this byte. */
static bool can_begin(const struct scan *s, uint8_t byte)
{
    switch (byte) {
    case RDB_OP_SELECTDB:
    case RDB_OP_EXPIRETIME:
    case RDB_OP_EXPIRETIME_MS:
    case RDB_OP_IDLE:
    case RDB_OP_FREQ:
    case RDB_OP_AUX:
    case RDB_OP_FUNCTION2:
    case RDB_OP_MODULE_AUX:
    case RDB_OP_EOF:
        return true;
    case RDB_OP_HASH_TEMPLATE:
        return s->dialect == RDB_REDIS && s->version >= 15;
    default:
        return byte < RDB_OP_HASH_TEMPLATE && rdb_type_find(s->dialect, s->version, byte) != NULL;
    }
}

static bool repeated(const uint64_t *hashes, unsigned n, uint64_t hash)
{
    for (unsigned i = 0; i < n; i++)
        if (hashes[i] == hash)
            return true;
    return false;
}

static unsigned weight_of(const struct scan *s, const struct record *rec)
{
    if (rec->kind == RECORD_OTHER)
        return WEIGHT_KEY;
    if (rec->kind != RECORD_KEY)
        return WEIGHT_ANCHOR;
    return rdb_recover_looks_like_field(s, rec) ? WEIGHT_FIELD : WEIGHT_KEY;
}

static bool end_is_real(const struct scan *s, const struct record *rec)
{
    return rec->end == s->size;
}

/* A key whose name is unlike the others. Some files have a few of these; damage produces more. */
static bool is_strange(const struct scan *s, const struct record *rec)
{
    return rec->kind == RECORD_KEY &&
           (rec->key_len == 0 ||
            (s->name_stats.n > 0 && rdb_recover_names_printable(&s->name_stats) &&
             !rdb_recover_is_printable(rec)));
}

/* Reads records from `at` until the chain is accepted, breaks or reaches `join` (UINT64_MAX: none).
 */
static enum rdb_recover_status follow(struct scan *s, uint64_t at, uint64_t db, uint64_t stop,
                                      uint64_t join, struct chain *ret)
{
    uint64_t hashes[HASHES];
    unsigned n = 0;
    *ret = (struct chain){.end = at, .second = RECORD_OTHER};
    if (!rdb_recover_scan_at(s, at, db, stop))
        return RDB_RECOVER_FAIL;
    struct name_stats name_stats = {0};
    while (ret->weight < CHAIN_STRONG || join != UINT64_MAX) {
        struct record rec;
        enum rdb_recover_status st = rdb_recover_record(s, &rec);
        if (st == RDB_RECOVER_FAIL)
            return st;
        const struct rd_err *err = rdb_reader_err(s->reader);
        if (st == RDB_RECOVER_BROKEN) {
            ret->over = err->code == RD_ERR_TRUNCATED && s->limit.stop < s->size;
            ret->cut = err->code == RD_ERR_TRUNCATED && !ret->over;
            break;
        }
        if (rec.refused != NULL || rec.empty_pair ||
            (rec.kind == RECORD_KEY && repeated(hashes, n < HASHES ? n : HASHES, rec.hash)))
            break;
        if (rec.end == s->avoid || (rec.kind == RECORD_END && !end_is_real(s, &rec)))
            break;
        if (ret->n == 0)
            ret->first = rec;
        else if (rec.kind == RECORD_KEY)
            rdb_recover_name_stats_add(&name_stats, &rec);
        if (rec.kind == RECORD_KEY)
            hashes[n++ % HASHES] = rec.hash;
        if (ret->n == 1)
            ret->second = rec.kind;
        ret->n++;
        if (is_strange(s, &rec)) {
            ret->strange = true;
        } else {
            ret->keys += rec.kind == RECORD_KEY && !rdb_recover_looks_like_field(s, &rec);
            ret->weight += weight_of(s, &rec);
        }
        ret->end = rec.end;
        if (rec.start < join)
            ret->before++;
        if (rec.kind == RECORD_END) {
            ret->to_end = true;
            break;
        }
        if (rec.end >= join) {
            ret->joined = rec.end == join;
            ret->over_join = !ret->joined;
            break;
        }
    }
    /* The first record is compared with the following ones if nothing was read before. */
    if (s->name_stats.n == 0 && name_stats.n > 0 && ret->first.kind == RECORD_KEY &&
        ((rdb_recover_names_printable(&name_stats) && !rdb_recover_is_printable(&ret->first)) ||
         ret->first.key_len < name_stats.shortest / 2))
        ret->weight = 0;
    return RDB_RECOVER_OK;
}

/* Whether the first record looks like those of this file. */
static bool familiar(const struct scan *s, const struct record *rec)
{
    if (rec->kind == RECORD_DB)
        return rec->db < DATABASES_MAX;
    /* Fields and functions precede all keys. */
    if (rec->kind == RECORD_OTHER)
        return s->name_stats.n == 0;
    if (rec->kind != RECORD_KEY)
        return true;
    if (!rec->plausible_expiry || rec->key_len == 0)
        return false;
    const struct name_stats *h = &s->name_stats;
    if (h->n == 0)
        return true;
    return (!rdb_recover_names_printable(h) || rdb_recover_is_printable(rec)) &&
           rec->key_len >= h->shortest / 2;
}

/* Whether the key whose type is at this position cannot be familiar(). */
static bool is_foreign_key(const struct scan *s, struct rd_slice bytes)
{
    struct record rec;
    if (bytes.len < 3 || bytes.ptr[0] >= RDB_OP_HASH_TEMPLATE || bytes.ptr[1] >= 0x80)
        return false;
    bool small = bytes.ptr[1] < 0x40;
    size_t len = small ? bytes.ptr[1] : (size_t)(bytes.ptr[1] & 0x3f) << 8 | bytes.ptr[2];
    size_t at = small ? 2 : 3;
    size_t kept = len < sizeof rec.key ? len : sizeof rec.key;
    if (bytes.len - at < kept)
        return false;
    rec.kind = RECORD_KEY;
    rec.plausible_expiry = true;
    rec.key_len = len;
    memcpy(rec.key, bytes.ptr + at, kept);
    return !familiar(s, &rec);
}

/* Excludes most positions without reading the whole record: it would not be familiar(). */
static bool is_foreign(const struct scan *s, struct rd_slice bytes)
{
    enum { MS = 1 + 8, FREQ = 1 + 1 };
    switch (bytes.ptr[0]) {
    case RDB_OP_AUX:
    case RDB_OP_FUNCTION2:
    case RDB_OP_MODULE_AUX:
        return s->name_stats.n > 0;
    case RDB_OP_EXPIRETIME_MS:
        return bytes.len > MS &&
               (!rdb_recover_expiry_is_plausible((int64_t)rd_get_le64(bytes.ptr + 1)) ||
                is_foreign_key(s, rd_slice(bytes.ptr + MS, bytes.len - MS)));
    case RDB_OP_FREQ:
        return bytes.len > FREQ && is_foreign_key(s, rd_slice(bytes.ptr + FREQ, bytes.len - FREQ));
    default:
        return is_foreign_key(s, bytes);
    }
}

static bool believed(const struct scan *s, const struct chain *c)
{
    if (c->weight == 0 || !familiar(s, &c->first))
        return false;
    /* Since version 7 the size of a database follows its selector. */
    if (c->first.kind == RECORD_DB && c->second != (s->version >= 7 ? RECORD_HINT : RECORD_KEY))
        return false;
    if ((c->to_end && !c->strange) || c->weight >= CHAIN_STRONG)
        return true;
    return c->cut && c->keys >= CHAIN_AT_END;
}

static const char *how(const struct chain *c)
{
    if (c->first.kind == RECORD_DB)
        return "a database selector, and sound records after it";
    if (c->to_end)
        return "sound records up to the end of the file";
    if (c->cut)
        return "sound records up to where the file is cut";
    return "many sound records in a row";
}

/* Positions whose first record is longer than CHAIN_BYTES: examined when a position to join is
 * known. */
struct later {
    uint64_t at[LATER_MAX];
    unsigned n;
};

struct search {
    struct scan *s;
    uint64_t db;
    struct later later;
    struct chain chain; /* of the position that was found */
};

/* Examines every position in [from, to) and returns the first that is accepted. *ret UINT64_MAX:
 * none. */
static enum rdb_recover_status search(struct search *f, uint64_t from, uint64_t to, bool put_off,
                                      uint64_t *ret)
{
    struct scan *s = f->s;
    *ret = UINT64_MAX;
    uint64_t at = from;
    while (at < to) {
        struct rd_slice window;
        if (!rdb_recover_scan_at(s, at, f->db, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        if (rd_src_need(s->src, 1, &window) != RD_SRC_OK)
            return RDB_RECOVER_OK;
        size_t i = 0;
        while (i < window.len && at + i < to &&
               (!can_begin(s, window.ptr[i]) ||
                is_foreign(s, rd_slice(window.ptr + i, window.len - i))))
            i++;
        at += i;
        if (i == window.len || at >= to)
            continue;
        enum rdb_recover_status st = follow(s, at, f->db, at + CHAIN_BYTES, UINT64_MAX, &f->chain);
        if (st != RDB_RECOVER_OK)
            return st;
        if (believed(s, &f->chain)) {
            *ret = at;
            return RDB_RECOVER_OK;
        }
        if (f->chain.over && put_off && f->later.n < LATER_MAX)
            f->later.at[f->later.n++] = at;
        at++;
    }
    return RDB_RECOVER_OK;
}

/* The record at a position may be a false one that contains good records. If records lead from its
 * inside past its end, the position becomes the first of these. */
static enum rdb_recover_status look_inside(struct search *f, uint64_t *at)
{
    enum { LONG = 1024, RECORDS_SURE = 4, TRIES = 64 };
    const struct chain outer = f->chain;
    uint64_t end = outer.first.end;
    if (outer.first.kind != RECORD_KEY || end - *at < LONG ||
        rdb_recover_is_proved(f->s, &outer.first))
        return RDB_RECOVER_OK;
    uint64_t from = *at + 1;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        uint64_t inner;
        struct chain chain;
        enum rdb_recover_status st = search(f, from, end, false, &inner);
        if (st != RDB_RECOVER_OK)
            return st;
        if (inner == UINT64_MAX || inner - *at > CHAIN_BYTES)
            break;
        st = follow(f->s, inner, f->db, inner + CHAIN_BYTES, end, &chain);
        if (st != RDB_RECOVER_OK)
            return st;
        bool sure = chain.over_join || (chain.joined && rdb_recover_is_anchor(f->s, &chain.first));
        if (sure && chain.before >= RECORDS_SURE && !chain.strange) {
            f->chain = chain;
            *at = inner;
            return RDB_RECOVER_OK;
        }
        from = chain.end > inner && !chain.joined ? chain.end : inner + 1;
    }
    f->chain = outer;
    return RDB_RECOVER_OK;
}

/* Of the postponed positions, the first whose records lead exactly to `join` (or to the end of the
 * file). */
static enum rdb_recover_status look_again(struct search *f, uint64_t join, uint64_t *ret)
{
    uint64_t work = 0;
    *ret = UINT64_MAX;
    for (unsigned i = 0; i < f->later.n && work < LATER_WORK; i++) {
        uint64_t at = f->later.at[i];
        uint64_t stop = join == UINT64_MAX ? UINT64_MAX : join + 1;
        struct chain chain;
        enum rdb_recover_status st = follow(f->s, at, f->db, stop, join, &chain);
        if (st != RDB_RECOVER_OK)
            return st;
        work += (chain.end > at ? chain.end : at + CHAIN_BYTES) - at;
        if ((chain.joined || chain.to_end) && familiar(f->s, &chain.first)) {
            f->chain = chain;
            *ret = at;
            return RDB_RECOVER_OK;
        }
    }
    return RDB_RECOVER_OK;
}

/* Where looking back begins: after the first byte of a record that is not too far away. A sound
 * packed value ends correctly: neither it nor the records before it swallowed anything. */
static uint64_t look_back_from(const struct scan *s, uint64_t broken)
{
    uint64_t from = broken;
    for (uint64_t i = 1; i <= RING && i <= s->n_ring; i++) {
        uint64_t start = s->ring[(s->n_ring - i) % RING].start;
        if ((broken - start > LOOK_BACK && i > 1) || s->ring[(s->n_ring - i) % RING].packed)
            break;
        from = start + 1;
    }
    return from;
}

/* The record in the ring that contains `at`, counted from the newest; 0: none. */
static uint64_t record_around(const struct scan *s, uint64_t at)
{
    for (uint64_t i = 1; i <= RING && i <= s->n_ring; i++)
        if (s->ring[(s->n_ring - i) % RING].start <= at)
            return i;
    return 0;
}

/* The end of the record that record_around() returned. */
static uint64_t record_end(const struct scan *s, uint64_t around, uint64_t broken)
{
    return around > 1 ? s->ring[(s->n_ring - around + 1) % RING].start : broken;
}

static bool is_record_start(const struct scan *s, uint64_t at)
{
    uint64_t i = record_around(s, at);
    return i > 0 && s->ring[(s->n_ring - i) % RING].start == at;
}

/* Whether a chain from `at` would drop more records that look like those of this file than it has.
 */
static bool drops_more(const struct scan *s, uint64_t at, const struct chain *c)
{
    enum { DB_PROOF = 4 };
    uint64_t n = 0;
    for (uint64_t i = 1; i <= RING && i <= s->n_ring; i++) {
        uint64_t k = (s->n_ring - i) % RING;
        if (s->ring[k].start <= at)
            break;
        n += s->ring[k].proof >= DB_PROOF;
    }
    return n > c->before;
}

/* Whether a chain that begins inside a record before the damage is better than the one found after
 * it: it has the same record ends, and one record more or the expiry of the first. */
static bool is_better(const struct scan *s, const struct chain *c, const struct chain *ahead)
{
    enum { RECORDS_SURE = 4 };
    if (c->over_join && c->before >= RECORDS_SURE && !c->strange &&
        rdb_recover_is_proved(s, &c->first))
        return true; /* the chain is the inside of a record */
    if (c->first.kind == RECORD_END || (!c->joined && !c->to_end))
        return false;
    if (ahead->n > 0 && c->first.end == ahead->first.end)
        return c->first.kind == RECORD_KEY && c->first.expires && c->first.plausible_expiry;
    if (c->first.kind != RECORD_KEY)
        return true;
    bool named = rdb_recover_names_printable(&s->name_stats) &&
                 rdb_recover_is_printable(&c->first) && c->first.key_len >= s->name_stats.shortest;
    return named || c->before >= 3;
}

/* A record before the broken one may have been damaged, so that it swallowed good records, or the
 * expiry of the next one. Then records can be read from inside of it, past the damage, to the end
 * of the first record after it. If several records qualify, the one with the most readable records
 * is chosen. */
static enum rdb_recover_status look_back(struct search *f, uint64_t broken,
                                         const struct chain *ahead, uint64_t *ret)
{
    enum { TRIES = 64 };
    struct scan *s = f->s;
    struct chain best = {0};
    uint64_t from = look_back_from(s, broken);
    uint64_t join = ahead->n > 0 ? ahead->first.end : s->size;
    uint64_t most = 0;
    *ret = UINT64_MAX;
    for (unsigned tries = 0; tries < TRIES;) {
        uint64_t at;
        struct chain chain;
        enum rdb_recover_status st = search(f, from, broken, false, &at);
        if (st != RDB_RECOVER_OK)
            return st;
        if (at == UINT64_MAX)
            break;
        from = at + 1;
        if (is_record_start(s, at))
            continue;
        st = follow(s, at, f->db, UINT64_MAX, join, &chain);
        if (st != RDB_RECOVER_OK)
            return st;
        if (!is_better(s, &chain, ahead) || drops_more(s, at, &chain))
            continue;
        uint64_t around = record_around(s, at);
        uint64_t kept = s->n_ring - around + chain.before;
        if (kept > most || *ret == UINT64_MAX) {
            most = kept;
            *ret = at;
            best = chain;
        }
        from = record_end(s, around, broken);
        tries++;
    }
    if (*ret != UINT64_MAX)
        f->chain = best;
    return RDB_RECOVER_OK;
}

/* The last selector in the lost range that is followed by its size. */
static enum rdb_recover_status named_db(struct scan *s, uint64_t from, uint64_t to,
                                        struct named_db *ret)
{
    uint64_t at = from;
    while (at < to) {
        struct rd_slice w;
        if (!rdb_recover_scan_at(s, at, 0, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        if (rd_src_need(s->src, 1, &w) != RD_SRC_OK)
            return RDB_RECOVER_OK;
        const uint8_t *p = memchr(w.ptr, RDB_OP_SELECTDB, w.len);
        if (p == NULL) {
            at += w.len;
            continue;
        }
        at += (uint64_t)(p - w.ptr);
        struct record select;
        struct record size;
        if (at < to && rdb_recover_scan_at(s, at, 0, UINT64_MAX) &&
            rdb_recover_record(s, &select) == RDB_RECOVER_OK && select.kind == RECORD_DB &&
            rdb_recover_record(s, &size) == RDB_RECOVER_OK && size.sizes && size.end <= to)
            *ret = (struct named_db){.found = true,
                                     .has_db = true,
                                     .db = select.db,
                                     .size = size.n_keys,
                                     .expires = size.n_expires};
        at++;
    }
    return RDB_RECOVER_OK;
}

static bool is_digits(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return true;
}

static bool is_magic(const uint8_t *p)
{
    return (memcmp(p, "REDIS", 5) == 0 && is_digits(p + 5, 4)) ||
           (memcmp(p, "VALKEY", 6) == 0 && is_digits(p + 6, 3));
}

enum rdb_recover_status rdb_recover_holds_magic(struct scan *s, uint64_t from, uint64_t to,
                                                bool *ret)
{
    *ret = false;
    for (uint64_t at = from; at < to && !*ret;) {
        struct rd_slice w;
        if (!rdb_recover_scan_at(s, at, 0, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        if (rd_src_need(s->src, RDB_MAGIC_LEN, &w) != RD_SRC_OK)
            return RDB_RECOVER_OK;
        size_t n = w.len - RDB_MAGIC_LEN + 1;
        for (size_t i = 0; i < n && at + i < to && !*ret; i++)
            *ret = (w.ptr[i] == 'R' || w.ptr[i] == 'V') && is_magic(w.ptr + i);
        at += n;
    }
    return RDB_RECOVER_OK;
}

/* A size that ends where records are readable again, and the number of its database if the
 * preceding byte is one. */
static enum rdb_recover_status trace_db(struct scan *s, uint64_t from, uint64_t to,
                                        struct named_db *ret)
{
    enum { SIZE_LEAST = 3, SIZE_MOST = 1 + 2 * 9 };
    for (uint64_t n = SIZE_LEAST; n <= SIZE_MOST && n <= to - from; n++) {
        uint64_t at = to - n - (to - from > n);
        struct rd_slice w;
        struct record size;
        if (!rdb_recover_scan_at(s, at, 0, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        if (rd_src_need(s->src, 2, &w) != RD_SRC_OK)
            return RDB_RECOVER_OK;
        uint8_t before = to - from > n ? w.ptr[0] : UINT8_MAX;
        if (w.ptr[to - n - at] != RDB_OP_RESIZEDB)
            continue;
        if (!rdb_recover_scan_at(s, to - n, 0, UINT64_MAX))
            return RDB_RECOVER_FAIL;
        if (rdb_recover_record(s, &size) == RDB_RECOVER_OK && size.sizes && size.end == to &&
            size.n_expires <= size.n_keys) {
            *ret = (struct named_db){.found = true,
                                     .has_db = before < RDB_RECOVER_DBS_DEFAULT,
                                     .db = before,
                                     .size = size.n_keys,
                                     .expires = size.n_expires};
            return RDB_RECOVER_OK;
        }
    }
    return RDB_RECOVER_OK;
}

enum rdb_recover_status rdb_recover_resync(struct scan *s, uint64_t broken, uint64_t db,
                                           struct resync *ret)
{
    struct search f = {.s = s, .db = db};
    *ret = (struct resync){.db = db, .value_end = RD_NO_OFFSET};
    uint64_t ahead;
    uint64_t other;
    enum rdb_recover_status st = search(&f, broken + 1, s->size, true, &ahead);
    if (st == RDB_RECOVER_OK && ahead != UINT64_MAX)
        st = look_inside(&f, &ahead);
    if (st != RDB_RECOVER_OK)
        return st;
    struct chain found = ahead != UINT64_MAX ? f.chain : (struct chain){0};
    st = look_again(&f, ahead, &other);
    if (st != RDB_RECOVER_OK)
        return st;
    if (other != UINT64_MAX) {
        ahead = other;
        found = f.chain;
    }
    s->avoid = broken;
    st = look_back(&f, broken, &found, &other);
    s->avoid = UINT64_MAX;
    if (st != RDB_RECOVER_OK)
        return st;
    if (other != UINT64_MAX) {
        ahead = other;
        found = f.chain;
    }
    if (ahead == UINT64_MAX)
        return RDB_RECOVER_OK;
    ret->found = true;
    ret->at = ahead;
    ret->how = how(&found);
    ret->selector = found.first.kind == RECORD_DB;
    uint64_t from = broken;
    uint64_t around = ahead < broken ? record_around(s, ahead) : 0;
    if (around > 0) {
        from = s->ring[(s->n_ring - around) % RING].start;
        ret->db = s->ring[(s->n_ring - around) % RING].db;
    }
    st = named_db(s, from, ahead, &ret->named);
    return st == RDB_RECOVER_OK ? trace_db(s, from, ahead, &ret->trace) : st;
}

/* The end of the value by its own lengths; UINT64_MAX: they do not lead to records. */
static enum rdb_recover_status framed_end(struct scan *s, const struct record *broken,
                                          uint64_t *ret)
{
    struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .templates = rdb_reader_templates(s->reader));
    struct rdb_reader *r = NULL;
    struct rdb_event ev;
    enum rdb_status st;
    *ret = UINT64_MAX;
    if (!rdb_recover_scan_at(s, broken->start, broken->db, UINT64_MAX) ||
        !rdb_reader_new_records(&r, s->src, s->dialect, s->version, &opts, &s->err))
        return RDB_RECOVER_FAIL;
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT && ev.kind != RDB_VALUE_END)
        ;
    if (st == RDB_EVENT)
        *ret = rd_src_offset(s->src);
    const struct rd_err *err = rdb_reader_err(r);
    bool failed = st == RDB_FAIL && (err->code == RD_ERR_IO || err->code == RD_ERR_MEMORY);
    if (failed)
        rd_err_adopt(&s->err, err);
    rdb_reader_free(r);
    return failed ? RDB_RECOVER_FAIL : RDB_RECOVER_OK;
}

enum rdb_recover_status rdb_recover_leads_on(struct scan *s, uint64_t at, uint64_t db, bool many,
                                             bool *ret, uint64_t *ret_next)
{
    struct chain chain;
    enum rdb_recover_status st = follow(s, at, db, at + CHAIN_BYTES, UINT64_MAX, &chain);
    bool whole = !many && chain.n > 0 && !chain.strange && familiar(s, &chain.first);
    *ret = st == RDB_RECOVER_OK &&
           (believed(s, &chain) || (whole && chain.first.end - at >= CHAIN_STRONG) ||
            (whole && chain.first.kind == RECORD_END));
    if (ret_next != NULL)
        *ret_next = chain.n > 0 ? chain.first.end : at;
    return st;
}

enum rdb_recover_status rdb_recover_framed(struct scan *s, const struct record *broken,
                                           uint64_t broke_at, struct resync *ret)
{
    uint64_t end;
    *ret = (struct resync){.db = broken->db, .value_end = RD_NO_OFFSET};
    if (!rdb_recover_has_head(s, broken))
        return RDB_RECOVER_OK;
    enum rdb_recover_status st = framed_end(s, broken, &end);
    if (st != RDB_RECOVER_OK || end == UINT64_MAX || end < broke_at || end >= s->size)
        return st;
    ret->value_end = end;
    bool leads;
    st = rdb_recover_leads_on(s, end, broken->db, false, &leads, NULL);
    if (st != RDB_RECOVER_OK)
        return st;
    if (leads) {
        ret->found = true;
        ret->at = end;
        ret->how = "the end that its own lengths announce";
    }
    return RDB_RECOVER_OK;
}
