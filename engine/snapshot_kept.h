/* snapshot_kept.h - private to engine/: records of a snapshot other than keys.
 *
 * AUX fields, functions and auxiliary data of modules are kept as the bytes of their records. On
 * saving, a reader turns them into events again.
 */
#ifndef ENGINE_SNAPSHOT_KEPT_H
#define ENGINE_SNAPSHOT_KEPT_H

#include "engine/snapshot.h"
#include "engine/state_impl.h"

struct engine_kept_records {
    uint8_t *ptr;
    size_t len;
    size_t cap;
};

struct engine_extra {
    enum rdb_dialect dialect;
    int version;
    struct engine_kept_records before; /* the keys */
    struct engine_kept_records functions;
    struct engine_kept_records after;
    uint64_t n_functions; /* libraries */
};

/* Appends. */
void engine_extra_add(struct engine_kept_records *records, struct rd_slice bytes);

/* Appends a library as a record, with its code length in the shortest form. */
void engine_extra_add_function(struct engine_kept_records *records, struct rd_slice code);

/* Appends the code of a function of a release candidate of 7.0 in the form of the release: with a
 * first line that has the language and the library's name. False: its names are stored in an
 * unsupported form, or out of memory. */
bool engine_extra_old_function(const struct rdb_event *ev, struct rd_buf *out);

/* The same as a record. */
bool engine_extra_add_old_function(struct engine_kept_records *records, const struct rdb_event *ev);

#endif
