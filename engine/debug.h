/* debug.h - how the data set is stored: what MEMORY USAGE and DEBUG tell, and tests ask for.
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

/* Bytes that a key takes with its value and its share of the tables. Of a collection as many
 * elements as `samples` are looked at (0: all), and the rest are taken to be like them. */
uint64_t engine_debug_memory(const struct engine_entry *entry, size_t samples);

/* Bytes of the value in a snapshot. */
uint64_t engine_debug_saved(const struct engine_value *v);

struct engine_debug_list {
    size_t nodes;
    uint64_t count;
    uint64_t bytes; /* of the listpacks */
    int fill;       /* list-max-listpack-size */
};

/* False: it is no list. */
bool engine_debug_list(const struct engine_value *v, struct engine_debug_list *ret);

struct engine_debug_table {
    uint64_t count;
    uint64_t slots;   /* of the arrays, chains aside */
    uint64_t longest; /* buckets in the longest chain there was */
    bool growing;     /* items move to another array */
};

void engine_debug_table(const struct engine_table *t, struct engine_debug_table *ret);

/* DEBUG QUICKLIST-PACKED-THRESHOLD: from how many bytes on an element of a list has a node of its
 * own; of all engines of the process. 0: as it is by itself. */
void engine_debug_list_plain_min(size_t bytes);

/* The table of a set, hash or sorted set; NULL: the value has none. */
const struct engine_table *engine_debug_table_of(const struct engine_value *v);

/* DEBUG POPULATE: adds keys "PREFIX:0" to "PREFIX:n-1", those that are not there, with values
 * "value:N", cut or filled with zeros to `size` bytes unless that is 0. */
void engine_debug_populate(struct engine *e, unsigned db, struct rd_slice prefix, uint64_t n,
                           size_t size);

#endif
