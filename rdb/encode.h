/* encode.h - serializes one value in a given encoding.
 *
 * The writer (rdb/writer.h) chooses encodings as a server would; here the caller chooses:
 *
 *     struct rdb_encoder *e;
 *     struct rd_slice head;
 *     rdb_encoder_new(&e, &err);
 *     rdb_encoder_begin(e, rdb_type_get(RDB_TYPE_HASH_ZIPLIST), RDB_NO_EXPIRE, body, &err);
 *     for (...)
 *         rdb_encoder_put(e, &elem, &err);        // ELEM events of the value, in order
 *     rdb_encoder_end(e, &head, &err);            // the value is `head`, then the bytes in `body`
 *     rdb_encoder_free(e);
 *
 * The head holds the number of elements. It precedes them but is known last, so it is returned
 * separately.
 *
 * The elements of table encodings (lists, sets, sorted sets, hashes) are written to the body at
 * once, and quicklists node by node. A packed encoding is kept in memory until its end; more than 4
 * GiB is RD_ERR_UNSUPPORTED. Strings in pieces are collected if they become part of a packed
 * encoding. Long strings are compressed.
 */
#ifndef RDB_ENCODE_H
#define RDB_ENCODE_H

#include "base/err.h"
#include "base/sink.h"
#include "rdb/event.h"

struct rdb_encoder;

bool rdb_encoder_new(struct rdb_encoder **ret, struct rd_err *err);

/* Whether the type is supported: strings, lists, sets, sorted sets and hashes in every encoding,
 * but not streams, modules or arrays. */
bool rdb_encoder_can(const struct rdb_type *type);

/* min_expire_ms: the minimum expiry of the fields, for HASH_METADATA, whose expiries are relative
 * to it, and for HASH_LISTPACK_EX, which stores it; else RDB_NO_EXPIRE. The body is borrowed until
 * the end. */
bool rdb_encoder_begin(struct rdb_encoder *e, const struct rdb_type *type, int64_t min_expire_ms,
                       struct rd_sink *body, struct rd_err *err);

/* RD_ERR_CORRUPT: the encoding cannot hold this element (text in an intset); RD_ERR_USAGE: the
 * event does not belong here. */
bool rdb_encoder_put(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err);

/* *ret_head lives until the next call. */
bool rdb_encoder_end(struct rdb_encoder *e, struct rd_slice *ret_head, struct rd_err *err);

/* NULL is allowed. */
void rdb_encoder_free(struct rdb_encoder *e);

#endif
