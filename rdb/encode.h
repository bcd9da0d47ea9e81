/* encode.h - one value, serialized in the encoding that is named.
 *
 * The writer chooses encodings as a server would; here the caller does:
 *
 *     struct rdb_encoder *e;
 *     struct rd_slice head;
 *     rdb_encoder_new(&e, &err);
 *     rdb_encoder_begin(e, rdb_type_get(RDB_TYPE_HASH_ZIPLIST), RDB_NO_EXPIRE, body, &err);
 *     for (...)
 *         rdb_encoder_put(e, &elem, &err);        // ELEM events of the value, in their order
 *     rdb_encoder_end(e, &head, &err);            // the value is `head`, then what is in `body`
 *     rdb_encoder_free(e);
 *
 * The number of elements precedes them and is known last, so it is handed out apart.
 *
 * Lists, sets, sorted sets and hashes that are tables pass through to the body as they come, lists
 * of nodes node by node. A packed encoding is held until its end; one of more than 4 GiB is
 * RD_ERR_UNSUPPORTED. Strings that come in pieces are held where they become part of a packed
 * encoding. Long strings are compressed.
 */
#ifndef RDB_ENCODE_H
#define RDB_ENCODE_H

#include "base/err.h"
#include "base/sink.h"
#include "rdb/event.h"

struct rdb_encoder;

RD_API bool rdb_encoder_new(struct rdb_encoder **ret, struct rd_err *err);

/* Strings, lists, sets, sorted sets and hashes in every encoding; not streams, modules, arrays. */
RD_API bool rdb_encoder_can(const struct rdb_type *type);

/* min_expire_ms: of the fields, for a hash whose expiries are relative to it (HASH_METADATA); also
 * stored by HASH_LISTPACK_EX; else RDB_NO_EXPIRE. The body is borrowed until the end. */
RD_API bool rdb_encoder_begin(struct rdb_encoder *e, const struct rdb_type *type,
                              int64_t min_expire_ms, struct rd_sink *body, struct rd_err *err);

/* RD_ERR_CORRUPT: the encoding cannot hold this element (an intset of words); RD_ERR_USAGE: the
 * event does not belong here. */
RD_API bool rdb_encoder_put(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err);

/* *ret_head lives until the next call. */
RD_API bool rdb_encoder_end(struct rdb_encoder *e, struct rd_slice *ret_head, struct rd_err *err);

/* NULL is allowed. */
RD_API void rdb_encoder_free(struct rdb_encoder *e);

#endif
