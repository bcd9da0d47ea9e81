/* dispatch.h - one command: may it run, who runs it, who has to know.
 *
 * The order of the refusals is that of processCommand() in 7.0, since clients and tests see it:
 * unknown command, arity, authentication, permissions, memory, disk errors, the pub/sub mode of
 * RESP2, loading, CLIENT PAUSE; inside MULTI a refusal makes EXEC abort.
 *
 *     dispatch.c           refusals and running
 *     dispatch_names.c     which command a word means, and who handles it
 *     dispatch_answer.c    what handlers answer alike
 */
#ifndef SERVER_CORE_DISPATCH_H
#define SERVER_CORE_DISPATCH_H

#include "server/client/client.h"

enum dispatch_status {
    DISPATCH_DONE,   /* answered, or blocked */
    DISPATCH_LATER,  /* CLIENT PAUSE: run the same command again later */
    DISPATCH_CLOSED, /* the client is to be closed: run no more of its input */
};

enum dispatch_status dispatch(struct client *c, size_t argc, const struct rd_slice *argv);

/* A command of the server itself; answers into reply. fx is for what has to be propagated (FLUSH
 * …); dispatch hands it on. */
struct dispatch_call {
    struct server *srv;
    struct client *c;
    const struct engine_command *command;
    size_t argc;
    const struct rd_slice *argv;
    struct engine_reply *reply; /* of the client, or EXEC's */
    struct engine_effects *fx;
    bool in_exec; /* blocking is not allowed */
};

typedef void (*dispatch_fn)(struct dispatch_call *call);

/* The handler of a command, or NULL. Made from server/cmd/commands.h. */
dispatch_fn dispatch_handler(const struct engine_command *command);

/* rename-command: the name by which a command is called ("": it is not). False: there is no such
 * command, or the new name is taken. */
bool dispatch_rename(struct rd_slice from, struct rd_slice to);

/* The command, or the container of subcommands, that a client calls by this name, as renamed; and
 * with its subcommand. NULL: there is none. */
const struct engine_command *dispatch_find_name(struct rd_slice name);
const struct engine_command *dispatch_find(const struct rd_slice *argv, size_t argc);

/* How EXEC reaches handlers. */
void dispatch_hooks(struct server *srv, struct engine_hooks *hooks);

/* ---- for handlers ---- */

/* "ERR syntax error" and other usual answers. */
void dispatch_syntax(struct dispatch_call *call);
void dispatch_wrong_arity(struct dispatch_call *call);
/* "ERR unknown subcommand '%.128s'. Try %s HELP." */
void dispatch_unknown_subcommand(struct dispatch_call *call);
/* The frame of HELP answers around these lines (NULL ends them). */
void dispatch_help(struct dispatch_call *call, const char *const *lines);
bool dispatch_arg_is(struct rd_slice arg, const char *word); /* without case */
/* "ERR value is not an integer or out of range", or `error` if not NULL. */
bool dispatch_arg_i64(struct dispatch_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error);

#endif
