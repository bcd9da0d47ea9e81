/* modules.h - types of modules that are known by name. */
#ifndef RDB_MODULES_H
#define RDB_MODULES_H

#include <stdint.h>

/* The ID of "vectorset", version 0: vector sets, which are built into Redis 8. */
#define RDB_MODULE_VECTORS UINT64_C(0xBDE72DA2BB1EB400)

#endif
