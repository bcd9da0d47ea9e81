/* imports.h - private to rdb/: imports of slots of another node that were under way when a snapshot
 * was saved (Valkey 9), with the number of their keys.
 *
 *     struct rdb_imports *imports = NULL;
 *     rdb_imports_begin(&imports, ev, &err);  // SLOT_IMPORT
 *     rdb_imports_range(imports, ev);         // SLOT_RANGE
 *     rdb_imports_count(imports, name);       // KEY
 *     rd_free(imports);
 */
#ifndef RDB_IMPORTS_H
#define RDB_IMPORTS_H

#include "base/crc16.h"
#include "base/err.h"
#include "rdb/check.h"
#include "rdb/event.h"

struct rdb_import {
    char job[RDB_FINDING_KEY_MAX];
    char ranges[64]; /* as text; cut if they are many */
    uint64_t offset;
    uint64_t slots, keys;
};

enum { RDB_IMPORTS_MAX = 100 };

struct rdb_imports {
    struct rdb_import of[RDB_IMPORTS_MAX];
    size_t n;                       /* more of them count as the last one */
    uint8_t slot_of[RD_HASH_SLOTS]; /* the number of its import from 1 on; 0: none */
};

/* *all is allocated with the first import. */
bool rdb_imports_begin(struct rdb_imports **all, const struct rdb_event *ev, struct rd_err *err);
void rdb_imports_range(struct rdb_imports *all, const struct rdb_event *ev);

/* True: the key is in a slot of an import. */
bool rdb_imports_count(struct rdb_imports *all, struct rd_slice name);

#endif
