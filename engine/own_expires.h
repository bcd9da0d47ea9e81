/* own_expires.h - keys whose expiry a client of a writable replica set.
 *
 * A replica leaves expired keys to its master. Its master does not know the keys that clients of
 * the replica created, so the replica removes these itself. Only their names are kept, and whether
 * they still exist is seen when they are visited.
 *
 * Private to engine/, except for the functions in engine/engine.h that begin with engine_own_.
 */
#ifndef ENGINE_OWN_EXPIRES_H
#define ENGINE_OWN_EXPIRES_H

#include "engine/db.h"

struct engine;
struct engine_own_expires;

/* Databases from 64 on are not tracked, as in redis-server. */
enum { ENGINE_OWN_DBS = 64 };

void engine_own_expires_add(struct engine *e, const struct engine_db *db, struct rd_slice key);

/* NULL is allowed. */
void engine_own_expires_free(struct engine_own_expires *own);

#endif
