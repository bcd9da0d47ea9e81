/* Replies shared by the handlers of commands. */
#include "server/session/dispatch/dispatch.h"

#include <stdio.h>
#include <strings.h>

#include "base/num.h"

void dispatch_syntax(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR syntax error");
}

void dispatch_wrong_arity(struct dispatch_call *call)
{
    engine_reply_errorf(call->reply, "ERR wrong number of arguments for '%s' command",
                        call->command->name);
}

static void upper(const char *name, char *dst, size_t size)
{
    size_t i = 0;
    for (; name[i] != 0 && name[i] != '|' && i + 1 < size; i++)
        dst[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 32 : name[i]);
    dst[i] = 0;
}

void dispatch_unknown_subcommand(struct dispatch_call *call)
{
    char name[64];
    upper(call->command->name, name, sizeof name);
    struct rd_slice sub = call->argv[1];
    engine_reply_errorf(call->reply,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s "
                        "HELP.",
                        (int)(sub.len < 128 ? sub.len : 128), (const char *)sub.ptr, name);
}

void dispatch_help(struct dispatch_call *call, const char *const *lines)
{
    char name[64];
    size_t n = 0;
    while (lines[n] != NULL)
        n++;
    upper(call->command->name, name, sizeof name);
    engine_reply_array(call->reply, n + 3);
    char head[160];
    snprintf(head, sizeof head,
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", name);
    engine_reply_simple(call->reply, head);
    for (size_t i = 0; i < n; i++)
        engine_reply_simple(call->reply, lines[i]);
    engine_reply_simple(call->reply, "HELP");
    engine_reply_simple(call->reply, "    Prints this help.");
}

bool dispatch_arg_is(struct rd_slice arg, const char *word)
{
    return strlen(word) == arg.len &&
           (arg.len == 0 || strncasecmp((const char *)arg.ptr, word, arg.len) == 0);
}

bool dispatch_arg_i64(struct dispatch_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error)
{
    int64_t value;
    if (!rd_num_get_i64(arg, &value) || value < min || value > max) {
        engine_reply_error(call->reply,
                           error != NULL ? error : "ERR value is not an integer or out of range");
        return false;
    }
    *ret = value;
    return true;
}
