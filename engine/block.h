/* block.h - sessions that wait for a key: BLPOP, BZPOPMIN, XREAD BLOCK and similar commands.
 *
 * A command that finds nothing calls engine_block(), and the session is blocked. The caller serves
 * blocked sessions after each command:
 *
 *     while (engine_serve(e, &env, &session, &reply, &fx))
 *         ... answer session with reply; fx is what happened ...
 *     ... fx may still hold something: keys that had expired when they were read ...
 *
 * The caller handles timeouts: at engine_block_deadline() it calls engine_block_cancel(). A blocked
 * session must not be given commands.
 *
 * The order is that of Redis 7.0.15. A key becomes ready when it is stored and did not exist, when
 * an entry is added to a stream, and when a stream is deleted or overwritten or loses a group.
 * Ready keys are served in that order, each once. The sessions that wait for a key are served first
 * come, first served, as long as the key has a value of the type they wait for. Serving can make
 * other keys ready: they follow the earlier ones. A session that reads as a group gets an error if
 * the key is no longer a stream.
 *
 * To serve a session, its command runs again and sees that key only (engine_call.only_key). It
 * gives the reply and the effects of the form that does not block, or calls engine_block() again
 * and keeps its place.
 */
#ifndef ENGINE_BLOCK_H
#define ENGINE_BLOCK_H

#include "engine/engine.h"

/* A session may be ready: call engine_serve(). Constant time. */
bool engine_ready(const struct engine *e);

/* Serves the next session that can be served: first come, first served, keys in the order in which
 * they became ready. False: there is none. *ret_session is then no longer blocked, reply (reset
 * before) has its reply in the protocol that `proto` returns, and fx (reset before) the effects of
 * the form that does not block. If the result is false, fx may hold the deletion of expired
 * keys. */
bool engine_serve(struct engine *e, const struct engine_env *env,
                  struct engine_session **ret_session, struct engine_reply *reply,
                  struct engine_effects *fx);

/* Returns the protocol of a session, for engine_serve(); NULL: 2. */
typedef unsigned (*engine_proto_fn)(void *ctx, const struct engine_session *s);
void engine_block_set_proto(struct engine *e, engine_proto_fn fn, void *ctx);

/* Unix time in microseconds; INT64_MAX: never. For blocked sessions only. */
int64_t engine_block_deadline(const struct engine_session *s);

/* The first key that a blocked session waits for; false: it waits for none. */
bool engine_block_key(const struct engine_session *s, struct rd_slice *ret);

enum engine_unblock {
    ENGINE_TIMEOUT,   /* reply as after a timeout */
    ENGINE_UNBLOCKED, /* CLIENT UNBLOCK ERROR: -UNBLOCKED … */
    ENGINE_GONE       /* the client disconnected: no reply; reply may be NULL */
};

/* Ends the waiting of a blocked session; appends the reply to `reply`. */
void engine_block_cancel(struct engine_session *s, enum engine_unblock why,
                         struct engine_reply *reply);

/* ---- private to engine/ ---- */

struct engine_block_state;
struct engine_call;
struct engine_db;

struct engine_block_state *engine_block_state_new(void);

/* True if no session is blocked. */
void engine_block_state_free(struct engine_block_state *state);

/* A key that sessions may wait for has changed; does nothing if none does. Average constant
 * time. */
void engine_block_signal(struct engine *e, struct engine_db *db, struct rd_slice key);

/* The same for all keys of a database that sessions wait for, after SWAPDB. */
void engine_block_signal_db(struct engine *e, struct engine_db *db);

/* The same when all keys are removed (FLUSHDB); before or after it. */
static inline void engine_block_signal_flush(struct engine *e, struct engine_db *db)
{
    engine_block_signal_db(e, db);
}

/* For a command that has just called engine_block() (engine/call.h): replaces its argument `index`
 * when it runs again. XREAD saves the value of "$" so. Does nothing while the command runs
 * again. */
void engine_block_argument(struct engine_call *call, size_t index, struct rd_slice text);

#endif
