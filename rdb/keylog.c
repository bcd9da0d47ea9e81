#include "rdb/keylog.h"

#include "base/mem.h"
#include "rdb/keyset.h"

enum {
    FILTER_LINES = 1 << 16, /* of 64 bytes: 4 MiB, twelve bits a key at 2.8 million keys */
    LINE_WORDS = 8,
    LOG_FIRST = 96 << 10,
    LOG_MAX = LOG_FIRST << 7, /* bytes of the log in memory: 12 MiB */
    BATCH = 4096
};

bool rdb_keylog_init(struct rdb_keylog *log, const struct rdb_spool *spool, const uint64_t seed[2],
                     struct rd_err *err)
{
    *log = (struct rdb_keylog){.spool = spool, .key = rdb_hash_key(seed)};
    log->filter = rd_calloc(FILTER_LINES, LINE_WORDS * sizeof *log->filter);
    return log->filter != NULL || rd_err_nomem(err, FILTER_LINES * LINE_WORDS * sizeof(uint64_t));
}

static uint64_t *line_of(const struct rdb_keylog *log, uint64_t hash)
{
    return log->filter + (hash % FILTER_LINES) * LINE_WORDS;
}

uint64_t rdb_keylog_begin(const struct rdb_keylog *log, uint64_t db, struct rd_slice name)
{
    uint64_t hash = rdb_keyset_hash(&log->key, db, name);
    __builtin_prefetch(line_of(log, hash), 1);
    return hash;
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

bool rdb_keylog_add(struct rdb_keylog *log, uint64_t hash, bool *ret_suspect, struct rd_err *err)
{
    *ret_suspect = filter_add(log, hash);
    return log_hash(log, hash, err);
}

bool rdb_keylog_suspect(struct rdb_keylog *log, const struct rdb_suspect *suspect,
                        struct rd_err *err)
{
    if (log->suspects.len / sizeof *suspect >= RDB_KEYLOG_SUSPECTS_MAX) {
        log->lost++;
        return true;
    }
    return rd_buf_add(&log->suspects, suspect, sizeof *suspect) ||
           rd_err_nomem(err, sizeof *suspect);
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
    rd_free(log->filter);
    rd_buf_done(&log->log);
    rd_buf_done(&log->suspects);
    *log = (struct rdb_keylog){0};
}
