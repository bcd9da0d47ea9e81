/* modules.h - types of modules that are known by name.
 *
 *     if (rdb_module_is_known(ev->value.module_id)) // there is a module of this type
 *
 * Threads: any thread may call everything.
 */
#ifndef RDB_MODULES_H
#define RDB_MODULES_H

#include <stdbool.h>
#include <stdint.h>

/* The ID of "vectorset", version 0: vector sets, which are built into Redis 8. */
#define RDB_MODULE_VECTORS UINT64_C(0xBDE72DA2BB1EB400)

/* Whether a published module has this type, in a version that it writes. */
bool rdb_module_is_known(uint64_t id);

/* Whether the ID cannot be one: servers make it of nine letters, of which 'A' is 0. Bytes that are
 * not an ID, but a small number, read as "AAAAAAAAA". */
static inline bool rdb_module_is_number(uint64_t id)
{
    return id >> 32 == 0;
}

#endif
