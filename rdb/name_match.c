#include "rdb/name_match.h"

#include "base/mem.h"
#include "rdb/again.h"
#include "rdb/keyset.h"
#include "rdb/reader.h"

/* The number of different names kept for one hash: with a random key a second one never occurs. */
enum { NAMES_MAX = 4 };

void rdb_name_match_init(struct rdb_name_match *t, const struct rd_src *of,
                         enum rdb_dialect dialect, int version)
{
    *t = (struct rdb_name_match){.of = of, .dialect = dialect, .version = version};
}

static void close_side(struct rdb_name_match *t, int i)
{
    rdb_reader_free(t->side[i].reader);
    rd_src_close(t->side[i].src);
    t->side[i].reader = NULL;
    t->side[i].src = NULL;
}

void rdb_name_match_done(struct rdb_name_match *t)
{
    close_side(t, 0);
    close_side(t, 1);
}

/* Errors in the input are reported elsewhere. */
static void keep_failure(struct rdb_name_match *t, const struct rd_err *err)
{
    if (err->code == RD_ERR_IO || err->code == RD_ERR_MEMORY)
        rd_err_adopt(&t->err, err);
}

static bool open_side(struct rdb_name_match *t, int i)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    struct rd_err err = {0};
    if (t->side[i].reader != NULL)
        return true;
    if (rdb_again(t->of, &t->side[i].src, &err) &&
        rdb_reader_new_records(&t->side[i].reader, t->side[i].src, t->dialect, t->version, &opts,
                               &err))
        return true;
    close_side(t, i);
    t->once = true;
    keep_failure(t, &err);
    return false;
}

static bool name_at(struct rdb_name_match *t, int i, uint64_t record, struct rd_slice *ret)
{
    struct rdb_event ev;
    struct rd_err err = {0};
    if (t->once || !open_side(t, i))
        return false;
    if (!rd_src_seek(t->side[i].src, record, &err)) {
        keep_failure(t, &err);
        return false;
    }
    rdb_reader_restart(t->side[i].reader, 0);
    while (rdb_reader_next(t->side[i].reader, &ev) == RDB_EVENT) {
        if (ev.kind != RDB_KEY)
            continue;
        *ret = ev.key.name;
        return true;
    }
    keep_failure(t, rdb_reader_err(t->side[i].reader));
    return false;
}

enum rdb_name_match_status rdb_name_match_compare(struct rdb_name_match *t, uint64_t a, uint64_t b)
{
    struct rd_slice name[2];
    if (!name_at(t, 0, a, &name[0]) || !name_at(t, 1, b, &name[1]))
        return RDB_NAME_UNKNOWN;
    return rd_slice_eq(name[0], name[1]) ? RDB_NAME_SAME : RDB_NAME_DIFFERENT;
}

/* -- all suspects -- */

/* The different names with the same hash. */
struct names {
    uint64_t hash; /* 0: free */
    unsigned n;
    struct {
        uint64_t record;
        uint64_t db;
    } keys[NAMES_MAX];
};

struct pass {
    struct rdb_name_match *match;
    struct names *table;
    size_t mask;
    const struct rdb_suspect *suspects;
    size_t n, next; /* suspects; the first that is not before the current key */
    void (*found)(void *ctx, const struct rdb_suspect *s);
    void *ctx;
};

static struct names *names_of(const struct pass *p, uint64_t hash)
{
    size_t i = (hash >> 32) & p->mask;
    while (p->table[i].hash != 0 && p->table[i].hash != hash)
        i = (i + 1) & p->mask;
    return &p->table[i];
}

static bool is_suspect(struct pass *p, uint64_t record)
{
    while (p->next < p->n && p->suspects[p->next].offset < record)
        p->next++;
    return p->next < p->n && p->suspects[p->next].offset == record;
}

static void look_at_key(struct pass *p, const struct rdb_event *ev, uint64_t hash)
{
    struct names *names = names_of(p, hash);
    if (names->hash == 0)
        return;
    for (unsigned i = 0; i < names->n; i++) {
        if (names->keys[i].db != ev->key.db ||
            rdb_name_match_compare(p->match, names->keys[i].record, ev->key.record) ==
                RDB_NAME_DIFFERENT)
            continue;
        if (is_suspect(p, ev->key.record))
            p->found(p->ctx, &p->suspects[p->next]);
        return;
    }
    if (names->n < NAMES_MAX) {
        names->keys[names->n].record = ev->key.record;
        names->keys[names->n++].db = ev->key.db;
    }
}

/* The input was read up to `end` before, so a failure is one of I/O or memory. */
static bool read_keys(struct pass *p, struct rdb_reader *r, const struct rdb_hash_key *key,
                      uint64_t end)
{
    struct rdb_event ev;
    enum rdb_status st;
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY && ev.key.record >= end)
            return true;
        if (ev.kind == RDB_KEY)
            look_at_key(p, &ev, rdb_keyset_hash(key, ev.key.db, ev.key.name));
    }
    if (st == RDB_FAIL)
        keep_failure(p->match, rdb_reader_err(r));
    return p->match->err.code == RD_ERR_OK;
}

static bool make_table(struct pass *p, struct rd_err *err)
{
    size_t cap = 16;
    while (cap < 2 * p->n)
        cap *= 2;
    p->mask = cap - 1;
    p->table = rd_calloc(cap, sizeof *p->table);
    if (p->table == NULL)
        return rd_err_nomem(err, cap * sizeof *p->table);
    for (size_t i = 0; i < p->n; i++)
        names_of(p, p->suspects[i].hash)->hash = p->suspects[i].hash;
    return true;
}

enum rdb_name_match_status
rdb_name_match_find(struct rdb_name_match *t, const struct rdb_hash_key *key, uint64_t begin,
                    uint64_t end, const struct rdb_suspect *suspects, size_t n,
                    void (*found)(void *ctx, const struct rdb_suspect *s), void *ctx)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true);
    struct pass p = {.match = t, .suspects = suspects, .n = n, .found = found, .ctx = ctx};
    struct rd_err own = {0};
    struct rd_src *src = NULL;
    struct rdb_reader *r = NULL;
    enum rdb_name_match_status st = RDB_NAME_UNKNOWN;
    if (rdb_again(t->of, &src, &own) && rd_src_seek(src, begin, &own) &&
        rdb_reader_new(&r, src, &opts, &own) && make_table(&p, &own) && read_keys(&p, r, key, end))
        st = RDB_NAME_SAME;
    keep_failure(t, &own);
    rd_free(p.table);
    rdb_reader_free(r);
    rd_src_close(src);
    return st;
}
