#include "rdb/library.h"

#include <criterion/criterion.h>

static bool is_fault(const char *code, bool whole)
{
    return rdb_library_fault(rd_slice_str(code), whole) != NULL;
}

Test(library, the_line_that_servers_take_is_sound)
{
    cr_expect_not(is_fault("#!lua name=lib\nreturn 1", true));
    cr_expect_not(is_fault("#!LUA NAME=Lib_1  \nreturn 1", true));
    cr_expect_not(is_fault("#!lua name=\"lib\"\nreturn 1", true));
}

Test(library, every_other_line_is_a_fault)
{
    static const char *const bad[] = {
        "",
        "return 1",
        "#!lua name=lib",
        "#!lua\nreturn 1",
        "#!lua name=\nreturn 1",
        "#!lua name=a-b\nreturn 1",
        "#!lua name=a name=b\nreturn 1",
        "#!lua nale=a\nreturn 1",
        "#!lua name=a other\nreturn 1",
        "#!kua name=a\nreturn 1",
        "#!\nreturn 1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(is_fault(bad[i], true), "%s", bad[i]);
}

Test(library, a_nul_byte_ends_the_line_for_servers)
{
    static const char code[] = "#!lua 'name=a'\0\nreturn 1";
    cr_expect(rdb_library_fault(rd_slice(code, sizeof code - 1), true) != NULL);
}

Test(library, a_line_that_is_cut_by_its_piece_is_not_judged)
{
    cr_expect_not(is_fault("#!lua name=a", false));
    cr_expect(is_fault("lua name=a", false));
}
