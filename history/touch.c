#include "history/touch.h"

static bool is_script(const struct engine_command *command)
{
    return command->group == ENGINE_GROUP_SCRIPTING && !engine_command_has_no_data(command);
}

/* What follows from the command alone. */
static enum history_touch touch_of_command(const struct rebuild_line *line)
{
    if (line->command == NULL)
        return HISTORY_TOUCHES_ANY;
    if (line->command->group == ENGINE_GROUP_TRANSACTIONS ||
        engine_command_has_no_data(line->command))
        return HISTORY_TOUCHES_NOTHING;
    if (rebuild_line_is_for_all_keys(line) || is_script(line->command))
        return HISTORY_TOUCHES_ANY;
    return HISTORY_TOUCHES_KEYS;
}

static enum history_touch touch_of_keys(const struct rebuild_line *line,
                                        bool (*each)(void *ctx, struct rd_slice name), void *ctx)
{
    struct rebuild_line_keys keys;
    bool any = false, more = true;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        if (!rebuild_line_writes(&keys.list[i]))
            continue;
        any = true;
        if (each != NULL && more)
            more = each(ctx, line->argv[keys.list[i].index]);
    }
    rebuild_line_keys_done(&keys);
    if (any)
        return HISTORY_TOUCHES_KEYS;
    return (line->command->flags & ENGINE_CMD_WRITE) != 0 ? HISTORY_TOUCHES_ANY
                                                          : HISTORY_TOUCHES_NOTHING;
}

enum history_touch history_touch_of(const struct rebuild_line *line,
                                    bool (*each)(void *ctx, struct rd_slice name), void *ctx)
{
    enum history_touch touch = touch_of_command(line);
    return touch == HISTORY_TOUCHES_KEYS ? touch_of_keys(line, each, ctx) : touch;
}

static bool is_memo(const struct history_touch_memo *memo, struct rd_slice name)
{
    return name.len == memo->len && name.len > 0 && memcmp(memo->name, name.ptr, name.len) == 0;
}

/* A command with subcommands is not known by its name. */
static void learn(struct history_touch_memo *memo, struct rd_slice name,
                  const struct rebuild_line *line)
{
    bool keep = line->command != NULL && strchr(line->command->name, '|') == NULL &&
                line->command->n_subcommands == 0 && name.len <= sizeof memo->name;
    memo->len = keep ? name.len : 0;
    if (keep && name.len > 0)
        memcpy(memo->name, name.ptr, name.len);
    memo->command = line->command;
    memo->touch = touch_of_command(line);
}

enum history_touch history_touch_next(struct history_touch_memo *memo,
                                      const struct resp_command *cmd,
                                      bool (*each)(void *ctx, struct rd_slice name), void *ctx)
{
    struct rebuild_line line = {memo->command, cmd->argc, cmd->argv};
    if (!is_memo(memo, cmd->argv[0])) {
        line.command = engine_command_resolve(cmd->argv, cmd->argc);
        learn(memo, cmd->argv[0], &line);
    }
    return memo->touch == HISTORY_TOUCHES_KEYS ? touch_of_keys(&line, each, ctx) : memo->touch;
}
