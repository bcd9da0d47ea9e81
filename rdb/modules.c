#include "rdb/modules.h"

#include "rdb/rdb.h"

#include <string.h>

/* The last encoding version is that of the newest release that is known; search writes the number
 * of its format there. */
static const struct {
    const char *name;
    unsigned last;
} types[] = {
    {"vectorset", 0}, {"ReJSON-RL", 4}, {"MBbloom--", 4}, {"MBbloomCF", 4},  {"CMSk-TYPE", 0},
    {"TopK-TYPE", 0}, {"TDIS-TYPE", 0}, {"TSDB-TYPE", 9}, {"ft_index0", 31}, {"bloomfltr", 1},
};

bool rdb_module_is_known(uint64_t id)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(id, name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return rdb_module_encver(id) <= types[i].last;
    return false;
}
