/* commands.h - the names of all commands of Redis and Valkey; private to aof/.
 *
 * A log holds commands that its server knew. If no server and no common module knows a name, it is
 * a command of a private module, a renamed command (rename-command in redis.conf), or damage.
 */
#ifndef AOF_COMMANDS_H
#define AOF_COMMANDS_H

#include <stdbool.h>

#include "base/slice.h"

/* Case is ignored. Logarithmic in the number of names, about 500. */
bool aof_command_known(struct rd_slice name);

/* The same; *ret_min_args is the fewest arguments, with the name, that the command takes in any
 * server, or 0 if it is not known. Servers do not count the arguments of commands in a log: with
 * fewer, most of them crash. */
bool aof_command_look_up(struct rd_slice name, unsigned *ret_min_args);

/* The names in byte order, in lower case; for tests. */
size_t aof_command_count(void);
const char *aof_command_name(size_t index);

#endif
