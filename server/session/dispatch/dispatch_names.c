/* The command of a name, after rename-command, and its handler. */
#include "server/surface/cmd/commands.h"

#include <strings.h>

#include "base/mem.h"

/* ---- handlers ---- */

struct handler {
    const char *path;
    dispatch_fn fn;
};

static const struct handler handlers[] = {
#define X(path, name) {path, server_cmd_##name},
    SERVER_COMMANDS(X)
#undef X
};

enum { N_HANDLERS = sizeof handlers / sizeof handlers[0] };

static dispatch_fn *by_id; /* engine_command.id */

static void fill_table(void)
{
    by_id = rd_calloc(engine_command_count(), sizeof *by_id);
    if (by_id == NULL)
        server_panic(NULL, "out of memory");
    for (size_t i = 0; i < N_HANDLERS; i++) {
        const struct engine_command *cmd = engine_command_find_path(rd_slice_str(handlers[i].path));
        by_id[cmd->id] = handlers[i].fn;
        for (unsigned k = 0; k < cmd->n_subcommands; k++)
            by_id[cmd->subcommands[k].id] = handlers[i].fn;
    }
}

dispatch_fn dispatch_handler(const struct engine_command *command)
{
    if (by_id == NULL)
        fill_table();
    return by_id[command->id];
}

/* ---- names ---- */

static struct rename {
    const struct engine_command *command;
    char *name; /* "": disabled */
} * renames;
static size_t n_renames;

static struct rename *renamed(const struct engine_command *command)
{
    for (size_t i = 0; i < n_renames; i++)
        if (renames[i].command == command)
            return &renames[i];
    return NULL;
}

const struct engine_command *dispatch_find_name(struct rd_slice name)
{
    for (size_t i = 0; i < n_renames; i++)
        if (renames[i].name[0] != 0 && strlen(renames[i].name) == name.len &&
            strncasecmp(renames[i].name, (const char *)name.ptr, name.len) == 0)
            return renames[i].command;
    const struct engine_command *command = engine_command_find(name);
    return command != NULL && renamed(command) != NULL ? NULL : command;
}

bool dispatch_rename(struct rd_slice from, struct rd_slice to)
{
    const struct engine_command *command = dispatch_find_name(from);
    char *name = rd_alloc(to.len + 1);
    struct rename *grown = rd_realloc(renames, (n_renames + 1) * sizeof *renames);
    if (name == NULL || grown == NULL)
        server_panic(NULL, "out of memory");
    renames = grown;
    if (command == NULL || (to.len > 0 && dispatch_find_name(to) != NULL)) {
        rd_free(name);
        return false;
    }
    memcpy(name, to.ptr, to.len);
    name[to.len] = 0;
    struct rename *before = renamed(command);
    if (before != NULL) {
        rd_free(before->name);
        before->name = name;
    } else {
        renames[n_renames++] = (struct rename){.command = command, .name = name};
    }
    return true;
}

const struct engine_command *dispatch_find(const struct rd_slice *argv, size_t argc)
{
    if (n_renames == 0)
        return engine_command_resolve(argv, argc);
    const struct engine_command *command = dispatch_find_name(argv[0]);
    if (command == NULL || command->n_subcommands == 0 || argc == 1)
        return command;
    return engine_command_find_sub(command, argv[1]);
}

const struct engine_command *dispatch_find_path(struct rd_slice path)
{
    const uint8_t *bar = path.len == 0 ? NULL : memchr(path.ptr, '|', path.len);
    size_t len = bar == NULL ? path.len : (size_t)(bar - path.ptr);
    const struct engine_command *command = dispatch_find_name(rd_slice(path.ptr, len));
    if (command == NULL || bar == NULL)
        return command;
    return engine_command_find_sub(command, rd_slice(bar + 1, path.len - len - 1));
}

bool dispatch_is_callable(const struct engine_command *command)
{
    const struct rename *rename =
        renamed(command->container != NULL ? command->container : command);
    return rename == NULL || rename->name[0] != 0;
}
