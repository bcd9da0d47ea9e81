/* keys.c - finds the keys of a command with the engine's command table. */
#include "base/mem.h"
#include "engine/command.h"
#include "tools/show/show.h"

enum { KEYS_USUAL = 64 };

static bool any_of(const struct resp_command *cmd, const struct engine_key *keys, size_t n,
                   bool (*fn)(void *ctx, struct rd_slice key), void *ctx)
{
    for (size_t i = 0; i < n; i++)
        if (fn(ctx, cmd->argv[keys[i].index]))
            return true;
    return false;
}

/* Most commands have fewer keys. */
static bool any_of_many(const struct engine_command *command, const struct resp_command *cmd,
                        size_t n, bool (*fn)(void *ctx, struct rd_slice key), void *ctx)
{
    struct engine_key *keys = rd_calloc(n, sizeof *keys);
    if (keys == NULL)
        return true; /* shown rather than omitted */
    engine_command_keys(command, cmd->argv, cmd->argc, keys, n, &n);
    bool found = any_of(cmd, keys, n, fn, ctx);
    rd_free(keys);
    return found;
}

bool show_keys(const struct resp_command *cmd, bool (*fn)(void *ctx, struct rd_slice key),
               void *ctx)
{
    struct engine_key keys[KEYS_USUAL];
    size_t n;
    const struct engine_command *command = engine_command_resolve(cmd->argv, cmd->argc);
    if (command == NULL)
        return cmd->argc > 1 && fn(ctx, cmd->argv[1]);
    if (engine_command_keys(command, cmd->argv, cmd->argc, keys, KEYS_USUAL, &n) != ENGINE_KEYS_OK)
        return false;
    return n <= KEYS_USUAL ? any_of(cmd, keys, n, fn, ctx) : any_of_many(command, cmd, n, fn, ctx);
}
