/* by_slot.h - the keys of a node of a cluster by hash slot. Databases of other servers have none of
 * this: config.cluster.
 *
 *     uint64_t n = engine_by_slot_count(e, slot);
 *     n = engine_by_slot_each(e, slot, 10, each, ctx);        // CLUSTER GETKEYSINSLOT
 *     engine_by_slot_delete(e, slot, &env, &fx);              // it belongs to another node
 *
 * Each slot has a table of the entries of database 0, which the database keeps up to date.
 *
 * Cost: adding and removing a key takes a hash more, and 13 to 17 bytes in slots with many keys; an
 * empty slot takes about 90 bytes.
 */
#ifndef ENGINE_BY_SLOT_H
#define ENGINE_BY_SLOT_H

#include "base/crc16.h"
#include "engine/engine.h"
#include "engine/table.h"

/* 0 if config.cluster was not set when the engine was made; slot < RD_HASH_SLOTS. */
uint64_t engine_by_slot_count(const struct engine *e, unsigned slot);

typedef void (*engine_by_slot_fn)(void *ctx, struct rd_slice key);

/* Calls fn for at most `max` keys, expired ones, too, and returns their number. fn must not change
 * the engine. */
uint64_t engine_by_slot_each(struct engine *e, unsigned slot, uint64_t max, engine_by_slot_fn fn,
                             void *ctx);

/* Deletes the keys of a slot, and returns their number. Each DEL is an effect of its own. */
uint64_t engine_by_slot_delete(struct engine *e, unsigned slot, const struct engine_env *env,
                               struct engine_effects *fx);

/* ---- private to engine/ ---- */

struct engine_entry;

struct engine_by_slot {
    struct engine_table slots[RD_HASH_SLOTS];
};

struct engine_by_slot *engine_by_slot_new(const struct engine_table_type *type, uint64_t seed);
/* NULL is allowed. The entries are not freed. */
void engine_by_slot_free(struct engine_by_slot *by);
void engine_by_slot_clear(struct engine_by_slot *by);
void engine_by_slot_add(struct engine_by_slot *by, struct engine_entry *entry);
void engine_by_slot_remove(struct engine_by_slot *by, const struct engine_entry *entry);
/* The entry has moved in memory. */
void engine_by_slot_replace(struct engine_by_slot *by, const struct engine_entry *old,
                            struct engine_entry *moved);

#endif
