/* latency_report.h - LATENCY GRAPH and DOCTOR.
 */
#ifndef SERVER_SURFACE_OBSERVE_LATENCY_REPORT_H
#define SERVER_SURFACE_OBSERVE_LATENCY_REPORT_H

#include "server/loop/latency.h"
#include "server/surface/server.h"

void latency_graph(const struct latency_event *event, int64_t now_s, struct rd_buf *out);
void latency_doctor(struct server *srv, struct rd_buf *out);

#endif
