#include "engine/cmd/names.h"

#include <string.h>

#include "engine/command.h"
#include "engine/state_impl.h"

/* COMMAND needs no dataset. */
static const struct engine_hooks *hooks_of(const struct engine_call *call)
{
    static const struct engine_hooks none;
    return call->engine != NULL ? &call->engine->hooks : &none;
}

static bool at_level(const struct engine_call *call, const struct engine_command *cmd)
{
    enum engine_level level = call->engine != NULL ? call->engine->config.level : ENGINE_LEVEL_7_0;
    return cmd != NULL && engine_command_at_level(cmd, level);
}

const struct engine_command *engine_names_find(const struct engine_call *call, struct rd_slice name)
{
    const struct engine_hooks *hooks = hooks_of(call);
    const struct engine_command *cmd =
        hooks->named != NULL ? hooks->named(hooks->ctx, name) : engine_command_find(name);
    return at_level(call, cmd) ? cmd : NULL;
}

const struct engine_command *engine_names_find_sub(const struct engine_call *call,
                                                   const struct engine_command *container,
                                                   struct rd_slice name)
{
    const struct engine_command *cmd = engine_command_find_sub(container, name);
    return at_level(call, cmd) ? cmd : NULL;
}

const struct engine_command *engine_names_find_path(const struct engine_call *call,
                                                    struct rd_slice path)
{
    const uint8_t *bar = path.len == 0 ? NULL : memchr(path.ptr, '|', path.len);
    size_t len = bar == NULL ? path.len : (size_t)(bar - path.ptr);
    const struct engine_command *cmd = engine_names_find(call, rd_slice(path.ptr, len));
    if (cmd == NULL || bar == NULL)
        return cmd;
    return engine_names_find_sub(call, cmd, rd_slice(bar + 1, path.len - len - 1));
}

bool engine_names_listed(const struct engine_call *call, const struct engine_command *cmd)
{
    const struct engine_hooks *hooks = hooks_of(call);
    return at_level(call, cmd) && (hooks->callable == NULL || hooks->callable(hooks->ctx, cmd));
}

const struct engine_command *engine_names_subcommand(const struct engine_call *call,
                                                     const struct engine_command *container,
                                                     size_t *i)
{
    while (*i < container->n_subcommands) {
        const struct engine_command *cmd = &container->subcommands[(*i)++];
        if (at_level(call, cmd))
            return cmd;
    }
    return NULL;
}
