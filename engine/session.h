/* session.h - what the engine knows about one client: its database, transaction and watched keys.
 */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "base/slice.h"
#include "engine/command.h"
#include "engine/engine.h"

/* Who speaks. */
enum engine_role {
    ENGINE_CLIENT,  /* somebody: keys that are due expire when he touches them */
    ENGINE_LOADING, /* a log that is replayed: nothing expires, no limit of memory */
    ENGINE_MASTER   /* a master's stream: nothing expires, no limit of memory */
};

struct engine_queued {
    const struct engine_command *command;
    size_t argc;
    struct rd_slice *argv; /* one block with the bytes after it */
};

struct engine_watch; /* engine/watch.c */
struct engine_waiter;

struct engine_session {
    struct engine *engine;
    unsigned db;
    enum engine_role role;
    void *ctx;       /* the caller's */
    bool subscribed; /* the caller's: PING of RESP2 is answered as a message */

    /* MULTI */
    bool in_multi;
    bool in_exec;
    bool dirty_exec; /* a queued command was refused: EXEC aborts */
    bool dirty_cas;  /* a watched key was changed: EXEC does nothing */
    struct engine_queued *queue;
    size_t n_queued;
    size_t cap_queued;
    size_t queued_len; /* bytes of the arguments in it */

    struct engine_watch *watches; /* its list */
    size_t n_watches;
    struct engine_waiter *waiter; /* not NULL: blocked */
};

void engine_session_init(struct engine_session *s, struct engine *e, enum engine_role role);

/* Forgets its transaction, its watched keys and what it waits for. */
void engine_session_done(struct engine_session *s);

/* After MULTI: remembers a copy of the command. */
void engine_session_queue(struct engine_session *s, const struct engine_command *command,
                          size_t argc, const struct rd_slice *argv);

/* Leaves MULTI: forgets what is queued, and the watched keys. */
void engine_session_discard(struct engine_session *s);

#endif
