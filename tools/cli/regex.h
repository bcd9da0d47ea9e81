/* regex.h - matches names, which may contain any byte, with regular expressions.
 *
 *     struct cli_regex regex;
 *     if (!cli_regex_compile(&regex, cli, "^user:[0-9]+$"))
 *         ... not a regular expression ...
 *     bool yes = cli_regex_match(&regex, name);
 *     cli_regex_done(&regex);
 *
 * The expressions are POSIX extended ones. Some C libraries match only NUL-terminated text. With
 * these, a name is copied, and a byte that the expression does not contain takes the place of each
 * NUL byte; a dot then matches it, which a NUL byte does not match elsewhere.
 *
 * Threads: any thread may match; one regex may be used by several.
 */
#ifndef TOOLS_CLI_REGEX_H
#define TOOLS_CLI_REGEX_H

#include "base/slice.h"

#include <regex.h>

struct cli;

struct cli_regex {
    regex_t compiled;
    struct cli *cli;
    uint8_t nul; /* the byte that takes the place of NUL in a copy */
};

bool cli_regex_compile(struct cli_regex *regex, struct cli *cli, const char *pattern);
void cli_regex_done(struct cli_regex *regex);

/* Ends the program if a copy is needed and memory is exhausted: no answer would be right. */
bool cli_regex_match(const struct cli_regex *regex, struct rd_slice name);

/* The way of C libraries without REG_STARTEND, for the tests of the others. */
bool cli_regex_match_copy(const struct cli_regex *regex, struct rd_slice name);

#endif
