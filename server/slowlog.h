/* slowlog.h - commands that took long.
 *
 *     slowlog_ran(srv, c, command, argc, argv, us);     // after every command that may be kept
 *
 * Kept are copies of the arguments, cut: 32 of them, 128 bytes each. The newest slowlog-max-len
 * entries stay.
 */
#ifndef SERVER_SLOWLOG_H
#define SERVER_SLOWLOG_H

#include "server/client.h"

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* After a command: kept when it took slowlog-log-slower-than. */
void slowlog_ran(struct server *srv, struct client *c, size_t argc, const struct rd_slice *argv,
                 uint64_t us);

#endif
