/* slowlog.h - commands that took long.
 */
#ifndef SERVER_SLOWLOG_H
#define SERVER_SLOWLOG_H

#include "server/client.h"

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* After a command: kept when it took slowlog-log-slower-than; arguments are cut as 7.0 does (32 of
 * them, 128 bytes each). */
void slowlog_ran(struct server *srv, struct client *c, size_t argc, const struct rd_slice *argv,
                 uint64_t us);

#endif
