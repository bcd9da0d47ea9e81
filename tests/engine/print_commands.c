/* What the engine knows of commands, for a test in another language.
 *
 *     print_commands          one JSON object a line: name, container, owner, group, since, later
 *     print_commands 2        answers COMMAND in RESP2: each line of standard input is a command
 *                             line, its words parted by tabs
 *     print_commands 3        in RESP3
 *     print_commands 2 all    to clients who have the commands of all servers
 *
 * "COMMAND LIST FILTERBY ACLCAT hash" answers with the table's own code, no other command runs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/call.h"
#include "engine/reply.h"
#include "engine/state_impl.h"

enum { LINE_MAX_LEN = 1 << 16, ARGS_MAX_N = 256 };

static const char *owner_name(enum engine_owner owner)
{
    switch (owner) {
    case ENGINE_OWNER_ENGINE:
        return "engine";
    case ENGINE_OWNER_SERVER:
        return "server";
    case ENGINE_OWNER_LATER:
        return "later";
    }
    return "?";
}

static void print_table(void)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        printf("{\"name\": \"%s\", \"container\": \"%s\", \"owner\": \"%s\", \"group\": \"%s\", "
               "\"since\": \"%s\", \"summary\": \"%s\", \"later\": %s}\n",
               c->name, c->container == NULL ? "" : c->container->name, owner_name(c->owner),
               engine_group_name(c->group), c->since, c->summary,
               c->flags & ENGINE_CMD_LATER_VERSION ? "true" : "false");
}

static size_t split(char *line, struct rd_slice argv[ARGS_MAX_N])
{
    size_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    while (n < ARGS_MAX_N) {
        size_t len = strcspn(line, "\t");
        argv[n++] = rd_slice(line, len);
        if (line[len] == '\0')
            break;
        line += len + 1;
    }
    return n;
}

static void answer(struct engine *engine, struct engine_reply *reply, size_t argc,
                   const struct rd_slice *argv)
{
    struct engine_call call = {.engine = engine, .argc = argc, .argv = argv, .reply = reply};
    call.command = engine_command_resolve(argv, argc);
    if (call.command == NULL)
        engine_reply_error(reply, "ERR unknown");
    else if (!engine_command_arity_ok(call.command, argc))
        engine_reply_error(reply, "ERR arity");
    else if (call.command->run == NULL || strncmp(call.command->name, "command", 7) != 0)
        engine_reply_error(reply, "ERR not here");
    else
        call.command->run(&call);
    fwrite(reply->buf.ptr, 1, reply->buf.len, stdout);
    engine_reply_reset(reply);
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_LEN];
    static struct rd_slice words[ARGS_MAX_N];
    if (argc < 2) {
        print_table();
        return 0;
    }
    struct engine_reply reply = {.proto = (unsigned)atoi(argv[1])};
    static struct engine engine;
    if (argc > 2)
        engine.config.level =
            ENGINE_LEVEL_REDIS_8_0 | ENGINE_LEVEL_REDIS_8_6 | ENGINE_LEVEL_VALKEY_9_1;
    while (fgets(line, sizeof line, stdin) != NULL)
        answer(&engine, &reply, split(line, words), words);
    engine_reply_done(&reply);
    return 0;
}
