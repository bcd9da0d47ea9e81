/* ndjson_read.h - reads a snapshot from lines of JSON as ndjson.h writes them.
 *
 *     struct ndjson_reader *r;
 *     ndjson_reader_new(&r, src, NULL, &err);
 *     while ((st = ndjson_reader_next(r, &ev)) == NDJSON_EVENT)
 *         if (ev.kind == RDB_KEY)
 *             ... the value, serialized as ev.key.type: ndjson_reader_value(r) ...
 *     if (st == NDJSON_FAIL)
 *         ... ndjson_reader_err(r) ...
 *
 * Returns HEADER, then AUX, FUNCTION, DB, SLOT and KEY events. The members of an object may be in
 * any order, except that `value` must follow `type` and `encoding`. Without `encoding` the value is
 * a table, and a writer may choose another encoding. Unknown names, values of the wrong kind, and
 * data without a JSON form (values of modules, metadata of keys) are errors.
 *
 * A line is never in memory as a whole: elements are added one by one to the serialized value,
 * which is staged (stage.h). In memory are names, a string of up to 4 MiB, the expiries of a hash's
 * fields with their names, an entry of a stream, the compressed nodes and the groups of a stream,
 * and a packed value.
 */
#ifndef DATA_NDJSON_READ_H
#define DATA_NDJSON_READ_H

#include "rdb/event.h"
#include "json/text.h"
#include "data/stage.h"

struct ndjson_reader;

struct ndjson_read_opts {
    enum json_form strings;
    enum rdb_dialect dialect; /* of the target, together with version */
    int version;              /* 0: as in the lines, else the newest version of Redis */
};

enum ndjson_status { NDJSON_EVENT, NDJSON_END, NDJSON_FAIL };

/* The caller keeps the source. */
bool ndjson_reader_new(struct ndjson_reader **ret, struct rd_src *src,
                       const struct ndjson_read_opts *opts, struct rd_err *err);
enum ndjson_status ndjson_reader_next(struct ndjson_reader *r, struct rdb_event *ret);

/* After a KEY event: the value, without its type. Valid until the next call. */
const struct stage *ndjson_reader_value(const struct ndjson_reader *r);

/* Whether the line of the key named an encoding. */
bool ndjson_reader_has_encoding(const struct ndjson_reader *r);
const struct rd_err *ndjson_reader_err(const struct ndjson_reader *r);
void ndjson_reader_free(struct ndjson_reader *r);

#endif
