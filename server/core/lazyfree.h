/* lazyfree.h - what takes long to free is freed on another thread: UNLINK, FLUSHALL ASYNC and the
 * settings lazyfree-lazy-*.
 */
#ifndef SERVER_CORE_LAZYFREE_H
#define SERVER_CORE_LAZYFREE_H

#include "server/core/server.h"

/* The hook of engine/trash.h; ctx is the server. */
void lazyfree_take(void *ctx, struct engine_trash *trash);

/* Keys that were taken and are not freed yet. */
uint64_t lazyfree_pending(void);

#endif
