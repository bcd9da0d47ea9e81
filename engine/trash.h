/* trash.h - frees large values in another thread.
 *
 *     static void on_trash(void *ctx, struct engine_trash *trash)     // hooks.trash
 *     {
 *         ... hand it to a thread, which calls engine_trash_free(trash);
 *             then, where the engine runs: engine_trash_done(engine, trash);
 *     }
 *
 * UNLINK, FLUSHALL ASYNC and the lazyfree settings pass values of more than 64 blocks, and whole
 * databases, to the hook instead of freeing them. Without a hook they are freed at once. Their
 * bytes count for the data set until engine_trash_done().
 */
#ifndef ENGINE_TRASH_H
#define ENGINE_TRASH_H

#include "engine/engine.h"

struct engine_trash;

/* The number of keys in it. */
uint64_t engine_trash_count(const struct engine_trash *trash);

/* Frees its content, in any thread, once. */
void engine_trash_free(struct engine_trash *trash);

/* Removes its bytes from the counts of the data set and frees the trash itself. In the engine's
 * thread, after engine_trash_free() has returned. */
void engine_trash_done(struct engine *e, struct engine_trash *trash);

#endif
