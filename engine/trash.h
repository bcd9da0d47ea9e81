/* trash.h - freeing on another thread what takes long to free.
 *
 *     static void take(void *ctx, struct engine_trash *trash)     // hooks.trash
 *     {
 *         ... hand it to a thread, which calls engine_trash_free(trash);
 *             then, where the engine runs: engine_trash_done(engine, trash);
 *     }
 *
 * What UNLINK, FLUSHALL ASYNC and the lazyfree settings take out of a data set is nobody's any
 * more: values of more than 64 blocks, and whole databases, are given to the hook instead of being
 * freed. Without a hook they are freed at once. The data set counts their bytes until
 * engine_trash_done().
 */
#ifndef ENGINE_TRASH_H
#define ENGINE_TRASH_H

#include "engine/engine.h"

struct engine_trash;

/* How many keys it held. */
uint64_t engine_trash_count(const struct engine_trash *trash);

/* Frees what it holds, on any thread, once. */
void engine_trash_free(struct engine_trash *trash);

/* Its bytes are the data set's no more; frees the trash itself. On the engine's thread, after
 * engine_trash_free() has returned. */
void engine_trash_done(struct engine *e, struct engine_trash *trash);

#endif
