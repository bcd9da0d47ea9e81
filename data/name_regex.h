/* name_regex.h - matches names, which may contain any byte, with regular expressions.
 *
 *     struct name_regex regex;
 *     if (!name_regex_compile(&regex, "^user:[0-9]+$"))
 *         ... not a regular expression ...
 *     bool yes = name_regex_match(&regex, name);
 *     name_regex_done(&regex);
 *
 * The expressions are POSIX extended ones. Some C libraries match only NUL-terminated text. With
 * these, a name is copied, and a byte that the expression does not contain takes the place of each
 * NUL byte; a dot then matches it, which a NUL byte does not match elsewhere.
 *
 * Threads: any thread may match; one regex may be used by several.
 */
#ifndef DATA_NAME_REGEX_H
#define DATA_NAME_REGEX_H

#include "base/slice.h"

#include <regex.h>

struct name_regex {
    regex_t compiled;
    /* Memory for a copy is exhausted. It does not return: no answer would be right. NULL: the name
     * does not match. */
    void (*exhausted)(size_t size);
    uint8_t nul; /* the byte that takes the place of NUL in a copy */
};

bool name_regex_compile(struct name_regex *regex, const char *pattern);
void name_regex_done(struct name_regex *regex);

bool name_regex_match(const struct name_regex *regex, struct rd_slice name);

/* The way of C libraries without REG_STARTEND, for the tests of the others. */
bool name_regex_match_copy(const struct name_regex *regex, struct rd_slice name);

#endif
