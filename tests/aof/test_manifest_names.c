/* Files of a manifest that are looked up by name.
 */
#include "aof/manifest_names.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/support/alloc_fault.h"

enum { FILES = 101, NAME = 32 };

static void add(struct aof_manifest *m, const char *text, uint64_t seq)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s", text);
    const struct aof_file file = {.name = name, .seq = seq, .type = AOF_INCR};
    cr_assert_not_null(aof_manifest_add(m, &file));
}

Test(manifest_names, every_file_is_found_and_of_two_with_one_name_the_first)
{
    struct aof_manifest m;
    struct aof_manifest_names names;
    char name[NAME];
    aof_manifest_init(&m);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "f%u", i * 37 % FILES);
        add(&m, name, i + 1);
    }
    for (unsigned i = 0; i < FILES; i += 10) {
        snprintf(name, sizeof name, "f%u", i);
        add(&m, name, 1000);
    }
    cr_assert(aof_manifest_names_init(&names, &m, NULL));
    cr_assert_eq(names.n, aof_manifest_count(&m));
    for (unsigned i = 0; i < FILES; i++)
        cr_assert_eq(aof_manifest_names_find(&names, aof_manifest_file(&m, i)->name),
                     aof_manifest_file(&m, i));
    cr_assert_null(aof_manifest_names_find(&names, ""));
    cr_assert_null(aof_manifest_names_find(&names, "f"));
    cr_assert_null(aof_manifest_names_find(&names, "f999"));
    cr_assert_null(aof_manifest_names_find(&names, "g"));
    aof_manifest_names_done(&names);
    aof_manifest_done(&m);
}

Test(manifest_names, an_empty_manifest_has_none)
{
    struct aof_manifest m;
    struct aof_manifest_names names;
    aof_manifest_init(&m);
    cr_assert(aof_manifest_names_init(&names, &m, NULL));
    cr_assert_null(aof_manifest_names_find(&names, "f"));
    aof_manifest_names_done(&names);
}

Test(manifest_names, short_memory_is_reported)
{
    struct aof_manifest m;
    struct aof_manifest_names names;
    struct rd_err err = {0};
    aof_manifest_init(&m);
    add(&m, "f", 1);
    alloc_fault_begin(1);
    bool ok = aof_manifest_names_init(&names, &m, &err);
    cr_assert_eq(alloc_fault_end().live, 0);
    cr_assert_not(ok);
    cr_assert_eq(err.code, RD_ERR_MEMORY);
    aof_manifest_done(&m);
}
