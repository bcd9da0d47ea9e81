/* stream_impl.h - shared by engine/cmd/stream*.c.
 *
 * Reading as a group, and claiming, change only the groups of a stream: that counts as a change for
 * the log (call->dirty), but not for sessions that watch the key.
 */
#ifndef ENGINE_CMD_STREAM_IMPL_H
#define ENGINE_CMD_STREAM_IMPL_H

#include "engine/call.h"
#include "engine/value/stream.h"

/* ---- arguments ---- */

/* "ms-seq", or "ms" with the given seq. strict: "-" and "+" are invalid. ret_has_seq (may be NULL):
 * "ms-*" is allowed and sets it to false. Numbers are parsed like strtoull(). */
bool engine_stream_parse_id(struct rd_slice arg, uint64_t missing_seq, bool strict,
                            struct rdb_stream_id *ret, bool *ret_has_seq);

/* Each replies with its error and returns false. */
bool engine_stream_arg_id(struct engine_call *call, struct rd_slice arg, struct rdb_stream_id *ret);

/* Ends of an interval: "-", "+"; a leading "(" excludes the ID. */
bool engine_stream_arg_start(struct engine_call *call, struct rd_slice arg,
                             struct rdb_stream_id *ret);
bool engine_stream_arg_end(struct engine_call *call, struct rd_slice arg,
                           struct rdb_stream_id *ret);

/* KEEPREF, DELREF or ACKED; false: another word. */
bool engine_stream_arg_refs(struct rd_slice arg, enum engine_stream_refs *ret);

/* Arguments from argv[from] on, which are all IDs, as a block for engine_scratch_free(). NULL: an
 * error was replied. */
struct rdb_stream_id *engine_stream_arg_ids(struct engine_call *call, size_t from);

/* An argument for a message: servers print it up to its first NUL byte. */
int engine_stream_shown(struct rd_slice arg);

/* "NOGROUP No such key … or consumer group …". */
void engine_stream_reply_no_group(struct engine_call *call, struct rd_slice key,
                                  struct rd_slice group);

/* ---- answers ---- */

void engine_stream_reply_id(struct engine_call *call, struct rdb_stream_id id);

/* The entry at the iterator. */
void engine_stream_reply_entry(struct engine_call *call, struct engine_stream_iter *it);

/* An array of the entries between two IDs; count 0: all. */
void engine_stream_reply_range(struct engine_call *call, const struct engine_stream *stream,
                               struct rdb_stream_id start, struct rdb_stream_id end, uint64_t count,
                               bool reverse);

/* One entry, not in an array; false: not found, and nothing was replied. */
bool engine_stream_reply_one(struct engine_call *call, const struct engine_stream *stream,
                             struct rdb_stream_id id);

/* ---- entries ---- */

/* What the stream remembers of its producers; snapshots look for it from now on. */
struct engine_stream_idmp *engine_stream_idmp_of(struct engine_call *call,
                                                 struct engine_stream *stream);

/* Removes entries, and updates the first ID and that of the last deletion. ids[i] becomes zeros if
 * the entry does not exist. Returns how many were removed. */
uint64_t engine_stream_remove(struct engine_stream *stream, size_t n, struct rdb_stream_id *ids);

/* ---- groups ---- */

/* The consumer, with its seen time updated. Creates a missing one, with its event. */
struct engine_stream_consumer *engine_stream_consumer_seen(struct engine_call *call,
                                                           struct engine_stream_group *group,
                                                           struct rd_slice key,
                                                           struct rd_slice name, bool *ret_is_new);

/* Effects for the log: the present (or previous) state of a pending entry, the last ID that the
 * group has read, and a new consumer. */
void engine_stream_claim_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group, struct rd_slice id,
                                const struct engine_stream_pending *pending);
void engine_stream_group_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group);
void engine_stream_consumer_effect(struct engine_call *call, struct rd_slice key,
                                   const struct engine_stream_group *group, struct rd_slice name);

#endif
