/* split.h - private to tools/split.
 *
 *     split.c   options; the pass over the snapshot; index.json
 *     part.c    the parts, each of which is a snapshot
 *     route.c   decides which part a key belongs to
 *     ring.c    the parts of clients that shard keys: crc32 and ring
 *
 * A part is opened for its first key. Everything before the keys (aux fields, functions, data of
 * modules) is kept and written to every part, so that each part can be loaded alone. All parts stay
 * open, under temporary names, until the whole input is read: either all of them appear or none.
 */
#ifndef TOOLS_SPLIT_SPLIT_H
#define TOOLS_SPLIT_SPLIT_H

#include "base/write_behind.h"
#include "base/crc16.h"
#include "rdb/beside.h"
#include "rdb/plain.h"
#include "rdb/writer.h"
#include "tools/input/omitted.h"
#include "tools/input/snapshot_in.h"
#include "tools/input/sized.h"
#include "data/stage.h"

/* A sink can have 256 temporary files; some are reserved for index.json and others. */
enum { SPLIT_PARTS_MAX = 250, SPLIT_PARTS_DEFAULT = 200, SPLIT_NAME_MAX = 160 };

enum split_by {
    SPLIT_DB,
    SPLIT_SLOTS,
    SPLIT_PREFIX,
    SPLIT_SIZE,
    SPLIT_CRC32,
    SPLIT_RING,
    SPLIT_NOTHING
};

/* What the keys of a part have in common. */
enum split_of {
    SPLIT_OF_DB,
    SPLIT_OF_SLOTS,
    SPLIT_OF_PREFIX,
    SPLIT_OF_NUMBER,
    SPLIT_OF_SHARD,
    SPLIT_OF_NODE,
    SPLIT_OF_REST
};

struct split_part {
    char name[SPLIT_NAME_MAX + 16]; /* of the file, without folder */
    char *path;
    enum split_of of;
    uint64_t first; /* database, first slot, remainder or number */
    uint64_t last;  /* slot */
    struct rd_buf prefix;
    uint64_t keys;
    uint64_t bytes; /* set at the end */
    struct rd_sink *sink;
    struct rdb_writer *writer;
    uint64_t db; /* selected in it, or RDB_UNKNOWN */
    bool placed; /* it was renamed to its final name */
};

struct split_range {
    unsigned first;
    unsigned last;
};

/* A point on the ring of CRC-32, and the part from there to the next point. */
struct split_point {
    uint32_t at;
    uint32_t part;
};

/* Points for each name on the ring. */
enum { SPLIT_POINTS = 160 };

/* The rule by which keys are split. */
struct split_rule {
    int by;                   /* enum split_by */
    uint64_t n_shards;        /* of crc32: the divisor; of ring: the nodes */
    const char *names;        /* of the nodes on the ring, separated by commas */
    struct split_point *ring; /* ascending */
    size_t n_points;
    struct split_range ranges[SPLIT_PARTS_MAX];
    size_t n_ranges;
    struct rd_slice separator;
    uint64_t depth;
    uint64_t size;
    uint64_t max_parts;
};

struct split {
    struct cli *cli;
    struct split_rule rule;
    const char *folder;
    bool force;
    bool made_folder;
    bool is_void; /* no key matches the filter: nothing is written */
    struct filter filter;

    struct snapshot_in_opts log;
    struct spool spool; /* the snapshot that a log amounts to */
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
    struct omitted omitted;
    uint64_t keys;
    bool crowded; /* keys went to the rest because there are too many parts */
};

/* Parses "3" (that many equal ranges) or "0-5460,5461-10922". The ranges of a number are those that
 * redis-cli --cluster create assigns to that many masters. RD_ERR_USAGE: invalid text, overlapping
 * ranges, or more than SPLIT_PARTS_MAX. */
bool split_ranges(struct split_rule *rule, const char *text, struct rd_err *err);

/* Takes the next item of a list with commas from *at, which is NULL at the end. */
bool split_next_item(const char **at, struct rd_slice *ret);

/* Makes the ring of the names: RD_ERR_USAGE if one is empty or exists twice, or there are too many.
 * split_ring_done() frees it. */
bool split_ring(struct split_rule *rule, struct rd_err *err);
void split_ring_done(struct split_rule *rule);

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

/* The path of a file in the folder; NULL if out of memory. The caller frees it. */
char *split_path(const struct split *split, const char *name);

#endif
