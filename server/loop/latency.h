/* latency.h - spikes by event: LATENCY LATEST, HISTORY, GRAPH, DOCTOR, RESET.
 *
 *     int64_t from = latency_begin(loop);
 *     ... fork() ...
 *     latency_end(loop, "fork", from);
 *
 * The last 160 seconds with a spike are kept for each event, each with its longest spike, and the
 * longest spike ever. There are few events, and the server defines their names.
 */
#ifndef SERVER_LOOP_LATENCY_H
#define SERVER_LOOP_LATENCY_H

#include "server/loop/loop.h"

struct latency *latency_new(void);
void latency_free(struct latency *latency);

/* Recorded if the duration is at least latency-monitor-threshold (0: never). */
void latency_add(struct loop *loop, const char *event, int64_t ms);

/* Microseconds of the monotonic clock; 0 while monitoring is off. */
int64_t latency_begin(const struct loop *loop);
void latency_end(struct loop *loop, const char *event, int64_t from_us);

/* ---- for latency_report.c ---- */

enum { LATENCY_SAMPLES = 160, LATENCY_EVENTS = 64, LATENCY_NAME = 32 };

struct latency_sample {
    int64_t at_s; /* unix time */
    int64_t ms;
};

struct latency_event {
    char name[LATENCY_NAME];
    int64_t max_ms;
    size_t n;
    size_t first; /* the oldest of samples, which are a ring */
    struct latency_sample samples[LATENCY_SAMPLES];
};

/* The i-th sample, the oldest first. */
static inline struct latency_sample latency_sample(const struct latency_event *event, size_t i)
{
    return event->samples[(event->first + i) % LATENCY_SAMPLES];
}

size_t latency_count(const struct latency *latency);
const struct latency_event *latency_event(const struct latency *latency, size_t i);

/* NULL: there is none. */
struct latency_event *latency_find(const struct latency *latency, struct rd_slice name);

/* Removes the i-th event. */
void latency_drop(struct latency *latency, size_t i);

#endif
