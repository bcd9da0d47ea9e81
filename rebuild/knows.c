#include "rebuild/knows.h"

#include "engine/command.h"
#include "rebuild/unknown.h"

#include <stdio.h>

enum rebuild_knows rebuild_knows(size_t argc, const struct rd_slice *argv)
{
    const struct rebuild_line line = {engine_command_resolve(argv, argc), argc, argv};
    if (line.command == NULL)
        return REBUILD_KNOWS_NOTHING;
    bool runs = line.command->run != NULL && engine_command_arity_ok(line.command, argc);
    if (runs || engine_command_has_no_data(line.command))
        return REBUILD_KNOWS;
    return rebuild_unknown_names_keys(&line) ? REBUILD_KNOWS_KEYS : REBUILD_KNOWS_NOTHING;
}

static bool note(struct rebuild_unsupported *unsupported, struct rd_slice name,
                 enum rebuild_knows knows)
{
    char quoted[64];
    if (knows == REBUILD_KNOWS)
        return false;
    unsupported->n_nothing += knows == REBUILD_KNOWS_NOTHING;
    if (unsupported->n++ > 0)
        return false;
    rd_err_quote(quoted, sizeof quoted, name);
    snprintf(unsupported->text, sizeof unsupported->text,
             knows == REBUILD_KNOWS_KEYS
                 ? "this version cannot run %s: a replay leaves out the keys that it names"
                 : "this version does not know %s: a replay ends there, unless --keep-unknown is "
                   "given",
             quoted);
    return true;
}

bool rebuild_unsupported_note(struct rebuild_unsupported *unsupported, size_t argc,
                              const struct rd_slice *argv)
{
    return argc > 0 && note(unsupported, argv[0], rebuild_knows(argc, argv));
}

bool rebuild_unsupported_note_name(struct rebuild_unsupported *unsupported, struct rd_slice name)
{
    const struct engine_command *command = engine_command_find(name);
    enum rebuild_knows knows = REBUILD_KNOWS;
    if (command == NULL)
        knows = REBUILD_KNOWS_NOTHING;
    else if (command->run == NULL && command->n_subcommands == 0 &&
             !engine_command_has_no_data(command))
        knows = REBUILD_KNOWS_KEYS;
    return note(unsupported, name, knows);
}
