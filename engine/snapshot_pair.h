/* snapshot_pair.h - private to engine/: two threads save keys in the order of one.
 *
 *     struct engine_pair *pair = engine_pair_new(&how, &own, put, ctx); // NULL: one thread
 *     engine_pair_select(pair, &select, &err);                          // for each database
 *     engine_pair_add(pair, entry, huge, &err);                         // for each key
 *     engine_pair_flush(pair, &err);                                    // before any other record
 *     engine_pair_free(pair);
 *
 * Keys are kept in a ring of chunks. The caller's thread writes the oldest chunk to the sink; the
 * other thread takes the newest one and writes it to memory, with a writer of its own. When the
 * caller's thread comes to such a chunk, it copies the bytes. Neither waits for the other, except
 * at the end of a database. The bytes are those of a single thread, however the work was shared.
 *
 * Memory: the other thread stops while more than 16 MiB wait to be copied, and leaves the rest of a
 * chunk to the caller's thread when it has written 1 MiB of it.
 */
#ifndef ENGINE_SNAPSHOT_PAIR_H
#define ENGINE_SNAPSHOT_PAIR_H

#include "engine/db.h"
#include "rdb/writer.h"

/* Writes a key and its value; called by both threads, each with a writer of its own. */
typedef bool (*engine_pair_put_fn)(void *ctx, struct rdb_writer *w,
                                   const struct engine_entry *entry, struct rd_err *err);

/* The output, which only the caller's thread writes. */
struct engine_pair_own {
    struct rdb_writer *writer;
    struct rd_sink *sink; /* of the writer */
};

struct engine_pair;

/* NULL: one processor, heap hooks in use (base/mem.h), or no memory. */
struct engine_pair *engine_pair_new(const struct rdb_writer_opts *how,
                                    const struct engine_pair_own *own, engine_pair_put_fn put,
                                    void *ctx);

/* The following keys are in the database of this event. The caller has written it already, after
 * engine_pair_flush(). */
bool engine_pair_select(struct engine_pair *pair, const struct rdb_event *select,
                        struct rd_err *err);

/* Adds a key, which must not change until it is written. A huge one is only written by the caller's
 * thread, because the other one keeps its output in memory. An error may be that of an earlier key;
 * nothing but engine_pair_free() may follow it. */
bool engine_pair_add(struct engine_pair *pair, const struct engine_entry *entry, bool huge,
                     struct rd_err *err);

/* Writes all keys that were added. */
bool engine_pair_flush(struct engine_pair *pair, struct rd_err *err);

/* NULL is allowed. */
void engine_pair_free(struct engine_pair *pair);

#endif
