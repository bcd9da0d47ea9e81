/* debug.h - how the data set is stored: for MEMORY USAGE, DEBUG and tests.
 *
 *     const struct engine_entry *entry = engine_db_find(db, key);
 *     uint64_t bytes = engine_debug_memory(entry, 5);
 *     struct engine_debug_list list;
 *     if (engine_debug_list(&entry->value, &list))
 *         ... list.nodes ...
 *
 * Nothing here counts as an access to a key.
 */
#ifndef ENGINE_DEBUG_H
#define ENGINE_DEBUG_H

#include "engine/db.h"
#include "engine/engine.h"

/* Bytes of a key with its value and its share of the tables. In a collection, `samples` elements
 * are measured (0: all) and the others are assumed to be similar. */
uint64_t engine_debug_memory(const struct engine_entry *entry, size_t samples);

/* Bytes of the value in a snapshot. */
uint64_t engine_debug_saved(const struct engine_value *v);

struct engine_debug_list {
    size_t nodes;
    uint64_t count;
    uint64_t bytes; /* of the listpacks */
    int fill;       /* list-max-listpack-size */
};

/* False: not a list. */
bool engine_debug_list(const struct engine_value *v, struct engine_debug_list *ret);

struct engine_debug_table {
    uint64_t count;
    uint64_t slots;   /* of the arrays, without chains */
    uint64_t longest; /* buckets in the longest chain so far */
    bool growing;     /* items are being moved to another array */
};

void engine_debug_table(const struct engine_table *t, struct engine_debug_table *ret);

/* DEBUG QUICKLIST-PACKED-THRESHOLD: the size in bytes from which a list element has a node of its
 * own, for all engines of the process. 0: the default. */
void engine_debug_list_plain_min(size_t bytes);

/* The table of a set, hash or sorted set; NULL: the value has no table. */
const struct engine_table *engine_debug_table_of(const struct engine_value *v);

/* DEBUG POPULATE: adds the keys "PREFIX:0" to "PREFIX:n-1" that do not exist, with values
 * "value:N", cut or filled with zeros to `size` bytes unless that is 0. */
void engine_debug_populate(struct engine *e, unsigned db, struct rd_slice prefix, uint64_t n,
                           size_t size);

#endif
