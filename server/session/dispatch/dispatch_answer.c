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

void dispatch_unknown_subcommand(struct dispatch_call *call)
{
    char name[ENGINE_NAME_SHOWN];
    engine_reply_shown_name(call->argv[0], name);
    struct rd_slice sub = call->argv[1];
    engine_reply_errorf(call->reply,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s "
                        "HELP.",
                        (int)(sub.len < 128 ? sub.len : 128), (const char *)sub.ptr, name);
}

void dispatch_help(struct dispatch_call *call, const char *const *lines)
{
    char name[ENGINE_NAME_SHOWN];
    size_t n = 0;
    while (lines[n] != NULL)
        n++;
    engine_reply_shown_name(call->argv[0], name);
    engine_reply_array(call->reply, n + 3);
    char head[ENGINE_NAME_SHOWN + 64];
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
