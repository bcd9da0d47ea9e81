#include "server/session/redact.h"

#include <strings.h>

static bool is(const struct engine_command *command, const char *name)
{
    return strcmp(command->name, name) == 0;
}

static bool arg_is(struct rd_slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp((const char *)arg.ptr, word, arg.len) == 0;
}

bool redact_may_have(const struct engine_command *command)
{
    static const char *const names[] = {"auth", "hello", "migrate", "config|set", "acl|setuser"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(command, names[i]))
            return true;
    return false;
}

/* The `n` arguments after a word. */
static bool follows(const struct rd_slice *argv, size_t i, size_t first, const char *word, size_t n)
{
    for (size_t back = 1; back <= n && i >= first + back; back++)
        if (arg_is(argv[i - back], word))
            return true;
    return false;
}

static bool is_secret_setting(struct rd_slice name)
{
    static const char *const names[] = {"requirepass", "masterauth", "masteruser",
                                        "tls-key-file-pass", "tls-client-key-file-pass"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (arg_is(name, names[i]))
            return true;
    return false;
}

bool redact_is_secret(const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv, size_t i)
{
    (void)argc;
    if (is(command, "auth"))
        return i >= 1;
    if (is(command, "hello"))
        return follows(argv, i, 2, "auth", 2);
    if (is(command, "migrate"))
        return follows(argv, i, 6, "auth", 1) || follows(argv, i, 6, "auth2", 2);
    if (is(command, "config|set"))
        return i >= 3 && i % 2 == 1 && is_secret_setting(argv[i - 1]);
    return is(command, "acl|setuser") && i >= 2;
}
