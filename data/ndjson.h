/* ndjson.h - a snapshot as lines of JSON, one object per key.
 *
 *     struct ndjson *lines;
 *     if (!ndjson_new(&lines, sink, NULL, &err))
 *         ...
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT)      // RDB_DETAIL_ELEMENTS
 *         if (!ndjson_put(lines, &ev, &err))
 *             ...
 *     ndjson_free(lines);
 *
 *     {"db":0,"key":"k","type":"set","encoding":"intset","expire_ms":4102444800000,"value":["1"]}
 *
 * The output is streamed: a string of any length is written piece by piece. Data that belongs
 * further back in the line is collected: the names of one hash's fields that have an expiry, and
 * the pending entries (32 bytes each) and consumers of one consumer group. To omit a key, pass none
 * of its events.
 */
#ifndef DATA_NDJSON_H
#define DATA_NDJSON_H

#include "base/err.h"
#include "base/sink.h"
#include "rdb/plain.h"
#include "json/text.h"

struct ndjson_opts {
    enum json_form strings; /* of keys, values, field names, groups, consumers */
    bool meta;              /* also the lines "rdb", "aux", "function", "module_aux", "key_meta" */
};

struct ndjson;

/* The caller keeps the sink. opts may be NULL. */
bool ndjson_new(struct ndjson **ret, struct rd_sink *sink, const struct ndjson_opts *opts,
                struct rd_err *err);

/* Writes the events of a reader, in order. False: out of memory, or the sink failed. */
bool ndjson_put(struct ndjson *lines, const struct rdb_event *ev, struct rd_err *err);

/* Writes strings of rdb_reader_texts() instead of their events. */
bool ndjson_put_texts(struct ndjson *lines, const struct rdb_text *texts, size_t n,
                      struct rd_err *err);

/* Writes keys of rdb_plain_take() instead of their events. All are in database db. */
bool ndjson_put_plain(struct ndjson *lines, uint64_t db, const struct rdb_plain *keys, size_t n,
                      struct rd_err *err);

/* Writes an entry of rdb_plain_entry() instead of its events. */
bool ndjson_put_entry(struct ndjson *lines, struct rdb_stream_id id, const struct rdb_text *texts,
                      size_t n, struct rd_err *err);

/* The slot that applies to the following keys, or RDB_UNKNOWN: a part of a snapshot needs this from
 * outside. ndjson_note() only updates this state and writes nothing. */
uint64_t ndjson_slot(const struct ndjson *lines);
void ndjson_set_slot(struct ndjson *lines, uint64_t slot);
void ndjson_note(struct ndjson *lines, const struct rdb_event *ev);

/* Whether the last value of a module did not have the known form, and is not or not completely
 * decoded. */
bool ndjson_is_opaque(const struct ndjson *lines);

void ndjson_free(struct ndjson *lines);

#endif
