#include "data/name_regex.h"

#include "base/mem.h"
#include <string.h>

enum { NAME_SHORT = 1024 };

/* A control character that the pattern does not contain. */
static uint8_t unused_byte(const char *pattern)
{
    char c = 1;
    while (c < ' ' && strchr(pattern, c) != NULL)
        c++;
    return (uint8_t)c;
}

bool name_regex_compile(struct name_regex *regex, const char *pattern)
{
    regex->exhausted = NULL;
    regex->nul = unused_byte(pattern);
    return regcomp(&regex->compiled, pattern, REG_EXTENDED | REG_NOSUB) == 0;
}

void name_regex_done(struct name_regex *regex)
{
    regfree(&regex->compiled);
}

bool name_regex_match_copy(const struct name_regex *regex, struct rd_slice name)
{
    char fixed[NAME_SHORT + 1];
    char *text = name.len <= NAME_SHORT ? fixed : rd_alloc(name.len + 1);
    if (text == NULL && regex->exhausted != NULL)
        regex->exhausted(name.len + 1);
    if (text == NULL)
        return false;
    for (size_t i = 0; i < name.len; i++)
        text[i] = name.ptr[i] == 0 ? (char)regex->nul : (char)name.ptr[i];
    text[name.len] = '\0';
    bool yes = regexec(&regex->compiled, text, 0, NULL, 0) == 0;
    if (text != fixed)
        rd_free(text);
    return yes;
}

bool name_regex_match(const struct name_regex *regex, struct rd_slice name)
{
#ifdef REG_STARTEND
    regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)name.len};
    const char *text = name.len == 0 ? "" : (const char *)name.ptr;
    return name.len <= INT32_MAX && regexec(&regex->compiled, text, 0, &whole, REG_STARTEND) == 0;
#else
    return name_regex_match_copy(regex, name);
#endif
}
