/* watch.h - WATCH: makes EXEC fail if a watched key has changed.
 */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "engine/call.h"

/* Watching a key twice counts once. A key that is already expired counts as missing; one that
 * expires later counts as changed at EXEC. */
void engine_watch_add(struct engine_call *call, struct rd_slice key);

/* Unwatches all keys of the session. Proportional to their number. */
void engine_watch_drop(struct engine_session *s);

/* The key was changed: EXEC fails in every session that watches it. */
void engine_watch_touch(struct engine_db *db, struct rd_slice key);

/* An expired key is removed. */
void engine_watch_expired(struct engine_db *db, struct rd_slice key);

/* The keys of a database are about to be replaced by those of `by`, or removed if that is NULL:
 * FLUSHDB, SWAPDB. Proportional to the number of watched keys. */
void engine_watch_replaced(const struct engine_call *call, struct engine_db *db,
                           const struct engine_db *by);

/* A watched key that existed has expired. */
bool engine_watch_any_due(const struct engine_call *call);

#endif
