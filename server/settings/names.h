/* names.h - the names of commands for clients: rename-command.
 *
 *     if (names_rename(&names, from, to))
 *         ... names_find(&names, to) is the command ...
 *     names_done(&names);
 */
#ifndef SERVER_SETTINGS_NAMES_H
#define SERVER_SETTINGS_NAMES_H

#include "engine/command.h"

struct names {
    struct names_entry {
        const struct engine_command *command;
        char *name; /* "": disabled */
    } * list;
    size_t n;
};

/* The command or container with this name. NULL: there is none. */
const struct engine_command *names_find(const struct names *names, struct rd_slice name);

/* Sets the name of a command ("": disables it). False: the command does not exist, or the new name
 * does. */
bool names_rename(struct names *names, struct rd_slice from, struct rd_slice to);

/* False: the command is disabled, or its container. */
bool names_is_callable(const struct names *names, const struct engine_command *command);

void names_done(struct names *names);

#endif
