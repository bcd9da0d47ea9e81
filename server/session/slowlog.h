/* slowlog.h - the log of slow commands.
 *
 *     slowlog_add(sessions, slowlog_entry(&c->session, argc, argv), us);
 *
 * Entries hold truncated copies of the arguments: 32 arguments of 128 bytes each. The newest
 * slowlog-max-len entries are kept.
 */
#ifndef SERVER_SESSION_SLOWLOG_H
#define SERVER_SESSION_SLOWLOG_H

#include "server/session/dispatch/dispatch.h"

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* Makes the entry of a command of a client, or of its script. The caller owns it until it is
 * added. */
struct slowlog_entry *slowlog_entry(const struct engine_session *s, size_t argc,
                                    const struct rd_slice *argv);

DISPATCH_HANDLER(slowlog);

/* NULL is allowed. */
void slowlog_entry_free(struct slowlog_entry *entry);

/* Takes ownership of the entry. It is logged if it took slowlog-log-slower-than. */
void slowlog_add(struct sessions *sessions, struct slowlog_entry *entry, uint64_t us);

#endif
