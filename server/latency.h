/* latency.h - spikes by event: LATENCY LATEST, HISTORY, GRAPH, DOCTOR, RESET.
 *
 *     int64_t from = latency_begin(srv);
 *     ... fork() ...
 *     latency_end(srv, "fork", from);
 */
#ifndef SERVER_LATENCY_H
#define SERVER_LATENCY_H

#include "server/server.h"

struct latency *latency_new(void);
void latency_free(struct latency *latency);

/* Kept when the duration is at least latency-monitor-threshold (0: never). */
void latency_add(struct server *srv, const char *event, int64_t ms);

/* Microseconds of the monotonic clock; 0 while nothing is monitored. */
int64_t latency_begin(const struct server *srv);
void latency_end(struct server *srv, const char *event, int64_t from_us);

#endif
