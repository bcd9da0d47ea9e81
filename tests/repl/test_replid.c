/* Replication ids.
 */
#include "repl/replid.h"

#include <criterion/criterion.h>

static const char SMALL[] = "0123456789abcdef0123456789abcdef01234567";
static const char CAPITAL[] = "0123456789ABCDEF0123456789ABCDEF01234567";

Test(replid, forty_digits_are_one_and_are_kept_as_they_are)
{
    struct repl_replid id = {{0}};
    cr_assert_not(repl_replid_is_set(&id));
    cr_assert(repl_replid_get(rd_slice_str(SMALL), &id));
    cr_assert_str_eq(id.hex, SMALL);
    cr_assert(repl_replid_is_set(&id));
    cr_assert(repl_replid_get(rd_slice_str(CAPITAL), &id));
    cr_assert_str_eq(id.hex, CAPITAL);
}

Test(replid, anything_else_is_none_and_changes_nothing)
{
    static const uint8_t odd[] = {0, ' ', '/', ':', '@', 'G', '`', 'g', 0x80, 0xff};
    struct repl_replid id = {"kept"};
    char text[REPL_REPLID_LEN + 2] = "";
    cr_assert_not(repl_replid_get(rd_slice(NULL, 0), &id));
    cr_assert_not(repl_replid_get(rd_slice(SMALL, REPL_REPLID_LEN - 1), &id));
    memset(text, '0', sizeof text);
    cr_assert_not(repl_replid_get(rd_slice(text, REPL_REPLID_LEN + 1), &id));
    for (size_t i = 0; i < REPL_REPLID_LEN; i += 13)
        for (size_t k = 0; k < sizeof odd; k++) {
            memcpy(text, SMALL, REPL_REPLID_LEN);
            text[i] = (char)odd[k];
            cr_assert_not(repl_replid_get(rd_slice(text, REPL_REPLID_LEN), &id));
        }
    cr_assert_str_eq(id.hex, "kept");
}

Test(replid, capital_and_small_digits_are_equal)
{
    struct repl_replid a, b, none = {{0}}, also_none = {{0}};
    cr_assert(repl_replid_get(rd_slice_str(SMALL), &a));
    cr_assert(repl_replid_get(rd_slice_str(CAPITAL), &b));
    cr_assert(repl_replid_eq(&a, &b));
    b.hex[REPL_REPLID_LEN - 1] = '6';
    cr_assert_not(repl_replid_eq(&a, &b));
    cr_assert_not(repl_replid_eq(&a, &none));
    cr_assert_not(repl_replid_eq(&none, &a));
    cr_assert(repl_replid_eq(&none, &also_none));
}
