#include "tools/cli/regex.h"

#include "base/mem.h"
#include "tools/cli/cli.h"

enum { NAME_SHORT = 1024 };

/* A control character that the pattern does not contain. */
static uint8_t unused_byte(const char *pattern)
{
    char c = 1;
    while (c < ' ' && strchr(pattern, c) != NULL)
        c++;
    return (uint8_t)c;
}

bool cli_regex_compile(struct cli_regex *regex, struct cli *cli, const char *pattern)
{
    regex->cli = cli;
    regex->nul = unused_byte(pattern);
    return regcomp(&regex->compiled, pattern, REG_EXTENDED | REG_NOSUB) == 0;
}

void cli_regex_done(struct cli_regex *regex)
{
    regfree(&regex->compiled);
}

bool cli_regex_match_copy(const struct cli_regex *regex, struct rd_slice name)
{
    char fixed[NAME_SHORT + 1];
    char *text = name.len <= NAME_SHORT ? fixed : rd_alloc(name.len + 1);
    if (text == NULL)
        cli_out_of_memory(regex->cli, name.len + 1);
    for (size_t i = 0; i < name.len; i++)
        text[i] = name.ptr[i] == 0 ? (char)regex->nul : (char)name.ptr[i];
    text[name.len] = '\0';
    bool yes = regexec(&regex->compiled, text, 0, NULL, 0) == 0;
    if (text != fixed)
        rd_free(text);
    return yes;
}

bool cli_regex_match(const struct cli_regex *regex, struct rd_slice name)
{
#ifdef REG_STARTEND
    regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)name.len};
    const char *text = name.len == 0 ? "" : (const char *)name.ptr;
    return name.len <= INT32_MAX && regexec(&regex->compiled, text, 0, &whole, REG_STARTEND) == 0;
#else
    return cli_regex_match_copy(regex, name);
#endif
}
