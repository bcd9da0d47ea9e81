/* module.h - a module value: its serialized bytes.
 *
 * It is kept as in a snapshot, type byte and module ID first, and written again unchanged. Vector
 * sets, which became a type of Redis 8, are decoded when a command needs it: vectors.h.
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

/* Reads an OPAQUE value as the events of a snapshot, from VALUE to VALUE_END. */
struct rd_src;
struct rdb_reader;

struct engine_module_in {
    struct rd_src *src;
    struct rdb_reader *reader;
};

bool engine_module_read(const struct engine_value *v, struct engine_module_in *ret,
                        struct rd_err *err);
void engine_module_read_end(struct engine_module_in *in);

#endif
