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

enum { ENGINE_DEBUG_LENGTHS = 50 };

/* One of the two arrays of a table. */
struct engine_debug_array {
    uint64_t buckets;
    uint64_t room;                            /* for items: the array is too small from there */
    uint64_t count;                           /* items */
    uint64_t used;                            /* buckets with items */
    uint64_t longest;                         /* items in the longest chain */
    uint64_t of_length[ENGINE_DEBUG_LENGTHS]; /* buckets with so many items, or more for the last */
};

/* which: 1 for the array to which items are being moved. Visits all buckets. False: the table has
 * no such array, and *ret is zeros. */
bool engine_debug_array(const struct engine_table *t, unsigned which,
                        struct engine_debug_array *ret);

/* DEBUG QUICKLIST-PACKED-THRESHOLD: the size in bytes from which a list element has a node of its
 * own, for all engines of the process. 0: the default. */
void engine_debug_list_plain_min(size_t bytes);

/* DEBUG POPULATE: adds the keys "PREFIX:0" to "PREFIX:n-1" that do not exist, with values
 * "value:N", cut or filled with zeros to `size` bytes unless that is 0. */
void engine_debug_populate(struct engine *e, unsigned db, struct rd_slice prefix, uint64_t n,
                           size_t size);

#endif
