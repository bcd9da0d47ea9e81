/* keeper.h - a private folder with a server in it, of which nothing is left when the tool ends.
 *
 * A second process, the keeper, owns both. When its connection to the tool closes, for any reason
 * (also SIGKILL), it kills the server and removes the folder. If the keeper is killed, the kernel
 * kills the server.
 *
 *     struct keeper keeper;
 *     if (!keeper_begin(&keeper, &err))
 *         ...
 *     ... write files into keeper.folder ...
 *     if (!keeper_start(&keeper, argv, &err))
 *         ...
 *     while (!keeper_ended(&keeper, &status))
 *         ...
 *     keeper_end(&keeper);
 */
#ifndef TOOLS_VERIFY_KEEPER_H
#define TOOLS_VERIFY_KEEPER_H

#include "base/err.h"

#include <sys/types.h>

enum { KEEPER_PATH_MAX = 100, KEEPER_ARGS = 48, KEEPER_ARG_MAX = 512 };

/* The program and its arguments. */
struct keeper_args {
    char args[KEEPER_ARGS][KEEPER_ARG_MAX];
    size_t n;
};

struct keeper {
    char folder[KEEPER_PATH_MAX]; /* in $TMPDIR or /tmp; only the owner may enter it */
    int fd;
    pid_t pid;
};

bool keeper_begin(struct keeper *ret, struct rd_err *err);

/* RD_ERR_LIMIT if an argument is too long. */
bool keeper_add(struct keeper_args *args, const char *text, struct rd_err *err);

/* Starts the server in the folder. Its output goes to the file "log" there. */
bool keeper_start(struct keeper *keeper, const struct keeper_args *args, struct rd_err *err);

/* Whether the server has ended, and its status as of waitpid(). An exit status of 127: it could not
 * be started. */
bool keeper_ended(struct keeper *keeper, int *ret_status);

/* Kills the server, removes the folder, and waits for both. */
void keeper_end(struct keeper *keeper);

#endif
