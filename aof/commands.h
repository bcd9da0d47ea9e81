/* commands.h - the names of all commands of Redis and Valkey; private to aof/.
 *
 * A log holds commands that its server knew. A name that no server and no common module knows is a
 * module of one's own, a renamed command (rename-command of redis.conf), or damage.
 */
#ifndef AOF_COMMANDS_H
#define AOF_COMMANDS_H

#include <stdbool.h>

#include "base/slice.h"

/* In any case of letters. Logarithmic in the number of names, which is about 500. */
bool aof_command_known(struct rd_slice name);

/* In the order of their bytes, lower case; for tests. */
size_t aof_command_count(void);
const char *aof_command_name(size_t index);

#endif
