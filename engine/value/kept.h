/* kept.h - the value of a type that only newer servers have: the bytes that a snapshot has for it.
 *
 * Only a replay keeps such values (config.keep_newer), so that one of them does not make a whole
 * log useless: their keys can be deleted, renamed, copied and given expiries. Commands of the type
 * make them unknown. A server refuses them, because it could not save them in its version.
 */
#ifndef ENGINE_VALUE_KEPT_H
#define ENGINE_VALUE_KEPT_H

#include "engine/value.h"

struct engine_kept {
    const struct rdb_type *type;
    size_t len;
    uint8_t bytes[];
};

/* Whether values of this type are kept. */
bool engine_kept_is(const struct rdb_type *type);

/* bytes: the value, without the number of the type. They are copied. */
struct engine_value engine_kept_value(const struct rdb_type *type, struct rd_slice bytes);

#endif
