/* admit.h - decides whether a command may run. No other code decides this.
 *
 *     struct engine_admit admit = {.who = ENGINE_ADMIT_CLIENT, .state = state_of(client)};
 *     struct engine_refusal refusal;
 *     switch (engine_admit(&admit, &request, &refusal)) {
 *     case ENGINE_ADMIT_RUN:
 *     case ENGINE_ADMIT_QUEUE:
 *         ... engine_apply_admitted() ...
 *     case ENGINE_ADMIT_WAIT:  ... CLIENT PAUSE: ask again later ...
 *     case ENGINE_ADMIT_GONE:  ... a hook closed the client ...
 *     case ENGINE_ADMIT_REFUSE:
 *         engine_refuse(&request, &refusal);
 *     }
 *
 * The caller describes who asks and the state of the server. The order of the checks and the texts
 * are those of Redis 7.0.15, because clients and tests depend on them:
 *
 *     unknown command, arity, protected commands, authentication, commands that MULTI excludes,
 *     permissions, keys of other nodes, memory of clients, arguments that are too long, memory of
 *     the dataset, disk errors, missing replicas, read-only replica, pub/sub in RESP2, stale
 *     replica, loading, a busy script, connections of replicas, CLIENT PAUSE
 *
 * EXEC is checked for what its queue contains, too. A script has rules of its own; see struct
 * engine_admit_script. Commands of a log or a master were accepted once: only the first checks
 * apply.
 */
#ifndef ENGINE_ADMIT_H
#define ENGINE_ADMIT_H

#include "engine/command.h"
#include "engine/session.h"

enum engine_admit_who {
    ENGINE_ADMIT_CLIENT,
    ENGINE_ADMIT_REPLICA, /* a client in the role of a replica or a monitor */
    ENGINE_ADMIT_SCRIPT,  /* redis.call(); `script` is set */
    ENGINE_ADMIT_LOG      /* a log that is replayed, or the stream of a master */
};

/* What limits the commands now. Zero is the common case and the fastest. */
enum engine_admit_state {
    ENGINE_ADMIT_UNAUTHENTICATED = 1 << 0,
    ENGINE_ADMIT_RESTRICTED = 1 << 1,       /* the user lacks permissions: ask hooks->permit */
    ENGINE_ADMIT_CLIENTS_LIMITED = 1 << 2,  /* ask hooks->still_open */
    ENGINE_ADMIT_MEMORY_LIMITED = 1 << 3,   /* ask hooks->make_room */
    ENGINE_ADMIT_DISK_ERROR = 1 << 4,       /* `disk_error` is the reason */
    ENGINE_ADMIT_LACKS_REPLICAS = 1 << 5,   /* fewer than min-replicas-to-write */
    ENGINE_ADMIT_READONLY_REPLICA = 1 << 6, /* replica-read-only */
    ENGINE_ADMIT_SUBSCRIBED = 1 << 7,       /* in the pub/sub mode of RESP2 */
    ENGINE_ADMIT_STALE = 1 << 8, /* no link to the master, and replica-serve-stale-data no */
    ENGINE_ADMIT_LOADING = 1 << 9,
    ENGINE_ADMIT_ASYNC_LOADING = 1 << 10,
    ENGINE_ADMIT_BUSY_SCRIPT = 1 << 11, /* EVAL runs for too long */
    ENGINE_ADMIT_BUSY_FUNCTION = 1 << 12,
    ENGINE_ADMIT_PAUSED = 1 << 13, /* CLIENT PAUSE ALL */
    ENGINE_ADMIT_PAUSED_WRITES = 1 << 14,
    ENGINE_ADMIT_SENTINEL = 1 << 15, /* a Sentinel, which knows few commands */
    ENGINE_ADMIT_CLUSTER = 1 << 16   /* a node of a cluster: ask hooks->route */
};

/* What the user of a client lacks. */
enum engine_permit {
    ENGINE_PERMIT_OK,
    ENGINE_PERMIT_NO_COMMAND,
    ENGINE_PERMIT_NO_KEY,
    ENGINE_PERMIT_NO_CHANNEL
};

struct engine_admit_script;
struct engine_refusal;

/* Questions that are asked only if they matter. A hook is called only with its bit of the state;
 * find and protected may be NULL. */
struct engine_admit_hooks {
    /* The command of a name, if names were changed (rename-command); NULL: the table's. */
    const struct engine_command *(*find)(void *ctx, struct rd_slice name);
    /* Whether this client may use DEBUG, or MODULE LOAD (ENGINE_CMD_PROTECTED); NULL: it may. */
    bool (*protected)(void *ctx, const struct engine_command *command);
    /* Also records what was denied (ACL LOG). */
    enum engine_permit (*permit)(void *ctx, const struct engine_request *request);
    /* Whether this node has the keys of the command, or of the queue of EXEC. False: *ret is set.
     * script NULL: a client sent it. */
    bool (*route)(void *ctx, const struct engine_admit_script *script,
                  const struct engine_request *request, struct engine_refusal *ret);
    /* Disconnects clients that use too much memory. False: this one, too. */
    bool (*still_open)(void *ctx);
    /* Evicts keys. Whether the dataset is within its limit after that. */
    bool (*make_room)(void *ctx);
};

/* A script that calls commands. */
struct engine_admit_script {
    bool read_only;     /* EVAL_RO, or the flag no-writes */
    bool allow_oom;     /* the flag allow-oom */
    bool out_of_memory; /* the limit was reached when the script began */
    bool obeyed;        /* it runs for a log or a master */
    bool cross_slots;   /* it may use keys of several hash slots */
    bool all_commands;  /* also those that are not for scripts: DEBUG */
    bool wrote;         /* it called a write command: the limits do not stop it halfway. The caller
                           sets it after a write command was admitted */
};

struct engine_admit {
    enum engine_admit_who who;
    uint32_t state;         /* enum engine_admit_state */
    bool later_versions;    /* allow commands that Redis 7.0.15 and config.level do not have */
    const char *disk_error; /* with its code: "MISCONF …" */
    const struct engine_admit_script *script;
    const struct engine_admit_hooks *hooks; /* NULL if no bit needs one */
    void *ctx;                              /* for the hooks */
};

enum engine_admit_answer {
    ENGINE_ADMIT_RUN,
    ENGINE_ADMIT_QUEUE, /* the session is in MULTI */
    ENGINE_ADMIT_WAIT,
    ENGINE_ADMIT_GONE,
    ENGINE_ADMIT_REFUSE
};

enum engine_refused {
    ENGINE_REFUSED_UNKNOWN, /* command or subcommand; no command is known */
    ENGINE_REFUSED_ARITY,
    ENGINE_REFUSED_PROTECTED,
    ENGINE_REFUSED_NOAUTH,
    ENGINE_REFUSED_IN_MULTI,
    ENGINE_REFUSED_NOPERM,
    ENGINE_REFUSED_ROUTE, /* by hooks->route */
    ENGINE_REFUSED_TOO_LONG,
    ENGINE_REFUSED_OOM,
    ENGINE_REFUSED_DISK,
    ENGINE_REFUSED_NO_REPLICAS,
    ENGINE_REFUSED_READONLY,
    ENGINE_REFUSED_SUBSCRIBED,
    ENGINE_REFUSED_STALE,
    ENGINE_REFUSED_LOADING,
    ENGINE_REFUSED_BUSY,
    ENGINE_REFUSED_REPLICA,
    ENGINE_REFUSED_IN_SCRIPT,       /* not allowed in scripts */
    ENGINE_REFUSED_READONLY_SCRIPT, /* a write in a script that must not write */
};

enum { ENGINE_REFUSAL_MAX = 512 };

struct engine_refusal {
    enum engine_refused why;
    const char *text;              /* the error with its code: "ERR unknown command …" */
    char line[ENGINE_REFUSAL_MAX]; /* may hold the text */
};

/* The error of a replica that must not serve old data. */
extern const char engine_refused_stale[];

/* Whether a command may run; *ret is set with ENGINE_ADMIT_REFUSE only. The command is the result
 * of engine_command_resolve(), after renaming; NULL: it is unknown. The reply and the effects of
 * the request are not used. The hooks are called in the order of the checks. */
enum engine_admit_answer engine_admit(const struct engine_admit *admit,
                                      const struct engine_request *request,
                                      struct engine_refusal *ret);

/* Replies with the error. A transaction fails: EXEC aborts it now, any other command lets EXEC
 * abort later. */
void engine_refuse(const struct engine_request *request, const struct engine_refusal *refusal);

#endif
