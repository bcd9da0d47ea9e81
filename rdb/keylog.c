#include "rdb/keylog.h"

#include "base/mem.h"
#include "base/os.h"
#include "rdb/keyset.h"

enum {
    FILTER_LINES = 1 << 16, /* of 64 bytes: 4 MiB, twelve bits a key at 2.8 million keys */
    LINE_WORDS = 8,
    LOG_FIRST = 96 << 10,
    LOG_MAX = LOG_FIRST << 7, /* bytes of the log in memory: 12 MiB */
    BATCH = 4096,
    AHEAD = 16,         /* keys whose lines are prefetched */
    HUGE_FROM = 512,    /* keys at once: as many touch a good part of the filter's pages */
    HUGE_PAGE = 2 << 20 /* bytes; a larger page is not used */
};

#define FILTER_SIZE (FILTER_LINES * LINE_WORDS * sizeof(uint64_t))

bool rdb_keylog_init(struct rdb_keylog *log, const struct rdb_spool *spool, const uint64_t seed[2],
                     struct rd_err *err)
{
    *log = (struct rdb_keylog){.spool = spool, .key = rdb_hash_key(seed)};
    log->block = rd_calloc(1, FILTER_SIZE + HUGE_PAGE);
    if (log->block == NULL)
        return rd_err_nomem(err, FILTER_SIZE + HUGE_PAGE);
    uint8_t *block = log->block;
    log->filter = (uint64_t *)(void *)(block + (-(uintptr_t)block & (HUGE_PAGE - 1)));
    return true;
}

static uint64_t *line_of(const struct rdb_keylog *log, uint64_t hash)
{
    return log->filter + (hash % FILTER_LINES) * LINE_WORDS;
}

uint64_t rdb_keylog_hash(const struct rdb_keylog *log, uint64_t db, struct rd_slice name)
{
    return rdb_keyset_hash(&log->key, db, name);
}

/* Sets the hash's bits in its line, one in each word, to avoid waiting twice for one word; true:
 * all of them were set. */
static bool filter_add(struct rdb_keylog *log, uint64_t hash)
{
    uint64_t *line = line_of(log, hash);
    uint64_t bits = hash >> 16;
    uint64_t missing = 0;
    for (int i = 0; i < LINE_WORDS; i++) {
        uint64_t bit = (uint64_t)1 << (bits >> 6 * i & 63);
        missing |= bit & ~line[i];
        line[i] |= bit;
    }
    return missing == 0;
}

static bool log_hash(struct rdb_keylog *log, uint64_t hash, struct rd_err *err)
{
    if (log->log.len == log->log.cap) {
        size_t more = log->log.cap == 0 ? LOG_FIRST : log->log.cap;
        if (log->log.cap < LOG_MAX) {
            if (!rd_buf_reserve(&log->log, more))
                return rd_err_nomem(err, more);
        } else if (log->spool == NULL) {
            log->lost++;
            return true;
        } else {
            if (!log->spool->append(log->spool->ctx, log->log.ptr, log->log.len, err))
                return false;
            log->spooled += log->log.len / sizeof hash;
            rd_buf_reset(&log->log);
        }
    }
    memcpy(log->log.ptr + log->log.len, &hash, sizeof hash);
    log->log.len += sizeof hash;
    return true;
}

static bool add_suspect(struct rdb_keylog *log, const struct rdb_suspect *suspect,
                        struct rd_err *err)
{
    if (log->suspects.len / sizeof *suspect >= RDB_KEYLOG_SUSPECTS_MAX) {
        log->lost++;
        return true;
    }
    return rd_buf_add(&log->suspects, suspect, sizeof *suspect) ||
           rd_err_nomem(err, sizeof *suspect);
}

/* The places of the keys in the filter are random: with small pages, each of them also misses the
 * cache of page addresses. */
static void prefer_huge_pages(struct rdb_keylog *log)
{
    if (!log->huge)
        rd_prefer_huge_pages(log->filter, FILTER_SIZE);
    log->huge = true;
}

bool rdb_keylog_add(struct rdb_keylog *log, const struct rdb_suspect *keys, size_t n,
                    struct rd_err *err)
{
    if (n >= HUGE_FROM)
        prefer_huge_pages(log);
    for (size_t i = 0, fetched = 0; i < n; i++) {
        for (; fetched < n && fetched < i + AHEAD; fetched++)
            __builtin_prefetch(line_of(log, keys[fetched].hash), 1);
        bool suspect = filter_add(log, keys[i].hash);
        if (!log_hash(log, keys[i].hash, err) || (suspect && !add_suspect(log, &keys[i], err)))
            return false;
    }
    return true;
}

/* -- the end: counts each suspect's hash in the log -- */

struct count {
    uint64_t hash; /* 0: free */
    uint32_t n;    /* in the log */
    uint32_t suspects;
    bool first_seen;
};

static struct count *find(struct count *counts, size_t mask, uint64_t hash)
{
    size_t i = (hash >> 32) & mask;
    while (counts[i].hash != 0 && counts[i].hash != hash)
        i = (i + 1) & mask;
    return &counts[i];
}

static void count_hashes(struct count *counts, size_t mask, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        uint64_t hash;
        memcpy(&hash, p + i, sizeof hash);
        struct count *c = find(counts, mask, hash);
        c->n += c->hash == hash;
    }
}

static bool count_spooled(struct rdb_keylog *log, struct count *counts, size_t mask,
                          struct rd_err *err)
{
    uint64_t batch[BATCH];
    for (uint64_t at = 0; at < log->spooled; at += BATCH) {
        size_t n = log->spooled - at < BATCH ? (size_t)(log->spooled - at) : BATCH;
        if (!log->spool->read(log->spool->ctx, at * sizeof *batch, batch, n * sizeof *batch, err))
            return false;
        count_hashes(counts, mask, (const uint8_t *)batch, n * sizeof *batch);
    }
    return true;
}

bool rdb_keylog_finish(struct rdb_keylog *log,
                       void (*found)(void *ctx, const struct rdb_suspect *suspect), void *ctx,
                       struct rd_err *err)
{
    size_t n = log->suspects.len / sizeof(struct rdb_suspect);
    size_t cap = 16;
    while (cap < 2 * n)
        cap *= 2;
    if (n == 0)
        return true;
    struct count *counts = rd_calloc(cap, sizeof *counts);
    if (counts == NULL)
        return rd_err_nomem(err, cap * sizeof *counts);
    const struct rdb_suspect *s = (const struct rdb_suspect *)(const void *)log->suspects.ptr;
    for (size_t i = 0; i < n; i++)
        find(counts, cap - 1, s[i].hash)->hash = s[i].hash;
    bool ok = count_spooled(log, counts, cap - 1, err);
    if (ok)
        count_hashes(counts, cap - 1, log->log.ptr, log->log.len);
    for (size_t i = 0; ok && i < n; i++)
        find(counts, cap - 1, s[i].hash)->suspects++;
    for (size_t i = 0; ok && i < n; i++) {
        /* The first key of its hash is a suspect only after a false positive of the filter. If
         * hashes were lost, there may be fewer of them than suspects; only certain duplicates are
         * reported. */
        struct count *c = find(counts, cap - 1, s[i].hash);
        if (c->n > c->suspects || c->first_seen)
            found(ctx, &s[i]);
        c->first_seen = true;
    }
    rd_free(counts);
    return ok;
}

void rdb_keylog_done(struct rdb_keylog *log)
{
    rd_free(log->block);
    rd_buf_done(&log->log);
    rd_buf_done(&log->suspects);
    *log = (struct rdb_keylog){0};
}
