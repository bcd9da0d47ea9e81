/* session.h - the engine's state of one client: its database, transaction and watched keys.
 */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "base/slice.h"
#include "engine/command.h"
#include "engine/engine.h"

/* The source of the commands. */
enum engine_role {
    ENGINE_CLIENT,  /* a client: access removes expired keys */
    ENGINE_LOADING, /* a log being replayed: no expiry, no memory limit */
    ENGINE_MASTER   /* a stream from a master: no expiry, no memory limit */
};

struct engine_queued {
    const struct engine_command *command;
    size_t argc;
    struct rd_slice *argv; /* one block, with the bytes after it */
};

struct engine_watch; /* engine/watch.c */
struct engine_waiter;

struct engine_session {
    struct engine *engine;
    unsigned db;
    enum engine_role role;
    void *ctx;       /* of the caller */
    bool subscribed; /* of the caller: the reply to PING in RESP2 is a message */

    /* MULTI */
    bool in_multi;
    bool in_exec;
    struct engine_debugger *debugger; /* of scripts; NULL: none */
    bool in_script;                   /* the session of the commands of a script; also in_exec */
    bool dirty_exec;                  /* a queued command was refused: EXEC aborts */
    bool dirty_cas;                   /* a watched key was changed: EXEC does nothing */
    struct engine_queued *queue;
    size_t n_queued;
    size_t cap_queued;
    size_t queued_len;   /* bytes of the arguments in it */
    uint64_t queued_any; /* the flags that some queued command has */
    uint64_t queued_all; /* those that all have, if there is one */

    struct engine_watch *watches; /* its list of waiting sessions */
    size_t n_watches;
    struct engine_waiter *waiter; /* not NULL: blocked */
};

void engine_session_init(struct engine_session *s, struct engine *e, enum engine_role role);

/* Drops its transaction, its watched keys and its waiting. */
void engine_session_done(struct engine_session *s);

/* In MULTI: queues a copy of the command. */
void engine_session_queue(struct engine_session *s, const struct engine_command *command,
                          size_t argc, const struct rd_slice *argv);

/* Ends MULTI: drops the queue and the watched keys. */
void engine_session_discard(struct engine_session *s);

#endif
