/* The command of a name, after rename-command, and its handler. */
#include "server/session/dispatch/dispatch.h"

#include "base/mem.h"
#include "server/loop/log.h"

struct dispatch_table {
    dispatch_fn *by_id; /* engine_command.id */
};

struct dispatch_table *dispatch_table_new(void)
{
    struct dispatch_table *table = rd_calloc(1, sizeof *table);
    dispatch_fn *by_id = rd_calloc(ENGINE_COMMAND_IDS, sizeof *by_id);
    if (table == NULL || by_id == NULL)
        log_panic("out of memory");
    table->by_id = by_id;
    return table;
}

void dispatch_table_free(struct dispatch_table *table)
{
    if (table == NULL)
        return;
    rd_free(table->by_id);
    rd_free(table);
}

void dispatch_register(struct sessions *sessions, const struct dispatch_row *rows, size_t n)
{
    dispatch_fn *by_id = sessions->dispatch->by_id;
    for (size_t i = 0; i < n; i++) {
        const struct engine_command *command = engine_command_find_path(rd_slice_str(rows[i].path));
        by_id[command->id] = rows[i].fn;
        for (unsigned k = 0; k < command->n_subcommands; k++)
            by_id[command->subcommands[k].id] = rows[i].fn;
    }
}

dispatch_fn dispatch_handler(const struct sessions *sessions, const struct engine_command *command)
{
    return sessions->dispatch->by_id[command->id];
}

static const struct names *names_of(const struct sessions *sessions)
{
    return &sessions->loop->settings.names;
}

const struct engine_command *dispatch_find_name(const struct sessions *sessions,
                                                struct rd_slice name)
{
    return names_find(names_of(sessions), name);
}

const struct engine_command *dispatch_find(const struct sessions *sessions,
                                           const struct rd_slice *argv, size_t argc)
{
    const struct names *names = names_of(sessions);
    if (names->n == 0)
        return engine_command_resolve(argv, argc);
    const struct engine_command *command = names_find(names, argv[0]);
    if (command == NULL || command->n_subcommands == 0 || argc == 1)
        return command;
    return engine_command_find_sub(command, argv[1]);
}

const struct engine_command *dispatch_find_path(const struct sessions *sessions,
                                                struct rd_slice path)
{
    const uint8_t *bar = path.len == 0 ? NULL : memchr(path.ptr, '|', path.len);
    size_t len = bar == NULL ? path.len : (size_t)(bar - path.ptr);
    const struct engine_command *command = names_find(names_of(sessions), rd_slice(path.ptr, len));
    if (command == NULL || bar == NULL)
        return command;
    return engine_command_find_sub(command, rd_slice(bar + 1, path.len - len - 1));
}

bool dispatch_is_callable(const struct sessions *sessions, const struct engine_command *command)
{
    return names_is_callable(names_of(sessions), command);
}
