/* subcommand.h - which function answers which subcommand, for commands with many of them.
 *
 *     static const struct subcommand subcommands[] = {{"list", list}, {"help", help}};
 *
 *     void server_cmd_module(struct dispatch_call *call)
 *     {
 *         SUBCOMMAND_RUN(call, subcommands);
 *     }
 *
 * The name is that of the table of commands, so argv[1] is known to be one of them, and its arity
 * was checked; what is in the table but not here is not supported yet, and that is answered.
 */
#ifndef SERVER_CMD_SUBCOMMAND_H
#define SERVER_CMD_SUBCOMMAND_H

#include "server/core/dispatch.h"

struct subcommand {
    const char *name; /* lower case, without the container's */
    dispatch_fn run;
};

void subcommand_run(struct dispatch_call *call, const struct subcommand *table, size_t n);

/* Too many or few arguments for what arity cannot tell: "ERR unknown subcommand or wrong number of
 * arguments for …". */
void subcommand_syntax(struct dispatch_call *call);

#define SUBCOMMAND_RUN(call, table) subcommand_run((call), (table), sizeof(table) / sizeof *(table))

#endif
