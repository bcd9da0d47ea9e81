/* compare.c - whether source and target have the same data, slot by slot.
 *
 * Each master sends a snapshot, as to a replica. A key is hashed with its database, type, expiry
 * and content (rdb/content.h), and the hashes of the keys of a slot are added. So clusters that are
 * divided differently can be compared, in the memory of 16384 sums. Keys that expire before the
 * pause ends are left out: a side may have removed them. */
#include <inttypes.h>

#include "base/mem.h"
#include "capture/download.h"
#include "client/info.h"
#include "rdb/content.h"
#include "rdb/reader.h"
#include "tools/cli/watch.h"
#include "tools/migrate/migrate.h"

enum { RENEW_EVENTS = 4096 };

struct side {
    struct rd_hash128 slots[RD_HASH_SLOTS];
    struct rd_hash128 functions; /* of the first master */
    uint64_t keys, due;
    bool functions_differ;
};

struct compare {
    struct migrate *m;
    struct rdb_content_opts opts;
    int64_t due_ms;
    struct rdb_reader *reader;
    struct side *side;
    /* The key that is read. */
    struct rdb_content content;
    struct rd_hash128 key;
    unsigned slot;
    int64_t expire_ms;
    enum rdb_kind kind;
    bool wanted;
    bool is_target;
    struct rd_siphash library;
    struct rd_hash128 libraries; /* of this master */
};

static void add_key(struct compare *c)
{
    uint8_t bytes[RD_HASH128_LEN];
    struct rd_siphash hash;
    rd_siphash_begin(&hash, c->opts.key);
    rd_hash128_put(bytes, c->key);
    rd_siphash_add(&hash, bytes, sizeof bytes);
    rd_hash128_put(bytes, rdb_content_sum(&c->content));
    rd_siphash_add(&hash, bytes, sizeof bytes);
    rd_siphash_add_u64(&hash, (uint64_t)c->expire_ms);
    rd_siphash_add_u64(&hash, (uint64_t)c->kind);
    struct rd_hash128 *sum = &c->side->slots[c->slot];
    *sum = rd_hash128_add(*sum, rd_siphash_end(&hash));
    c->side->keys++;
}

static bool begin_key(struct compare *c, const struct rdb_event *ev, struct rd_err *err)
{
    bool due = ev->key.expire_ms != RDB_NO_EXPIRE && ev->key.expire_ms <= c->due_ms;
    struct rd_slice name = ev->key.name;
    if (c->is_target)
        c->wanted = migrate_plan_has(&c->m->plan, ev->key.db, name) && !due;
    else
        c->wanted = filter_wants(&c->m->filter, ev) && !due;
    c->side->due += due;
    if (!c->wanted) {
        rdb_reader_skip_value(c->reader);
        return true;
    }
    if (!c->is_target && !migrate_plan_rename(&c->m->plan, name, &name, err))
        return false;
    c->key = rdb_content_key(&c->opts, ev->key.db, name);
    c->slot = rd_hash_slot(name);
    c->expire_ms = ev->key.expire_ms;
    c->kind = ev->key.type->kind;
    rdb_content_init(&c->content, &c->opts);
    return true;
}

static void add_library(struct compare *c, const struct rdb_string *code)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(code, tmp);
    if (code->first)
        rd_siphash_begin(&c->library, c->opts.key);
    rd_siphash_add(&c->library, bytes.ptr, bytes.len);
    if (!code->more)
        c->libraries = rd_hash128_add(c->libraries, rd_siphash_end(&c->library));
}

static bool take(struct compare *c, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_KEY:
        return begin_key(c, ev, err);
    case RDB_FUNCTION:
        add_library(c, &ev->function.code);
        return true;
    case RDB_VALUE:
    case RDB_ELEM:
    case RDB_VALUE_END:
        break;
    default:
        return !c->wanted || rdb_content_put(&c->content, ev, err);
    }
    if (!c->wanted)
        return true;
    if (!rdb_content_put(&c->content, ev, err))
        return false;
    if (ev->kind == RDB_VALUE_END) {
        add_key(c);
        c->wanted = false;
    }
    return true;
}

static bool read_events(struct compare *c, struct rd_src *src, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS);
    struct rdb_event ev;
    enum rdb_status status = RDB_END;
    uint64_t n = 0;
    bool ok = rdb_reader_new(&c->reader, src, &opts, err);
    c->wanted = false;
    while (ok && (status = rdb_reader_next(c->reader, &ev)) == RDB_EVENT) {
        ok = take(c, &ev, err);
        if (++n % RENEW_EVENTS != 0)
            continue;
        migrate_wait(c->m, 0);
        ok = ok && migrate_pause_renew(c->m, err);
        if (ok && migrate_stopped(c->m))
            ok = rd_err_set(err, RD_ERR_CANCELLED, RD_NO_OFFSET, "stopped");
    }
    if (ok && status != RDB_END) {
        rd_err_adopt(err, rdb_reader_err(c->reader));
        ok = false;
    }
    rdb_reader_free(c->reader);
    c->reader = NULL;
    return ok;
}

static bool read_master(struct compare *c, const struct client_target *target, bool first,
                        struct rd_err *err)
{
    const struct rd_watch watch = cli_watch(c->m->cli);
    struct capture_download d = {.watch = &watch, .target = target};
    struct rd_src *src;
    c->libraries = (struct rd_hash128){0};
    bool ok = capture_download_begin(&d, err) && capture_download_source(&d, &src, err);
    if (ok) {
        ok = read_events(c, src, err);
        rd_src_close(src);
    }
    capture_download_end(&d);
    if (!ok)
        rd_err_origin(err, target->name);
    if (first)
        c->side->functions = c->libraries;
    c->side->functions_differ |= !rd_hash128_eq(c->side->functions, c->libraries);
    return ok;
}

/* ---- both sides ---- */

/* A field of streams exists since 7.0, and another since 8.6: if one side lacks it, it is left out
 * of both. */
static bool ask_version(struct client_peer *peer, unsigned *least, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(peer, "INFO server", &reply, err);
    unsigned version = ok ? client_info_version(reply.items[0].text, "redis_version") : 0;
    *least = version < *least ? version : *least;
    client_peer_reply_done(&reply);
    if (!ok)
        rd_err_origin(err, client_peer_target(peer)->name);
    return ok;
}

static bool ask_versions(struct compare *c, struct rd_err *err)
{
    unsigned least = UINT32_MAX;
    struct migrate *m = c->m;
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_paused; i++)
        ok = ask_version(m->paused[i].peer, &least, err);
    for (size_t i = 0; ok && i < m->target.n_nodes; i++)
        ok = ask_version(m->target.nodes[i].peer, &least, err);
    c->opts.no_offsets = least < 700;
    c->opts.no_idmp = least < 806;
    return ok;
}

static void judge(struct migrate *m, const struct side *a, const struct side *b)
{
    struct migrate_verdict *v = &m->verdict;
    v->done = true;
    v->keys[0] = a->keys;
    v->keys[1] = b->keys;
    v->due = a->due;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        v->n_differ += !rd_hash128_eq(a->slots[slot], b->slots[slot]);
    v->functions_differ = b->functions_differ || !rd_hash128_eq(a->functions, b->functions);
    v->same = v->n_differ == 0 && !v->functions_differ && a->keys == b->keys;
}

bool migrate_compare(struct migrate *m, struct rd_err *err)
{
    struct compare c = {.m = m};
    struct side *sides = rd_calloc(2, sizeof *sides);
    uint64_t seed[2];
    if (sides == NULL)
        return rd_err_nomem(err, 2 * sizeof *sides);
    cli_seed(seed);
    memcpy(c.opts.key, seed, sizeof seed);
    c.due_ms = m->paused_unix_ms + (int64_t)m->pause_ms;
    bool ok = ask_versions(&c, err);
    c.side = &sides[0];
    for (size_t i = 0; ok && i < m->n_paused; i++)
        ok = read_master(&c, &m->paused[i].target, i == 0, err);
    c.side = &sides[1];
    c.is_target = true;
    for (size_t i = 0; ok && i < m->target.n_nodes; i++)
        ok = read_master(&c, &m->target.nodes[i].target, i == 0, err);
    ok = ok && migrate_pause_renew(m, err); /* the source has been paused all the time */
    if (ok)
        judge(m, &sides[0], &sides[1]);
    rd_free(sides);
    return ok;
}
