/* listen.h - answers GET /metrics; private to tools/metrics/.
 */
#ifndef TOOLS_METRICS_LISTEN_H
#define TOOLS_METRICS_LISTEN_H

#include <sys/socket.h>

#include "base/err.h"
#include "base/slice.h"

struct metrics_listener;

/* name: the address, for messages. */
bool metrics_listener_start(struct metrics_listener **ret, const struct sockaddr *at,
                            const char *name, struct rd_err *err);
/* From now on requests get a copy of this text. Without memory they get the old one. */
void metrics_listener_set(struct metrics_listener *listener, struct rd_slice text);
/* NULL is allowed. */
void metrics_listener_stop(struct metrics_listener *listener);

#endif
