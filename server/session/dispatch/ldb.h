/* ldb.h - debugging sessions of scripts: SCRIPT DEBUG, redis-cli --ldb.
 *
 * A session blocks. It therefore runs in a forked process, whose changes are lost at its end and
 * which takes over the connection, or, with SCRIPT DEBUG SYNC, in this process, where other clients
 * wait and the changes remain.
 */
#ifndef SERVER_SESSION_DISPATCH_LDB_H
#define SERVER_SESSION_DISPATCH_LDB_H

#include "server/session/client/client.h"

enum ldb_mode { LDB_OFF, LDB_FORKED, LDB_SYNC };

enum ldb_begun {
    LDB_NONE,    /* run the command as usual, then call ldb_end() */
    LDB_ANSWERED /* the client has its answer, or another process has the client */
};

/* The client, which is in a mode other than LDB_OFF, sends a command. */
enum ldb_begun ldb_begin(struct client *c, const struct engine_command *command,
                         const struct rd_slice *argv);

/* Ends the session, if there is one. Does not return in a forked process. */
void ldb_end(struct client *c);

/* Collects forked processes that have ended; kills all of them. */
void ldb_reap(struct sessions *sessions);
void ldb_kill_all(struct sessions *sessions);

struct ldb_processes *ldb_processes_new(void);
void ldb_processes_free(struct ldb_processes *all);

#endif
