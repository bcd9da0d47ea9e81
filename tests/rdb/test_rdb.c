#include "rdb/rdb.h"

#include <criterion/criterion.h>

/* Nine letters of six bits each, and ten bits for the version of its encoding. */
Test(rdb, the_id_of_a_module_is_its_name_and_version)
{
    static const uint8_t letters[RDB_MODULE_NAME_LEN] = {0, 25, 26, 51, 52, 61, 62, 63, 1};
    char name[RDB_MODULE_NAME_LEN + 1];
    uint64_t id = 0;
    for (int i = 0; i < RDB_MODULE_NAME_LEN; i++)
        id = id << 6 | letters[i];
    id = id << 10 | 1023;
    rdb_module_name(id, name);
    cr_expect_str_eq(name, "AZaz09-_B");
    cr_expect_eq(rdb_module_encver(id), 1023);
    cr_expect_eq(rdb_module_encver(id - 1000), 23);
}
