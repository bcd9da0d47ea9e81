/* trash_impl.h - what goes into the trash; private to engine/.
 */
#ifndef ENGINE_TRASH_IMPL_H
#define ENGINE_TRASH_IMPL_H

#include "engine/db.h"
#include "engine/state.h"

/* Removes the key; its value goes to the hook where it is worth it and `lazy`. */
void engine_trash_entry(struct engine *e, struct engine_db *db, struct engine_entry *entry,
                        bool lazy);

/* The key stays and holds a number; its value goes the same way. Of no effect, and the value stays,
 * where it is not worth it. Returns the entry, which may have moved. */
struct engine_entry *engine_trash_old(struct engine *e, struct engine_db *db,
                                      struct engine_entry *entry, bool lazy);

/* engine_db_clear(), with all that it held. */
uint64_t engine_trash_db(struct engine *e, struct engine_db *db, bool lazy);

#endif
