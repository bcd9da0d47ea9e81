#include "server/session/dispatch/subcommand.h"

void subcommand_run(struct dispatch_call *call, const struct subcommand *table, size_t n)
{
    const char *name = call->command->name + call->command->own_name_at;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i].name, name) == 0) {
            table[i].run(call);
            return;
        }
    }
    engine_reply_errorf(call->reply, "ERR '%s' is not supported yet", call->command->name);
}

void subcommand_syntax(struct dispatch_call *call)
{
    char container[ENGINE_NAME_SHOWN];
    engine_reply_shown_name(call->argv[0], container);
    struct rd_slice sub = call->argv[1];
    engine_reply_errorf(call->reply,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s "
                        "HELP.",
                        (int)(sub.len < 128 ? sub.len : 128), (const char *)sub.ptr, container);
}
