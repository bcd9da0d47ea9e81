#include <criterion/criterion.h>

#include "base/sized.h"
#include "base/src.h"

/* The options of an older and of a newer program than the library. */
struct old_opts {
    size_t size;
    int a;
};

struct own_opts {
    size_t size;
    int a, b;
};

struct new_opts {
    size_t size;
    int a, b;
    uint64_t c;
};

Test(sized, options_of_an_older_program_get_zeros)
{
    struct own_opts own;
    memset(&own, 0xee, sizeof own);
    const struct old_opts given = {.size = offsetof(struct own_opts, b), .a = 5};
    cr_assert(rd_sized_copy(&own, sizeof own, &given, NULL));
    cr_assert(own.size == sizeof own && own.a == 5 && own.b == 0);
    cr_assert(rd_sized_copy(&own, sizeof own, NULL, NULL));
    cr_assert(own.size == sizeof own && own.a == 0 && own.b == 0);
}

Test(sized, a_field_that_the_library_lacks_is_refused_only_where_it_is_set)
{
    struct own_opts own;
    struct rd_err err = {0};
    struct new_opts given = {.size = sizeof given, .a = 5, .b = 6};
    cr_assert(rd_sized_copy(&own, sizeof own, &given, &err));
    cr_assert(own.size == sizeof own && own.a == 5 && own.b == 6);
    given.c = (uint64_t)1 << 63;
    cr_assert_not(rd_sized_copy(&own, sizeof own, &given, &err));
    cr_assert_eq(err.code, RD_ERR_UNSUPPORTED);
    cr_assert(own.size == sizeof own && own.a == 0 && own.b == 0);
}

Test(sized, a_size_that_is_not_set_is_refused)
{
    struct own_opts own;
    const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rd_err err = {0};
        const struct own_opts given = {.size = sizes[i], .a = 5};
        cr_assert_not(rd_sized_copy(&own, sizeof own, &given, &err));
        cr_assert_eq(err.code, RD_ERR_USAGE);
        cr_assert(own.size == sizeof own && own.a == 0);
    }
    struct rd_src *src;
    struct rd_err err = {0};
    struct rd_src_opts forgotten = RD_SRC_OPTS(.window = 100);
    forgotten.size = 0;
    cr_assert_not(rd_src_open_memory(&src, rd_slice_str("x"), &forgotten, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
}

Test(sized, a_result_is_returned_as_far_as_the_program_knows_it)
{
    const struct own_opts own = {.size = sizeof own, .a = 1, .b = 2};
    struct own_opts same = {.size = sizeof same};
    rd_sized_return(&same, &own, sizeof own);
    cr_assert(same.size == sizeof same && same.a == 1 && same.b == 2);

    union {
        struct own_opts room;
        struct old_opts old;
    } older = {.room = {.size = offsetof(struct own_opts, b), .b = 77}};
    rd_sized_return(&older.old, &own, sizeof own);
    cr_assert(older.old.size == offsetof(struct own_opts, b) && older.old.a == 1);
    cr_assert_eq(older.room.b, 77, "bytes after the struct of the program");

    struct new_opts newer = {.size = sizeof newer, .c = 99};
    rd_sized_return(&newer, &own, sizeof own);
    cr_assert(newer.size == sizeof newer && newer.a == 1 && newer.b == 2 && newer.c == 0);
}
