/* effects.h - the effects of a command, as commands with the same result everywhere and at any
 * time.
 *
 * Effects go to the append-only file and to replicas: SPOP becomes SREM, EXPIRE becomes PEXPIREAT,
 * an expired key a DEL. Most commands are their own effect.
 *
 *     struct engine_effects fx = {0};
 *     engine_apply(e, s, &cmd, &env, &reply, &fx, &err);
 *     for (size_t i = 0; i < fx.n; i++)
 *         ... fx.list[i].db, .argc, .argv ...     // borrowed until the next call that takes fx
 *     engine_effects_done(&fx);
 *
 * Several effects of one command, and those of EXEC, form a transaction: if `transaction`, MULTI
 * and EXEC enclose list[first] to the last. The effects before list[first] are keys evicted to make
 * room. engine_effects_write() writes what is meant for the log, with a SELECT if the database
 * changes.
 */
#ifndef ENGINE_EFFECTS_H
#define ENGINE_EFFECTS_H

#include "base/num.h"
#include "base/resp.h"

struct engine_effect {
    unsigned db;
    size_t argc;
    const struct rd_slice *argv;
    bool not_for_log; /* PUBLISH, and redis.set_repl() of a script */
    bool not_for_replicas;
};

struct engine_effects {
    struct engine_effect *list;
    size_t n;
    size_t first;
    bool transaction;
    bool apart; /* set by a command whose effects are not a transaction: expired keys that SCAN
                 * found */
    bool off;   /* keep nothing: effects are not needed */

    /* Private to effects.c. */
    size_t cap;
    struct engine_chunk *chunks; /* holds argv and copied bytes */
};

/* Empties it; keeps some memory for reuse. */
void engine_effects_reset(struct engine_effects *fx);
void engine_effects_done(struct engine_effects *fx);

/* Appends an effect; the arguments are copied. */
void engine_effects_add(struct engine_effects *fx, unsigned db, size_t argc,
                        const struct rd_slice *argv);

/* Appends an effect whose arguments stay valid as long as fx is read: nothing is copied. */
void engine_effects_borrow(struct engine_effects *fx, unsigned db, size_t argc,
                           const struct rd_slice *argv);

/* Writes the effects as in a log or a replication stream. *db: the database selected there
 * (UINT_MAX: none yet); is updated. */
bool engine_effects_write(const struct engine_effects *fx, struct rd_sink *sink, unsigned *db);

#endif
