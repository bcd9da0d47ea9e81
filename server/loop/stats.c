#include "server/loop/stats.h"

#include "base/buf.h"
#include "engine/mem.h"

#include <stdio.h>

/* Latencies are counted in nanoseconds, in the slots of HdrHistogram for two digits: 128 for each
 * power of two from 256 on, so that percentiles equal those of redis-server. */
enum { SLOTS_BITS = 7, SLOTS_PER_DOUBLE = 1 << SLOTS_BITS, DOUBLINGS = 23 };
enum { SLOTS = (DOUBLINGS + 1) * SLOTS_PER_DOUBLE };
enum { LONGEST_NS = 1000000000, FIRST_LEVEL_NS = 1024 };

/* A limit: this server does not make more kinds of errors. */
enum { ERRORS_MAX = 128, ERROR_NAME_MAX = 32 };

struct stats_histogram {
    uint64_t total;
    uint64_t counts[SLOTS];
};

struct stats_errors {
    size_t n;
    struct {
        char name[ERROR_NAME_MAX];
        uint64_t count;
    } list[ERRORS_MAX]; /* sorted by name */
};

void stats_init(struct stats *stats)
{
    *stats = (struct stats){0};
    size_t size = ENGINE_COMMAND_IDS * sizeof *stats->by_command;
    stats->by_command = engine_scratch_alloc(size);
    memset(stats->by_command, 0, size);
    stats->errors = engine_scratch_alloc(sizeof *stats->errors);
    memset(stats->errors, 0, sizeof *stats->errors);
}

static void forget_commands(struct stats *stats)
{
    for (size_t i = 0; i < ENGINE_COMMAND_IDS; i++) {
        engine_scratch_free(stats->by_command[i].latency);
        stats->by_command[i] = (struct stats_command){0};
    }
}

void stats_done(struct stats *stats)
{
    forget_commands(stats);
    engine_scratch_free(stats->by_command);
    engine_scratch_free(stats->errors);
    stats->by_command = NULL;
    stats->errors = NULL;
}

void stats_reset(struct stats *stats)
{
    forget_commands(stats);
    stats->errors->n = 0;
    struct stats kept = *stats;
    *stats = (struct stats){
        .by_command = kept.by_command,
        .errors = kept.errors,
        .peak_memory = kept.peak_memory,
        .startup_memory = kept.startup_memory,
        .lazyfreed = 0,
    };
    for (unsigned i = 0; i < STATS_METRICS; i++)
        stats->metric[i].last_mono_us = kept.metric[i].last_mono_us;
}

/* ---- latencies ---- */

/* The number of low bits that a slot ignores. */
static unsigned shift_of(uint64_t ns)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(ns | (2 * SLOTS_PER_DOUBLE - 1));
    return bits - (SLOTS_BITS + 1);
}

static size_t slot_of(uint64_t ns)
{
    unsigned shift = shift_of(ns);
    return ((size_t)shift << SLOTS_BITS) + (size_t)(ns >> shift);
}

/* The largest value in the slot of this one. */
static uint64_t slot_end(uint64_t ns)
{
    unsigned shift = shift_of(ns);
    return (((ns >> shift) + 1) << shift) - 1;
}

/* The smallest value of a slot: the inverse of slot_of(). */
static uint64_t slot_begin(size_t slot)
{
    if (slot < 2 * (size_t)SLOTS_PER_DOUBLE)
        return slot;
    unsigned shift = (unsigned)(slot >> SLOTS_BITS) - 1;
    return (uint64_t)(slot - ((size_t)shift << SLOTS_BITS)) << shift;
}

static struct stats_histogram *histogram_new(void)
{
    struct stats_histogram *h = engine_scratch_alloc(sizeof *h);
    memset(h, 0, sizeof *h);
    return h;
}

void stats_ran(struct stats *stats, const struct engine_command *command, uint64_t us, bool failed,
               bool track_latency)
{
    struct stats_command *c = &stats->by_command[command->id];
    c->calls++;
    c->us += us;
    c->failed += failed;
    if (!track_latency)
        return;
    if (RD_UNLIKELY(c->latency == NULL))
        c->latency = histogram_new();
    uint64_t ns = us < LONGEST_NS / 1000 ? us * 1000 : LONGEST_NS;
    c->latency->counts[slot_of(ns)]++;
    c->latency->total++;
}

void stats_ended(struct stats *stats, const struct engine_command *command, uint64_t us,
                 bool failed)
{
    stats->by_command[command->id].us += us;
    stats->by_command[command->id].failed += failed;
}

static uint64_t percentile(const struct stats_histogram *h, double percent)
{
    double share = percent < 100 ? percent : 100;
    uint64_t wanted = (uint64_t)(share / 100 * (double)h->total + 0.5);
    if (wanted == 0)
        wanted = 1;
    uint64_t seen = 0;
    for (size_t slot = 0; slot < SLOTS; slot++) {
        seen += h->counts[slot];
        if (seen >= wanted)
            return percent > 0 ? slot_end(slot_begin(slot)) : slot_begin(slot);
    }
    return 0;
}

uint64_t stats_latency_calls(const struct stats_histogram *h)
{
    return h->total;
}

size_t stats_latency_levels(const struct stats_histogram *h, struct stats_level *out, size_t max)
{
    size_t n = 0, slot = 0;
    uint64_t seen = 0, listed = 0;
    /* A level covers all slots up to the one that it begins. */
    for (uint64_t level = FIRST_LEVEL_NS; seen < h->total && n < max; level *= 2) {
        size_t last = slot_of(level) < SLOTS ? slot_of(level) : SLOTS - 1;
        for (; slot <= last; slot++)
            seen += h->counts[slot];
        if (seen > listed)
            out[n++] = (struct stats_level){.us = slot_end(slot_begin(last)) / 1000, .count = seen};
        listed = seen;
    }
    return n;
}

/* ---- errors ---- */

/* The error code: the text before the first blank, if that is near. */
static struct rd_slice error_name(const char *text)
{
    const char *blank = memchr(text, ' ', strnlen(text, ERROR_NAME_MAX - 1));
    return blank != NULL ? rd_slice(text, (size_t)(blank - text)) : rd_slice_str("ERR");
}

void stats_error(struct stats *stats, const char *text)
{
    struct stats_errors *errors = stats->errors;
    struct rd_slice name = error_name(text);
    stats->total_errors++;
    size_t at = 0;
    for (; at < errors->n; at++) {
        int order = rd_slice_cmp(rd_slice_str(errors->list[at].name), name);
        if (order == 0) {
            errors->list[at].count++;
            return;
        }
        if (order > 0)
            break;
    }
    if (errors->n == ERRORS_MAX)
        return;
    memmove(&errors->list[at + 1], &errors->list[at], (errors->n - at) * sizeof errors->list[0]);
    memcpy(errors->list[at].name, name.ptr, name.len);
    errors->list[at].name[name.len] = '\0';
    errors->list[at].count = 1;
    errors->n++;
}

/* ---- by second ---- */

void stats_sample(struct stats *stats, enum stats_metric metric, uint64_t now_at, int64_t mono_us)
{
    int64_t took = mono_us - stats->metric[metric].last_mono_us;
    uint64_t more = now_at - stats->metric[metric].last;
    unsigned index = stats->metric[metric].index;
    stats->metric[metric].per_second[index] =
        took > 0 ? (uint64_t)((double)more * 1e6 / (double)took) : 0;
    stats->metric[metric].index = (index + 1) % STATS_SAMPLES;
    stats->metric[metric].last = now_at;
    stats->metric[metric].last_mono_us = mono_us;
}

uint64_t stats_per_second(const struct stats *stats, enum stats_metric metric)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < STATS_SAMPLES; i++)
        sum += stats->metric[metric].per_second[i];
    return sum / STATS_SAMPLES;
}

/* ---- INFO ---- */

void stats_info_commands(const struct stats *stats, struct rd_buf *out)
{
    for (const struct engine_command *cmd = NULL; (cmd = engine_command_next(cmd)) != NULL;) {
        const struct stats_command *c = &stats->by_command[cmd->id];
        if (c->calls == 0 && c->rejected == 0 && c->failed == 0)
            continue;
        rd_buf_printf(out,
                      "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,"
                      "failed_calls=%llu\r\n",
                      cmd->name, (unsigned long long)c->calls, (unsigned long long)c->us,
                      c->calls == 0 ? 0 : (double)c->us / (double)c->calls,
                      (unsigned long long)c->rejected, (unsigned long long)c->failed);
    }
}

void stats_info_errors(const struct stats *stats, struct rd_buf *out)
{
    for (size_t i = 0; i < stats->errors->n; i++)
        rd_buf_printf(out, "errorstat_%s:count=%llu\r\n", stats->errors->list[i].name,
                      (unsigned long long)stats->errors->list[i].count);
}

/* Six digits after the point, without trailing zeros. */
static void put_percent(char *dst, size_t size, double percent)
{
    int len = snprintf(dst, size, "%.6f", percent);
    while (dst[len - 1] == '0')
        len--;
    dst[dst[len - 1] == '.' ? len - 1 : len] = '\0';
}

void stats_info_latency(const struct stats *stats, const double *percentiles, size_t n,
                        struct rd_buf *out)
{
    for (const struct engine_command *cmd = NULL; (cmd = engine_command_next(cmd)) != NULL;) {
        const struct stats_histogram *h = stats->by_command[cmd->id].latency;
        if (h == NULL)
            continue;
        rd_buf_printf(out, "latency_percentiles_usec_%s:", cmd->name);
        for (size_t i = 0; i < n; i++) {
            char digits[32];
            put_percent(digits, sizeof digits, percentiles[i]);
            rd_buf_printf(out, "%sp%s=%.3f", i > 0 ? "," : "", digits,
                          (double)percentile(h, percentiles[i]) / 1000);
        }
        rd_buf_printf(out, "\r\n");
    }
}

void stats_info_num(struct rd_buf *out, const char *name, int64_t value)
{
    rd_buf_printf(out, "%s:%lld\r\n", name, (long long)value);
}

void stats_info_str(struct rd_buf *out, const char *name, const char *value)
{
    rd_buf_printf(out, "%s:%s\r\n", name, value);
}

void stats_info_real(struct rd_buf *out, const char *name, double value)
{
    rd_buf_printf(out, "%s:%.2f\r\n", name, value);
}
