/* watch.h - WATCH: sessions that want to know whether a key changes before their EXEC.
 */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "engine/call.h"

/* Twice is once. A key that is due by now counts as one that is not there; one that becomes due
 * afterwards counts as changed when EXEC comes to look. */
void engine_watch_add(struct engine_call *call, struct rd_slice key);

/* Forgets all keys of the session. Proportional to their number. */
void engine_watch_drop(struct engine_session *s);

/* The key was changed: every session that watches it fails its EXEC. */
void engine_watch_touch(struct engine_db *db, struct rd_slice key);

/* The key was due and goes. */
void engine_watch_expired(struct engine_db *db, struct rd_slice key);

/* The keys of a database are about to give way to those of `by`, or to none if it is NULL: FLUSHDB,
 * SWAPDB. Proportional to the number of watched keys. */
void engine_watch_replaced(const struct engine_call *call, struct engine_db *db,
                           const struct engine_db *by);

/* A watched key that was there is due by now. */
bool engine_watch_any_due(const struct engine_call *call);

#endif
