/* before.c - how many keys of a damaged file come before the damage. */
#include "tools/check_rdb/check_rdb.h"

bool check_keys_before(const struct check_file *file, uint64_t *ret)
{
    const struct rdb_check_result *res = &file->res;
    /* The framing can be intact where a value is broken: the check then counted keys after it. */
    if (!file->searched || file->salvage.corrected || file->all_runs > file->n_runs) {
        *ret = file->whole;
        return !file->once;
    }
    *ret = 0;
    for (size_t i = 0; i < file->n_runs; i++) {
        if (file->runs[i].to <= res->record)
            *ret += file->runs[i].keys;
    }
    return true;
}
