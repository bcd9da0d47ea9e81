/* subcommand.h - maps subcommands to functions, for commands with many of them.
 *
 *     static const struct subcommand subcommands[] = {{"list", list}, {"help", help}};
 *
 *     void server_cmd_module(struct dispatch_call *call)
 *     {
 *         SUBCOMMAND_RUN(call, subcommands);
 *     }
 *
 * The command table has checked the name (argv[1]) and the arity. A subcommand of the table that is
 * missing here is answered with a "not supported" error.
 */
#ifndef SERVER_SESSION_DISPATCH_SUBCOMMAND_H
#define SERVER_SESSION_DISPATCH_SUBCOMMAND_H

#include "server/session/dispatch/dispatch.h"

struct subcommand {
    const char *name; /* lower case, without the container name */
    dispatch_fn run;
};

void subcommand_run(struct dispatch_call *call, const struct subcommand *table, size_t n);

/* Returns the error for a number of arguments that the arity cannot check: "ERR unknown subcommand
 * or wrong number of arguments for …". */
void subcommand_syntax(struct dispatch_call *call);

#define SUBCOMMAND_RUN(call, table) subcommand_run((call), (table), sizeof(table) / sizeof *(table))

#endif
