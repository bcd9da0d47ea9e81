/* effects.h - what a command did, as commands that do the same anywhere and at any time.
 *
 * This is what goes to the append-only file and to replicas: SPOP becomes SREM, EXPIRE becomes
 * PEXPIREAT, an expired key a DEL. Most commands are their own effect.
 *
 *     struct engine_effects fx = {0};
 *     engine_apply(e, s, &cmd, &env, &reply, &fx, &err);
 *     for (size_t i = 0; i < fx.n; i++)
 *         ... fx.list[i].db, .argc, .argv ...     // borrowed until the next call that takes fx
 *     engine_effects_done(&fx);
 *
 * Several effects of one command, and those of EXEC, are one transaction: MULTI and EXEC belong
 * around list[first] to the last, if `transaction`. What stands before them are keys that were
 * evicted to make room. engine_effects_write() puts all of it, with SELECT where the database
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
};

struct engine_effects {
    struct engine_effect *list;
    size_t n;
    size_t first;
    bool transaction;
    bool apart; /* set by a command whose effects are no transaction: keys that SCAN found due */
    bool off;   /* keep nothing: nobody asks */

    /* Private to effects.c. */
    size_t cap;
    struct engine_chunk *chunks; /* where argv and copied bytes lie */
};

/* Empties it; keeps some memory for the next. */
void engine_effects_reset(struct engine_effects *fx);
void engine_effects_done(struct engine_effects *fx);

/* Appends one; the arguments are copied. */
void engine_effects_add(struct engine_effects *fx, unsigned db, size_t argc,
                        const struct rd_slice *argv);

/* Appends one whose arguments live at least as long as fx is read: nothing is copied. */
void engine_effects_borrow(struct engine_effects *fx, unsigned db, size_t argc,
                           const struct rd_slice *argv);

/* As a log or a replication stream has them. *db: the database selected there (UINT_MAX: none yet);
 * follows. */
bool engine_effects_write(const struct engine_effects *fx, struct rd_sink *sink, unsigned *db);

#endif
