/* watch.h - WATCH: sessions that want to know whether a key changes before their EXEC.
 */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "engine/call.h"

/* Twice is once. A key that is due already counts as changed when EXEC comes to look. */
void engine_watch_add(struct engine_call *call, struct rd_slice key);

/* Forgets all keys of the session. Proportional to their number. */
void engine_watch_drop(struct engine_session *s);

/* The key was changed: every session that watches it fails its EXEC. */
void engine_watch_touch(struct engine_db *db, struct rd_slice key);

/* The same for all keys of a database that exist, or exist in `other` (may be NULL): FLUSHDB,
 * SWAPDB. */
void engine_watch_touch_all(struct engine_db *db, const struct engine_db *other);

/* A watched key that was there is due by now. */
bool engine_watch_any_due(const struct engine_call *call);

#endif
