/* redact.h - finds secret arguments: passwords in MONITOR and SLOWLOG.
 *
 *     struct rd_slice shown = redact_is_secret(command, argc, argv, i) ? REDACTED : argv[i];
 *
 * The result depends on the command line alone: AUTH, HELLO … AUTH, ACL SETUSER, MIGRATE … AUTH,
 * and CONFIG SET of a password. Other commands cost a few comparisons.
 */
#ifndef SERVER_SESSION_REDACT_H
#define SERVER_SESSION_REDACT_H

#include "engine/command.h"

#define REDACTED "(redacted)"

/* Returns whether the command line may contain a secret; if not, the arguments need no check. */
bool redact_may_have(const struct engine_command *command);

/* Returns whether argument i is secret. */
bool redact_is_secret(const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv, size_t i);

#endif
