#include "base/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

Test(utf8, characters_are_shown)
{
    static const char *const shown[] = {"a",      " ",      "~",          "\"",
                                        "\\",     "\u00a0", "\u00e4",     "\u0416",
                                        "\u65e5", "\ufffd", "\U0001f600", "\U0010ffff"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        cr_expect_eq(rd_utf8_shown((const uint8_t *)shown[i], strlen(shown[i]) + 1),
                     strlen(shown[i]), "case %zu", i);
}

Test(utf8, what_a_terminal_interprets_and_what_is_no_character_is_not_shown)
{
    static const char *const hidden[] = {"",
                                         "\n",
                                         "\033[2J",
                                         "\177",
                                         "\xc2\x85",
                                         "\xc2\x9b",
                                         "\u00ad",
                                         "\u061c",
                                         "\u200b",
                                         "\u200e",
                                         "\u2028",
                                         "\u202e",
                                         "\u2066",
                                         "\ufeff",
                                         "\ufffa",
                                         "\U000e0041",
                                         "\x80",
                                         "\xbf",
                                         "\xc3",
                                         "\xc3(",
                                         "\xc0\xaf",
                                         "\xe0\x9f\xbf",
                                         "\xe6\x97",
                                         "\xed\xa0\x80",
                                         "\xf0\x8f\xbf\xbf",
                                         "\xf4\x90\x80\x80",
                                         "\xf8\x88\x80\x80\x80",
                                         "\xff"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        cr_expect_eq(rd_utf8_shown((const uint8_t *)hidden[i], strlen(hidden[i])), 0, "case %zu",
                     i);
}

Test(utf8, no_byte_after_the_available_ones_is_read)
{
    static const uint8_t emoji[] = {0xf0, 0x9f, 0x98, 0x80};
    for (size_t avail = 0; avail < sizeof emoji; avail++)
        cr_expect_eq(rd_utf8_shown(emoji, avail), 0);
    cr_expect_eq(rd_utf8_shown(emoji, sizeof emoji), 4);
}
