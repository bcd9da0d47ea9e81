/* stream_impl.h - what the files of the stream commands share; private to engine/cmd/stream*.c.
 *
 * Reading as a group, and what a consumer takes over, changes a stream's groups alone: that counts
 * as a change for the log (call->dirty), and is none for those who watch the key.
 */
#ifndef ENGINE_CMD_STREAM_IMPL_H
#define ENGINE_CMD_STREAM_IMPL_H

#include "engine/call.h"
#include "engine/value/stream.h"

/* ---- arguments ---- */

/* "ms-seq", or "ms" with the given seq. strict: "-" and "+" are none. ret_has_seq (may be NULL):
 * "ms-*" is allowed, and false then. Numbers are read as strtoull does. */
bool engine_stream_parse_id(struct rd_slice arg, uint64_t missing_seq, bool strict,
                            struct rdb_stream_id *ret, bool *ret_has_seq);

/* Each answers its error and returns false. */
bool engine_stream_arg_id(struct engine_call *call, struct rd_slice arg, struct rdb_stream_id *ret);

/* Ends of an interval: "-", "+", "(" before an id leaves it out. */
bool engine_stream_arg_start(struct engine_call *call, struct rd_slice arg,
                             struct rdb_stream_id *ret);
bool engine_stream_arg_end(struct engine_call *call, struct rd_slice arg,
                           struct rdb_stream_id *ret);

/* Arguments that are all ids, argv[from] and on, as a block to be freed by engine_scratch_free().
 * NULL: an error was answered. */
struct rdb_stream_id *engine_stream_arg_ids(struct engine_call *call, size_t from);

/* As an argument of a text: what servers print of it ends at its first byte that is 0. */
int engine_stream_shown(struct rd_slice arg);

/* "NOGROUP No such key … or consumer group …". */
void engine_stream_reply_no_group(struct engine_call *call, struct rd_slice key,
                                  struct rd_slice group);

/* ---- answers ---- */

void engine_stream_reply_id(struct engine_call *call, struct rdb_stream_id id);

/* The entry where the iterator stands. */
void engine_stream_reply_entry(struct engine_call *call, struct engine_stream_iter *it);

/* An array of the entries between two ids; count 0: all. */
void engine_stream_reply_range(struct engine_call *call, const struct engine_stream *stream,
                               struct rdb_stream_id start, struct rdb_stream_id end, uint64_t count,
                               bool reverse);

/* One entry, not in an array; false: there is none, and no answer. */
bool engine_stream_reply_one(struct engine_call *call, const struct engine_stream *stream,
                             struct rdb_stream_id id);

/* ---- groups ---- */

/* The consumer, seen now; one that is not there is made, and its event given. */
struct engine_stream_consumer *engine_stream_consumer_seen(struct engine_call *call,
                                                           struct engine_stream_group *group,
                                                           struct rd_slice key,
                                                           struct rd_slice name, bool *ret_is_new);

/* What a log gets: that an entry is pending as it is now (or was, before it is struck), how far the
 * group has read, and that a consumer was made. */
void engine_stream_claim_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group, struct rd_slice id,
                                const struct engine_stream_pending *pending);
void engine_stream_group_effect(struct engine_call *call, struct rd_slice key,
                                const struct engine_stream_group *group);
void engine_stream_consumer_effect(struct engine_call *call, struct rd_slice key,
                                   const struct engine_stream_group *group, struct rd_slice name);

#endif
