/* snapshot_pair.h - private to engine/: keys that two threads save, in the order of one.
 *
 *     struct engine_pair *pair = engine_pair_new(&how, put, ctx);   // NULL: there is one thread
 *     engine_pair_select(pair, &select, &err);                      // for each database
 *     engine_pair_put(pair, &own, entries, n, &err);                // as often as there are keys
 *     engine_pair_free(pair);
 *
 * Each call takes a row of keys. The caller's thread writes from its front on to where everything
 * goes; the other takes from its end, a few keys at a time, with a writer of its own into memory.
 * Where they meet, what the other made is appended. So the bytes are those that one thread writes,
 * however the work was shared, and memory is what half a row takes in a file.
 */
#ifndef ENGINE_SNAPSHOT_PAIR_H
#define ENGINE_SNAPSHOT_PAIR_H

#include "engine/db.h"
#include "rdb/writer.h"

enum { ENGINE_PAIR_KEYS = 1024 /* in a row, at most */ };

/* Puts a key and its value; called by both threads at a time, each with a writer of its own. */
typedef bool (*engine_pair_put_fn)(void *ctx, struct rdb_writer *w,
                                   const struct engine_entry *entry, struct rd_err *err);

/* Where the caller's thread writes. */
struct engine_pair_own {
    struct rdb_writer *writer;
    struct rd_sink *sink; /* the writer's */
};

struct engine_pair;

/* NULL: one processor, hooks of the heap (base/mem.h), or no memory. */
struct engine_pair *engine_pair_new(const struct rdb_writer_opts *how, engine_pair_put_fn put,
                                    void *ctx);

/* The keys that follow are of the database that this event names. The caller has put it already. */
bool engine_pair_select(struct engine_pair *pair, const struct rdb_event *select,
                        struct rd_err *err);

/* Writes n entries. */
bool engine_pair_put(struct engine_pair *pair, const struct engine_pair_own *own,
                     const struct engine_entry *const *entries, size_t n, struct rd_err *err);

/* NULL is allowed. */
void engine_pair_free(struct engine_pair *pair);

#endif
