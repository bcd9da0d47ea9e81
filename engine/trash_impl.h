/* trash_impl.h - moves keys and values to the trash; private to engine/.
 */
#ifndef ENGINE_TRASH_IMPL_H
#define ENGINE_TRASH_IMPL_H

#include "engine/db.h"
#include "engine/state_impl.h"

/* Removes the key; if `lazy`, a large value goes to the hook. */
void engine_trash_entry(struct engine *e, struct engine_db *db, struct engine_entry *entry,
                        bool lazy);

/* Replaces the value by a number; the value goes to the hook. Has no effect for a small value.
 * Returns the entry, which may have moved. */
struct engine_entry *engine_trash_old(struct engine *e, struct engine_db *db,
                                      struct engine_entry *entry, bool lazy);

/* Like engine_db_clear(), for everything in the database. */
uint64_t engine_trash_db(struct engine *e, struct engine_db *db, bool lazy);

#endif
