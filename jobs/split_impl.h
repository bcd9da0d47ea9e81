/* split_impl.h - private to jobs/split*.c.
 *
 *     split.c         the pass over the snapshot; index.json
 *     split_part.c    the parts, each of which is a snapshot
 *     split_route.c   decides which part a key belongs to
 *     split_ring.c    the parts of clients that shard keys: crc32 and ring
 *
 * A part is opened for its first key. The records before the keys are kept and written to every
 * part.
 */
#ifndef JOBS_SPLIT_IMPL_H
#define JOBS_SPLIT_IMPL_H

#include "base/crc16.h"
#include "base/write_behind.h"
#include "data/stage.h"
#include "jobs/sized.h"
#include "jobs/split.h"
#include "rdb/beside.h"
#include "rdb/plain.h"
#include "rdb/writer.h"

struct split_part {
    struct split_file file; /* bytes: set at the end */
    char *path;
    struct rd_sink *sink;
    struct rdb_writer *writer;
    uint64_t db; /* selected in it, or RDB_UNKNOWN */
    bool placed; /* it was renamed to its final name */
};

struct split {
    const struct split_opts *opts;
    const struct split_rule *rule;
    const struct rd_watch *watch;
    bool made_folder;

    struct spool spool; /* the input, if it is not a file */
    struct rd_src *src;
    struct rdb_reader *reader;
    struct sized sized;
    enum rdb_dialect dialect;
    int version;
    struct stage preamble; /* the records that every part begins with */
    struct rd_sink *to_preamble;
    struct rdb_event db_size; /* of the current database; only when splitting by database */
    bool has_db_size;
    struct rdb_event trailer;

    struct rd_write_behind *wb; /* writes the parts; NULL: no write-behind */
    struct split_part *parts[SPLIT_PARTS_MAX + 1];
    size_t n_parts;
    struct split_part *rest;
    struct split_part *last; /* of the last key that was not plain */
    struct rdb_beside beside;
    uint64_t keys;
    bool crowded; /* keys went to the rest because there are too many parts */
};

/* Takes the next item of a list with commas from *at, which is NULL at the end. */
bool split_next_item(const char **at, struct rd_slice *ret);

/* The number of the part that a name belongs to: the remainder, or the node. */
uint32_t split_shard(const struct split_rule *rule, struct rd_slice name);

/* The first `depth` levels of a name, up to a separator that is not included; fewer if there are
 * fewer separators. False if there is none. O(name). */
bool split_prefix(const struct split_rule *rule, struct rd_slice name, struct rd_slice *ret);

/* A file name for a prefix: letters, digits, '_', '-' and inner dots are unchanged, other bytes are
 * %XX; a long name is cut and ends with a hash of the whole. */
void split_file_name(struct rd_slice prefix, char dst[SPLIT_NAME_MAX + 1]);

/* The part for a key, created if necessary. Parts belong to split. */
bool split_route(struct split *split, struct rd_slice name, uint64_t db, struct split_part **ret,
                 struct rd_err *err);

/* Creates the parts that exist whether keys belong to them or not: those of slots. */
bool split_open_all(struct split *split, struct rd_err *err);

/* At the end: creates a part for the other records if there is no part. */
bool split_open_one(struct split *split, struct rd_err *err);

/* Opens a part and writes the preamble; always takes ownership of `made`, whose name and kind are
 * set. */
bool split_part_open(struct split *split, struct split_part *made, struct rd_err *err);

/* Adds a record that is not a key to every part, also to later ones. */
bool split_put_all(struct split *split, const struct rdb_event *ev, struct rd_err *err);

/* Adds the key; its value is copied from the reader. */
bool split_put_key(struct split *split, struct split_part *part, const struct rdb_event *key,
                   struct rd_err *err);

/* The same for a key that was read without events: its record is copied. */
bool split_put_plain(struct split *split, struct split_part *part, const struct rdb_plain *key,
                     uint64_t db, struct rd_err *err);

/* Ends all parts, makes them durable and then renames them. */
bool split_end(struct split *split, struct rd_err *err);
bool split_place(struct split *split, struct rd_err *err);

/* Removes unfinished parts; with `undo` also the finished ones. */
void split_done(struct split *split, bool undo);

/* Lets the caller choose who may read a file. */
void split_access(const struct split *split, const char *path, struct rd_sink_opts *opts);

/* The path of a file in the folder; NULL if out of memory. The caller frees it. */
char *split_path(const struct split *split, const char *name);

#endif
