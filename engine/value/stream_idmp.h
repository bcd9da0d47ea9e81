/* stream_idmp.h - what a stream of Redis 8.6 remembers of its producers, so that an entry that a
 * producer sends twice is added once (XADD … IDMP).
 *
 *     struct engine_stream_idmp *idmp = engine_stream_idmp(stream);
 *     struct engine_stream_producer *p = engine_stream_producer(idmp, rd_slice_str("p1"));
 *     if (!engine_stream_produced_find(p, name, &id))
 *         engine_stream_produced_add(idmp, p, name, id);
 *
 * A producer's names are in the order in which they were added. At most max_entries of them are
 * kept, and each for duration_s: after that, the name can be used again. Looking for a name takes
 * O(max_entries).
 *
 * Private to engine/.
 */
#ifndef ENGINE_VALUE_STREAM_IDMP_H
#define ENGINE_VALUE_STREAM_IDMP_H

#include "engine/value/stream.h"

/* The defaults and limits of Redis 8.6. */
enum {
    ENGINE_IDMP_DURATION_S = 100,
    ENGINE_IDMP_DURATION_MAX_S = 86400,
    ENGINE_IDMP_ENTRIES = 100,
    ENGINE_IDMP_ENTRIES_MAX = 10000
};

struct engine_stream_produced {
    uint8_t *name; /* owned */
    size_t len;
    struct rdb_stream_id id; /* of the entry */
};

struct engine_stream_producer {
    struct rd_slice name; /* its bytes follow the struct */
    struct engine_stream_produced *list;
    size_t n, cap;
};

struct engine_stream_idmp {
    uint64_t duration_s;
    uint64_t max_entries;
    uint64_t added;
    uint64_t duplicates;
    struct engine_stream_names producers; /* of struct engine_stream_producer */
};

/* That of the stream, created with the defaults if it has none. */
struct engine_stream_idmp *engine_stream_idmp(struct engine_stream *stream);

void engine_stream_idmp_free(struct engine_stream_idmp *idmp); /* NULL is allowed */
struct engine_stream_idmp *engine_stream_idmp_dup(const struct engine_stream_idmp *idmp);

/* Forgets all producers. */
void engine_stream_idmp_clear(struct engine_stream_idmp *idmp);

/* The producer, created if it does not exist. */
struct engine_stream_producer *engine_stream_producer(struct engine_stream_idmp *idmp,
                                                      struct rd_slice name);

/* False: the producer has not added an entry of this name. */
bool engine_stream_produced_find(const struct engine_stream_producer *producer,
                                 struct rd_slice name, struct rdb_stream_id *ret);

/* Adds a name as the newest one. A record of the same name is replaced. The oldest one is dropped
 * if there are too many. */
void engine_stream_produced_add(struct engine_stream_idmp *idmp,
                                struct engine_stream_producer *producer, struct rd_slice name,
                                struct rdb_stream_id id);

/* Drops the names that are too old. */
void engine_stream_produced_expire(const struct engine_stream_idmp *idmp,
                                   struct engine_stream_producer *producer, int64_t now_ms);

#endif
