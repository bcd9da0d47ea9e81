#include "history/touch.h"

static bool is_script(const struct engine_command *command)
{
    return command->group == ENGINE_GROUP_SCRIPTING && !engine_command_has_no_data(command);
}

enum history_touch history_touch_of(const struct rebuild_line *line,
                                    bool (*each)(void *ctx, struct rd_slice name), void *ctx)
{
    struct rebuild_line_keys keys;
    bool any = false, more = true;
    if (line->command == NULL)
        return HISTORY_TOUCHES_ANY;
    if (line->command->group == ENGINE_GROUP_TRANSACTIONS ||
        engine_command_has_no_data(line->command))
        return HISTORY_TOUCHES_NOTHING;
    if (rebuild_line_is_for_all_keys(line) || is_script(line->command))
        return HISTORY_TOUCHES_ANY;
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
