/* block.h - sessions that wait for a key: BLPOP, BZPOPMIN, XREAD BLOCK and their kin.
 *
 * A command that finds nothing says so with engine_block() and the session is blocked. When a key
 * that somebody waits for gets something, the caller serves them, after each command:
 *
 *     while (engine_serve(e, &env, &session, &reply, &fx))
 *         ... answer session with reply; fx is what happened ...
 *     ... fx may still hold something: keys that were due when it was looked at them ...
 *
 * Timeouts are the caller's: at engine_block_deadline() he calls engine_block_cancel(). A session
 * that is blocked must not be given commands.
 *
 * Who is served is what 7.0.15 does. A key becomes ready when it is stored where there was none,
 * when an entry is added to a stream, and when a stream is deleted or overwritten or loses a group.
 * Ready keys are looked at in that order, each once; of those who wait for one, the first come is
 * served first, as long as the key has something of the type they wait for. Serving may make other
 * keys ready: they follow those that are already. Who waits as a group for a stream that is
 * none any more is told so.
 *
 * To be served is to run the command again, looking at that key alone (engine_call.only_key). It
 * gives the answer and the effects of the form that does not block, or calls engine_block() again
 * and keeps its place.
 */
#ifndef ENGINE_BLOCK_H
#define ENGINE_BLOCK_H

#include "engine/engine.h"

/* Something may have come for somebody who waits: call engine_serve(). Constant time. */
bool engine_ready(const struct engine *e);

/* Serves the next session that can be served, first come first served, keys in the order in which
 * they became ready. False: there is none. *ret_session is then no longer blocked, reply (reset
 * before) is its answer with the protocol that `proto` tells, fx (reset before) the effects: those
 * of the form that does not block. When it is false, fx may hold the end of keys that were due. */
bool engine_serve(struct engine *e, const struct engine_env *env,
                  struct engine_session **ret_session, struct engine_reply *reply,
                  struct engine_effects *fx);

/* Which protocol a session speaks is asked of the caller, for engine_serve(); NULL: 2. */
typedef unsigned (*engine_proto_fn)(void *ctx, const struct engine_session *s);
void engine_block_set_proto(struct engine *e, engine_proto_fn fn, void *ctx);

/* Unix time in microseconds; INT64_MAX: never. Only of blocked sessions. */
int64_t engine_block_deadline(const struct engine_session *s);

enum engine_unblock {
    ENGINE_TIMEOUT,   /* answer as the command does when its time is over */
    ENGINE_UNBLOCKED, /* CLIENT UNBLOCK ERROR: -UNBLOCKED … */
    ENGINE_GONE       /* the client went away: no answer; reply may be NULL */
};

/* Ends the waiting of a blocked session; the answer is appended to reply. */
void engine_block_cancel(struct engine_session *s, enum engine_unblock why,
                         struct engine_reply *reply);

/* ---- private to engine/ ---- */

struct engine_block_state;
struct engine_call;
struct engine_db;

struct engine_block_state *engine_block_state_new(void);

/* No session waits any more. */
void engine_block_state_free(struct engine_block_state *state);

/* Something happened to a key that sessions may wait for; nothing, if none does. Average constant
 * time. */
void engine_block_signal(struct engine *e, struct engine_db *db, struct rd_slice key);

/* The same for all keys of a database that somebody waits for: its keys were exchanged (SWAPDB). */
void engine_block_signal_db(struct engine *e, struct engine_db *db);

/* The same when its keys are removed (FLUSHDB); before or after it. */
static inline void engine_block_signal_flush(struct engine *e, struct engine_db *db)
{
    engine_block_signal_db(e, db);
}

/* For a command that has just called engine_block() (engine/call.h): when it is run again its
 * argument `index` is this text. XREAD says so what "$" was. Nothing while it is run again. */
void engine_block_argument(struct engine_call *call, size_t index, struct rd_slice text);

#endif
