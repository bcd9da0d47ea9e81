/* module.h - the value of a module, which nobody here can read: its serialized bytes.
 *
 * It is kept as a snapshot has it, type byte and module id first, and given out again so.
 */
#ifndef ENGINE_VALUE_MODULE_H
#define ENGINE_VALUE_MODULE_H

#include "engine/value.h"

struct engine_opaque {
    size_t len;
    size_t cap;
    uint8_t *bytes; /* the type's number, then the value of type MODULE_2 */
};

/* The id under which the module's type is known: nine letters and a version (rdb_module_name()). */
uint64_t engine_module_id(const struct engine_value *v);

#endif
