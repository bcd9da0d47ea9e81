#include "rdb/imports.h"

#include "base/mem.h"

#include <stdio.h>

bool rdb_imports_begin(struct rdb_imports **all, const struct rdb_event *ev, struct rd_err *err)
{
    if (*all == NULL && (*all = rd_calloc(1, sizeof **all)) == NULL)
        return rd_err_nomem(err, sizeof **all);
    if ((*all)->n == RDB_IMPORTS_MAX)
        return true;
    struct rdb_import *import = &(*all)->of[(*all)->n++];
    import->offset = ev->offset;
    rd_err_quote(import->job, sizeof import->job, ev->slot_import.job);
    return true;
}

void rdb_imports_range(struct rdb_imports *all, const struct rdb_event *ev)
{
    struct rdb_import *import = &all->of[all->n - 1];
    size_t len = strlen(import->ranges);
    uint64_t first = ev->slot_range.first, last = ev->slot_range.last;
    if (len + sizeof ", 16383-16383, ..." < sizeof import->ranges)
        snprintf(import->ranges + len, sizeof import->ranges - len, "%s%llu-%llu",
                 len > 0 ? ", " : "", (unsigned long long)first, (unsigned long long)last);
    else if (len + 5 < sizeof import->ranges && import->ranges[len - 1] != '.')
        memcpy(import->ranges + len, ", ...", sizeof ", ...");
    for (; first <= last && first < RD_HASH_SLOTS; first++) {
        import->slots++;
        all->slot_of[first] = (uint8_t)all->n;
    }
}

bool rdb_imports_count(struct rdb_imports *all, struct rd_slice name)
{
    unsigned of = all->slot_of[rd_hash_slot(name)];
    if (of > 0)
        all->of[of - 1].keys++;
    return of > 0;
}
