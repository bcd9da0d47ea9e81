/* redact.h - arguments that nobody else should read: passwords in MONITOR and SLOWLOG.
 *
 *     struct rd_slice shown = redact_is_secret(command, argc, argv, i) ? REDACTED : argv[i];
 *
 * It depends on the command line alone: AUTH, HELLO … AUTH, ACL SETUSER, MIGRATE … AUTH, CONFIG SET
 * of what is a password. A few comparisons for other commands.
 */
#ifndef SERVER_OBSERVE_REDACT_H
#define SERVER_OBSERVE_REDACT_H

#include "engine/command.h"

#define REDACTED "(redacted)"

/* The command line may have a secret at all: else nothing need be asked. */
bool redact_may_have(const struct engine_command *command);

/* Argument i is one. */
bool redact_is_secret(const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv, size_t i);

#endif
