/* dispatch.h - runs one command: asks engine/admit.h whether it may run, calls its handler and
 * propagates its effects.
 *
 *     dispatch.c           the state of the server for engine_admit(), and running
 *     dispatch_names.c     maps words to commands and their handlers
 *     dispatch_answer.c    common replies
 */
#ifndef SERVER_SESSION_DISPATCH_DISPATCH_H
#define SERVER_SESSION_DISPATCH_DISPATCH_H

#include "server/session/client/client.h"

enum { DISPATCH_WHY = 512 }; /* bytes of a reason */

enum dispatch_status {
    DISPATCH_DONE,   /* replied, or blocked */
    DISPATCH_LATER,  /* CLIENT PAUSE: run the same command again later */
    DISPATCH_CLOSED, /* the client will be closed: run no more of its input */
};

enum dispatch_status dispatch(struct client *c, size_t argc, const struct rd_slice *argv);

enum dispatch_applied {
    DISPATCH_APPLIED,
    DISPATCH_UNKNOWN,      /* no such command is known here; nothing was done */
    DISPATCH_UNKNOWN_FORM, /* the command is known, but not these arguments */
    DISPATCH_DIVERGED      /* it failed because of the data, which the master's does not equal */
};

/* Runs a command of the stream of this server's master, whatever the settings are. `newer`: the
 * master may have commands and forms of commands that Redis 7.0 does not have. With anything but
 * DISPATCH_APPLIED, *why is the error. Of a transaction, other commands may have run. */
enum dispatch_applied dispatch_from_master(struct client *c, bool newer, size_t argc,
                                           const struct rd_slice *argv, char why[DISPATCH_WHY]);

/* The call of a command of the server itself. The reply goes to reply. fx receives effects to
 * propagate (FLUSH …); dispatch forwards them. */
struct dispatch_call {
    struct sessions *sessions;
    struct client *c;
    const struct engine_command *command;
    size_t argc;
    const struct rd_slice *argv;
    struct engine_reply *reply; /* reply of the client, or of EXEC */
    struct engine_effects *fx;
    bool in_exec; /* the command must not block */
};

typedef void (*dispatch_fn)(struct dispatch_call *call);

/* Declares a handler. Stack traces of crashes and of the watchdog show names that programs look
 * for, such as debugCommand. */
#define DISPATCH_HANDLER(name)                                                                     \
    void server_cmd_##name(struct dispatch_call *call) __asm__(#name "Command")

/* Handlers by path in the table of commands. A container's handler is that of its subcommands,
 * unless they have their own. */
struct dispatch_row {
    const char *path;
    dispatch_fn fn;
};

struct dispatch_table *dispatch_table_new(void);
void dispatch_table_free(struct dispatch_table *table);
void dispatch_register(struct sessions *sessions, const struct dispatch_row *rows, size_t n);

/* The client and the state of the server, for engine_admit(). */
struct engine_admit dispatch_describe(struct client *c);

/* The handler of a command, or NULL. */
dispatch_fn dispatch_handler(const struct sessions *sessions, const struct engine_command *command);

/* The command or container that has this name for clients, after renaming; and the same with its
 * subcommand. NULL: there is none. */
const struct engine_command *dispatch_find_name(const struct sessions *sessions,
                                                struct rd_slice name);
const struct engine_command *dispatch_find(const struct sessions *sessions,
                                           const struct rd_slice *argv, size_t argc);
/* The same for "NAME" and "NAME|SUBCOMMAND". */
const struct engine_command *dispatch_find_path(const struct sessions *sessions,
                                                struct rd_slice path);
/* False: rename-command has disabled it, or its container. */
bool dispatch_is_callable(const struct sessions *sessions, const struct engine_command *command);

/* Calls the handler of a command for EXEC. */
void dispatch_hooks(struct sessions *sessions, struct engine_hooks *hooks);

/* ---- for handlers ---- */

/* "ERR syntax error" and other common replies. */
void dispatch_syntax(struct dispatch_call *call);
void dispatch_wrong_arity(struct dispatch_call *call);
/* "ERR unknown subcommand '%.128s'. Try %s HELP." */
void dispatch_unknown_subcommand(struct dispatch_call *call);
/* HELP: these lines in the usual frame (NULL ends them). */
void dispatch_help(struct dispatch_call *call, const char *const *lines);
bool dispatch_arg_is(struct rd_slice arg, const char *word); /* case-insensitive */
/* "ERR value is not an integer or out of range", or `error` if not NULL. */
bool dispatch_arg_i64(struct dispatch_call *call, struct rd_slice arg, int64_t min, int64_t max,
                      int64_t *ret, const char *error);

#endif
