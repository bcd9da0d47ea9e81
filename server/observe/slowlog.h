/* slowlog.h - commands that took long.
 *
 *     slowlog_add(srv, slowlog_entry(c, argc, argv), us);
 *
 * Kept are copies of the arguments, cut: 32 of them, 128 bytes each. The newest slowlog-max-len
 * entries stay.
 */
#ifndef SERVER_OBSERVE_SLOWLOG_H
#define SERVER_OBSERVE_SLOWLOG_H

#include "server/client/client.h"

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* What would be told of a command. The caller owns it, until it is added. */
struct slowlog_entry *slowlog_entry(const struct client *c, size_t argc,
                                    const struct rd_slice *argv);

/* NULL is fine. */
void slowlog_entry_free(struct slowlog_entry *entry);

/* Takes the entry over: into the log if it took slowlog-log-slower-than. */
void slowlog_add(struct server *srv, struct slowlog_entry *entry, uint64_t us);

#endif
