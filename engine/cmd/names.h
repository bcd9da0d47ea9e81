/* names.h - the commands by the names that clients use, which may differ from those of the table
 * (rename-command).
 */
#ifndef ENGINE_CMD_NAMES_H
#define ENGINE_CMD_NAMES_H

#include "engine/call.h"

/* A command or container; with find_path also "NAME|SUBCOMMAND". NULL: there is none at this
 * config.level. */
const struct engine_command *engine_names_find(const struct engine_call *call,
                                               struct rd_slice name);
const struct engine_command *engine_names_find_path(const struct engine_call *call,
                                                    struct rd_slice path);

const struct engine_command *engine_names_find_sub(const struct engine_call *call,
                                                   const struct engine_command *container,
                                                   struct rd_slice name);

/* Whether it is part of the lists of all commands: config.level has it, and it is not disabled. */
bool engine_names_listed(const struct engine_call *call, const struct engine_command *cmd);

/* The next subcommand of a container to be shown, from i on; NULL: there is none. */
const struct engine_command *engine_names_subcommand(const struct engine_call *call,
                                                     const struct engine_command *container,
                                                     size_t *i);

#endif
