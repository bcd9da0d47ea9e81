/* lazyfree.h - frees large values in a background thread: UNLINK, FLUSHALL ASYNC and the
 * lazyfree-lazy-* settings.
 */
#ifndef SERVER_SESSION_LAZYFREE_H
#define SERVER_SESSION_LAZYFREE_H

#include "server/session/sessions.h"

/* The hook of engine/trash.h; ctx is the sessions. */
void lazyfree_take(void *ctx, struct engine_trash *trash);

#endif
