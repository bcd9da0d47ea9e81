/* sessions.h - everyone who sends commands, and the data set that they use.
 *
 * The parts have headers of their own: client/client.h, acl/acl.h, tracking/tracking.h, pubsub.h,
 * dispatch/dispatch.h, slowlog.h.
 *
 * What is durable is not known here: struct session_hooks is what the layers above do when a
 * command has changed something, when a replica is among the clients, and when memory is short.
 */
#ifndef SERVER_SESSION_SESSIONS_H
#define SERVER_SESSION_SESSIONS_H

#include <sys/types.h>

#include "base/slice.h"
#include "engine/block.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "server/loop/loop.h"

struct acl;
struct client;
struct clients;
struct dispatch_table;
struct engine_admit_script;
struct engine_command;
struct engine_refusal;
struct durable;
struct ldb_processes;
struct monitors;
struct rdb_type;
struct pubsub;
struct sessions;
struct slowlog;
struct tracking;

enum sessions_state {
    SESSIONS_LOADING,
    SESSIONS_RUNNING,
    SESSIONS_STOPPING /* SHUTDOWN is waiting */
};

/* All are set before the first client. */
struct session_hooks {
    /* Effects of commands, expiry and eviction go to the log and to replicas. */
    void (*propagate)(struct durable *durable, const struct engine_effects *fx);
    /* NULL, or the reason why writes are refused now: "MISCONF …". */
    const char *(*refusal)(const struct durable *durable);
    /* Limits on commands because of the role: bits of enum engine_admit_state. */
    uint32_t (*limits)(const struct durable *durable);
    /* A command of the master failed here: logs what may show the cause. */
    void (*diverged)(const struct durable *durable);
    /* Before a reply is sent that may acknowledge a change. */
    void (*make_durable)(struct durable *durable);

    /* The engine refuses a payload of RESTORE: logs the reason. */
    void (*payload_refused)(const struct rdb_type *type, const struct rd_err *err);

    /* Clients that are replicas (client.replica); each does nothing for others. */
    uint64_t (*stream_pending)(const struct client *c); /* bytes that were not sent yet */
    bool (*stream_unsent)(const struct client *c);
    bool (*stream_send)(struct client *c);   /* false: the connection is broken */
    void (*replica_heard)(struct client *c); /* an empty line came from it */
    void (*replica_gone)(struct client *c);  /* it is about to be freed */

    /* WAIT: the number of replicas that have the client's writes; the client no longer waits. */
    int64_t (*acked)(const struct client *c);
    void (*acks_ended)(struct client *c);

    /* As engine_admit_hooks.route, for a node of a cluster; NULL: it is none. */
    bool (*route)(struct client *c, const struct engine_admit_script *script,
                  const struct engine_request *request, struct engine_refusal *ret);

    /* Evicts keys until the data set is within maxmemory; false: that is not possible. */
    bool (*make_room)(struct sessions *sessions);
    /* One turn of the server, for a command that runs the loop. */
    void (*turn)(struct sessions *sessions);
};

struct sessions {
    struct loop *loop;
    struct engine *engine;
    uint64_t table_seed; /* hash seed of all tables with names from clients */
    enum sessions_state state;
    bool loading;       /* the data set is being replaced … */
    bool async_loading; /* … and the old one is served meanwhile */

    struct clients *clients;
    struct acl *acl;
    struct pubsub *pubsub;
    struct tracking *tracking;
    struct slowlog *slowlog;
    struct monitors *monitors;
    struct dispatch_table *dispatch;
    struct engine_listener listener; /* dispatch.c: commands of EXEC and of scripts */
    struct ldb_processes *debuggers;
    uint64_t lazyfree_pending; /* removed keys that are not freed yet */

    struct engine_effects fx; /* time of the current command */
    struct client *current;   /* client of the current command; NULL: none */
    int64_t command_began_us; /* mono_us at the start of the current command */
    bool memory_short;        /* before the command that runs now */
    char unknown_form[200];   /* the first error in EXEC that is not due to the data; or empty */
    bool script_is_slow;      /* script.h */
    bool slow_is_eval;
    int64_t script_turn_us; /* mono_us after the last turn during a slow script */
    int64_t browser_logged_us;

    uint64_t flush_sleep_us; /* DEBUG */

    /* ---- set by the layers above ---- */
    struct session_hooks hooks;
    struct durable *durable;       /* for the hooks */
    const uint64_t *stream_offset; /* of the stream to replicas, after the last command */
};

/* Random numbers of the system. */
uint64_t sessions_seed(void);

/* Creates everything but the hooks. The loop exists. */
void sessions_init(struct sessions *sessions, struct loop *loop);

/* Frees the data set and all else. The clients were freed, and no background job is left. */
void sessions_free(struct sessions *sessions);

static inline struct engine_env session_env(const struct sessions *sessions)
{
    return (struct engine_env){.now_us = sessions->loop->now_us};
}

/* Propagates the effects of commands (also of expiry and eviction) to the log and to replicas. Call
 * it after every function that received fx. */
static inline void sessions_propagate(struct sessions *sessions, const struct engine_effects *fx)
{
    if (fx->n > 0)
        sessions->hooks.propagate(sessions->durable, fx);
}

/* For work that takes long, such as a script: handles the events so far, and sends replies. Does
 * nothing in a callback of the loop. */
void sessions_turn_meanwhile(struct sessions *sessions);

#endif
