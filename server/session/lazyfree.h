/* lazyfree.h - frees large values in a background thread: UNLINK, FLUSHALL ASYNC and the
 * lazyfree-lazy-* settings.
 */
#ifndef SERVER_SESSION_LAZYFREE_H
#define SERVER_SESSION_LAZYFREE_H

#include "server/surface/server.h"

/* The hook of engine/trash.h; ctx is the server. */
void lazyfree_take(void *ctx, struct engine_trash *trash);

/* The number of removed keys that are not freed yet. */
uint64_t lazyfree_pending(void);

#endif
