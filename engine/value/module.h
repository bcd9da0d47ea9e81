/* module.h - a module value, which cannot be decoded here: its serialized bytes.
 *
 * It is kept as in a snapshot, type byte and module ID first, and written again unchanged.
 */
#ifndef ENGINE_VALUE_MODULE_H
#define ENGINE_VALUE_MODULE_H

#include "engine/value.h"

struct engine_opaque {
    size_t len;
    size_t cap;
    uint8_t *bytes; /* the type's number, then the value of type MODULE_2 */
};

/* The ID of the module's type: nine letters and a version (rdb_module_name()). */
uint64_t engine_module_id(const struct engine_value *v);

#endif
