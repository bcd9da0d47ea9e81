/* stats.h - counters of the server: INFO stats, commandstats, errorstats, latencystats.
 */
#ifndef SERVER_LOOP_STATS_H
#define SERVER_LOOP_STATS_H

#include "base/slice.h"
#include "engine/command.h"

enum { STATS_SAMPLES = 16 };

enum stats_metric {
    STATS_COMMANDS,
    STATS_NET_IN,
    STATS_NET_OUT,
    STATS_REPL_IN,
    STATS_REPL_OUT,
    STATS_METRICS
};

struct stats_histogram; /* of microseconds, two digits exact; stats.c */

struct stats_command {
    uint64_t calls;
    uint64_t us;
    uint64_t rejected;               /* refused before it ran */
    uint64_t failed;                 /* answered with an error */
    struct stats_histogram *latency; /* latency-tracking; NULL: the command never ran */
};

struct stats {
    uint64_t connections;
    uint64_t rejected_connections;
    uint64_t commands;
    uint64_t net_in, net_out; /* bytes */
    uint64_t reads, writes;   /* system calls */
    uint64_t unexpected_errors, total_errors;
    uint64_t evicted_clients;
    uint64_t forks;
    int64_t fork_us; /* the last value */
    uint64_t query_buffer_limit_closed, output_buffer_limit_closed;
    uint64_t output_shrinks, output_expands; /* of the reply buffers */
    uint64_t dump_sanitizations;
    int64_t peak_memory;
    uint64_t startup_memory; /* memory of the process before it had data; info.c */
    uint64_t expire_cycle_us;
    uint64_t expired_cap_reached;
    uint64_t evict_us; /* total time in which memory was over maxmemory and stayed so … */
    int64_t evict_since_mono_us; /* … and since when it is now; 0: it is not */
    uint64_t lazyfreed;

    struct stats_command *by_command; /* by engine_command.id */
    struct stats_errors *errors;      /* stats.c */

    struct {
        uint64_t last;
        int64_t last_mono_us;
        uint64_t per_second[STATS_SAMPLES];
        unsigned index;
    } metric[STATS_METRICS];
};

void stats_init(struct stats *stats);
void stats_done(struct stats *stats);

/* CONFIG RESETSTAT. */
void stats_reset(struct stats *stats);

/* Counts a command that ran. */
void stats_ran(struct stats *stats, const struct engine_command *command, uint64_t us, bool failed,
               bool track_latency);

/* A counted command was blocked: adds the time of its reply, and whether it is an error. */
void stats_ended(struct stats *stats, const struct engine_command *command, uint64_t us,
                 bool failed);
static inline void stats_rejected(struct stats *stats, const struct engine_command *command)
{
    stats->by_command[command->id].rejected++;
}

/* Counts an error by its first word (errorstats: "ERR", "WRONGTYPE" …). */
void stats_error(struct stats *stats, const char *text);

/* Adds a sample of a growing value ten times a second; and returns its mean per second. */
void stats_sample(struct stats *stats, enum stats_metric metric, uint64_t now_at, int64_t mono_us);
uint64_t stats_per_second(const struct stats *stats, enum stats_metric metric);

/* LATENCY HISTOGRAM: cumulative counts of calls by duration; each level doubles the time. Returns
 * the number of levels with more calls than the level before, at most max. */
struct stats_level {
    uint64_t us;
    uint64_t count;
};
enum { STATS_LEVELS = 24 };
uint64_t stats_latency_calls(const struct stats_histogram *h);
size_t stats_latency_levels(const struct stats_histogram *h, struct stats_level *out, size_t max);

struct rd_buf;
/* Lines of INFO. */
void stats_info_num(struct rd_buf *out, const char *name, int64_t value);
void stats_info_str(struct rd_buf *out, const char *name, const char *value);
void stats_info_real(struct rd_buf *out, const char *name, double value); /* two digits */

void stats_info_commands(const struct stats *stats, struct rd_buf *out);
void stats_info_errors(const struct stats *stats, struct rd_buf *out);
void stats_info_latency(const struct stats *stats, const double *percentiles, size_t n,
                        struct rd_buf *out);

#endif
