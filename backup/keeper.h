/* keeper.h - a private folder with a server in it, of which nothing is left when the tool ends.
 *
 * A second process, the keeper, owns both. When its connection to the tool closes, for any reason
 * (also SIGKILL), it kills the server and removes the folder. If the keeper is killed, the kernel
 * kills the server.
 *
 *     struct backup_keeper keeper;
 *     if (!backup_keeper_begin(&keeper, &err))
 *         ...
 *     ... write files into keeper.folder ...
 *     if (!backup_keeper_start(&keeper, argv, &err))
 *         ...
 *     while (!backup_keeper_ended(&keeper, &status))
 *         ...
 *     backup_keeper_end(&keeper);
 */
#ifndef BACKUP_KEEPER_H
#define BACKUP_KEEPER_H

#include "base/err.h"

#include <sys/types.h>

enum { BACKUP_KEEPER_PATH = 100, BACKUP_KEEPER_ARGS = 48, BACKUP_KEEPER_ARG = 512 };

/* The program and its arguments. */
struct backup_keeper_args {
    char args[BACKUP_KEEPER_ARGS][BACKUP_KEEPER_ARG];
    size_t n;
};

struct backup_keeper {
    char folder[BACKUP_KEEPER_PATH]; /* in $TMPDIR or /tmp; only the owner may enter it */
    int fd;
    pid_t pid;
};

bool backup_keeper_begin(struct backup_keeper *ret, struct rd_err *err);

/* RD_ERR_LIMIT if an argument is too long. */
bool backup_keeper_add(struct backup_keeper_args *args, const char *text, struct rd_err *err);

/* Starts the server in the folder. Its output goes to the file "log" there. */
bool backup_keeper_start(struct backup_keeper *keeper, const struct backup_keeper_args *args,
                         struct rd_err *err);

/* Whether the server has ended, and its status as of waitpid(). An exit status of 127: it could not
 * be started. */
bool backup_keeper_ended(struct backup_keeper *keeper, int *ret_status);

/* Kills the server, removes the folder, and waits for both. */
void backup_keeper_end(struct backup_keeper *keeper);

#endif
