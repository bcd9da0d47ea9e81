/* stats.c - totals over commands, in memory that does not grow with their number.
 *
 * The number of different keys is estimated by a HyperLogLog: a hash selects a register, which
 * keeps the longest run of zeros seen. */
#include "base/mem.h"
#include "base/siphash.h"
#include "tools/show/show.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sys/random.h>

enum { SLOTS = 4 * SHOW_ROWS, PREFIX_END = ':' };

static struct rd_hash128 hash_of(const struct show_stats *stats, struct rd_slice name)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, stats->key);
    rd_siphash_add(&hash, name.ptr, name.len);
    return rd_siphash_end(&hash);
}

/* ---- tables ---- */

static bool table_init(struct show_table *table, struct rd_err *err)
{
    table->rows = rd_calloc(SHOW_ROWS, sizeof *table->rows);
    table->slots = rd_calloc(SLOTS, sizeof *table->slots);
    return (table->rows != NULL && table->slots != NULL) ||
           rd_err_nomem(err, SHOW_ROWS * sizeof *table->rows);
}

static struct show_row *table_row(struct show_stats *stats, struct show_table *table,
                                  struct rd_slice name)
{
    if (name.len > SHOW_NAME)
        name.len = SHOW_NAME;
    size_t i = hash_of(stats, name).lo % SLOTS;
    for (; table->slots[i] != 0; i = (i + 1) % SLOTS) {
        struct show_row *row = &table->rows[table->slots[i] - 1];
        if (rd_slice_eq(rd_slice(row->name, row->len), name))
            return row;
    }
    if (table->n == SHOW_ROWS)
        return &table->others;
    struct show_row *row = &table->rows[table->n++];
    table->slots[i] = (uint32_t)table->n;
    memcpy(row->name, name.ptr, name.len);
    row->len = (uint8_t)name.len;
    return row;
}

/* ---- totals ---- */

bool show_stats_init(struct show_stats *stats, struct rd_err *err)
{
    *stats = (struct show_stats){.width_s = 1};
    if (getrandom(stats->key, sizeof stats->key, 0) < 0)
        return rd_err_sys(err, errno, "cannot get random bytes");
    stats->spans = rd_calloc(SHOW_SPANS, sizeof *stats->spans);
    stats->sketch = rd_calloc(SHOW_SKETCH, 1);
    return table_init(&stats->commands, err) && table_init(&stats->prefixes, err) &&
           ((stats->spans != NULL && stats->sketch != NULL) ||
            rd_err_nomem(err, SHOW_SPANS * sizeof *stats->spans));
}

void show_stats_done(struct show_stats *stats)
{
    rd_free(stats->commands.rows);
    rd_free(stats->commands.slots);
    rd_free(stats->prefixes.rows);
    rd_free(stats->prefixes.slots);
    show_timeline_free(stats->timeline);
    rd_free(stats->spans);
    rd_free(stats->sketch);
    *stats = (struct show_stats){0};
}

/* ---- keys ---- */

static void sketch_add(struct show_stats *stats, struct rd_slice key)
{
    struct rd_hash128 hash = hash_of(stats, key);
    size_t i = hash.lo & (SHOW_SKETCH - 1);
    uint8_t rank = hash.hi == 0 ? 64 : (uint8_t)(__builtin_clzll(hash.hi) + 1);
    if (stats->sketch[i] < rank)
        stats->sketch[i] = rank;
}

uint64_t show_stats_keys(const struct show_stats *stats)
{
    const double m = SHOW_SKETCH;
    double sum = 0;
    unsigned empty = 0;
    for (size_t i = 0; i < SHOW_SKETCH; i++) {
        sum += ldexp(1, -stats->sketch[i]);
        empty += stats->sketch[i] == 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    if (estimate < 2.5 * m && empty > 0)
        estimate = m * log(m / empty);
    /* It is an estimate, but there are not more names than uses of them. */
    uint64_t n = (uint64_t)llround(estimate);
    return n < stats->all.keys ? n : stats->all.keys;
}

static bool on_key(void *ctx, struct rd_slice key)
{
    struct show_stats *stats = ctx;
    const uint8_t *end = memchr(key.ptr, PREFIX_END, key.len);
    size_t len = end != NULL ? (size_t)(end - key.ptr) + 1 : 0;
    table_row(stats, &stats->prefixes, rd_slice(key.ptr, len))->keys++;
    sketch_add(stats, key);
    stats->at_keys++;
    return false;
}

/* ---- time ---- */

static void widen(struct show_stats *stats)
{
    for (size_t i = 0; i < SHOW_SPANS / 2; i++) {
        const struct show_span *a = &stats->spans[2 * i], *b = a + 1;
        stats->spans[i] =
            (struct show_span){a->commands + b->commands, a->keys + b->keys, a->bytes + b->bytes};
    }
    memset(stats->spans + SHOW_SPANS / 2, 0, SHOW_SPANS / 2 * sizeof *stats->spans);
    if (stats->timeline != NULL)
        show_timeline_widen(stats->timeline);
    stats->n_spans = (stats->n_spans + 1) / 2;
    stats->width_s *= 2;
}

static struct show_span *span_at(struct show_stats *stats, int64_t time_us)
{
    int64_t second = time_us / 1000000 - (time_us % 1000000 < 0);
    if (stats->timed++ == 0) {
        stats->first_us = stats->last_us = time_us;
        stats->start_s = second;
    }
    stats->first_us = time_us < stats->first_us ? time_us : stats->first_us;
    stats->last_us = time_us > stats->last_us ? time_us : stats->last_us;
    if (second <= stats->start_s)
        second = stats->start_s; /* the clock was set back */
    uint64_t since = (uint64_t)second - (uint64_t)stats->start_s;
    while (since / (uint64_t)stats->width_s >= SHOW_SPANS)
        widen(stats);
    size_t i = (size_t)(since / (uint64_t)stats->width_s);
    if (i >= stats->n_spans)
        stats->n_spans = i + 1;
    return &stats->spans[i];
}

/* ---- a command ---- */

static void add(struct show_span *span, uint64_t keys, uint64_t bytes)
{
    span->commands++;
    span->keys += keys;
    span->bytes += bytes;
}

/* A command counts for the prefix of its first key. */
static bool first_key(void *ctx, struct rd_slice key)
{
    struct rd_slice *first = ctx;
    const uint8_t *end = memchr(key.ptr, PREFIX_END, key.len);
    *first = rd_slice(key.ptr, end != NULL ? (size_t)(end - key.ptr) + 1 : 0);
    return true;
}

/* SHOW_ROWS: the row of all others. */
static size_t index_in(const struct show_table *table, const struct show_row *row)
{
    return row == &table->others ? SHOW_ROWS : (size_t)(row - table->rows);
}

void show_stats_add(struct show_stats *stats, const struct show_item *item)
{
    char name[SHOW_NAME];
    struct rd_slice word = item->command->argv[0], prefix;
    size_t len = word.len < sizeof name ? word.len : sizeof name;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)toupper(word.ptr[i]);
    stats->at_keys = 0;
    show_keys(item->command, on_key, stats);
    struct show_row *row = table_row(stats, &stats->commands, rd_slice(name, len));
    size_t command = index_in(&stats->commands, row), at_prefix = SHOW_ROWS;
    row->commands++;
    row->keys += stats->at_keys;
    row->bytes += item->len;
    if (show_keys(item->command, first_key, &prefix)) {
        row = table_row(stats, &stats->prefixes, prefix);
        row->commands++;
        row->bytes += item->len;
        at_prefix = index_in(&stats->prefixes, row);
    }
    add(&stats->all, stats->at_keys, item->len);
    if (item->time_us == SHOW_NO_TIME)
        return;
    struct show_span *span = span_at(stats, item->time_us);
    add(span, stats->at_keys, item->len);
    if (stats->timeline != NULL)
        show_timeline_add(stats->timeline, item, (size_t)(span - stats->spans), command, at_prefix);
}
