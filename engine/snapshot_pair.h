/* snapshot_pair.h - private to engine/: two threads save keys in the order of one.
 *
 *     struct engine_pair *pair = engine_pair_new(&how, put, ctx);   // NULL: there is one thread
 *     engine_pair_select(pair, &select, &err);                      // for each database
 *     engine_pair_put(pair, &own, entries, n, &err);                // as often as there are keys
 *     engine_pair_free(pair);
 *
 * Each call takes a row of keys. The caller's thread writes from the front to the sink; the other
 * thread starts at the end and writes a few keys at a time to memory, with a writer of its own.
 * When they meet, the other thread's bytes are appended. The bytes are those of a single thread,
 * however the work was shared, and the memory is that of half a row in a file.
 */
#ifndef ENGINE_SNAPSHOT_PAIR_H
#define ENGINE_SNAPSHOT_PAIR_H

#include "engine/db.h"
#include "rdb/writer.h"

enum { ENGINE_PAIR_KEYS = 1024 /* maximum in a row */ };

/* Writes a key and its value; called by both threads, each with a writer of its own. */
typedef bool (*engine_pair_put_fn)(void *ctx, struct rdb_writer *w,
                                   const struct engine_entry *entry, struct rd_err *err);

/* The sink of the caller's thread. */
struct engine_pair_own {
    struct rdb_writer *writer;
    struct rd_sink *sink; /* options of the writer */
};

struct engine_pair;

/* NULL: one processor, heap hooks in use (base/mem.h), or no memory. */
struct engine_pair *engine_pair_new(const struct rdb_writer_opts *how, engine_pair_put_fn put,
                                    void *ctx);

/* The following keys are in the database of this event. The caller has written it already. */
bool engine_pair_select(struct engine_pair *pair, const struct rdb_event *select,
                        struct rd_err *err);

/* Writes n entries. */
bool engine_pair_put(struct engine_pair *pair, const struct engine_pair_own *own,
                     const struct engine_entry *const *entries, size_t n, struct rd_err *err);

/* NULL is allowed. */
void engine_pair_free(struct engine_pair *pair);

#endif
