/* content.h - a hash of the content of a value, independent of its encoding.
 *
 * Two values of the same kind have the same hash if a server would answer every command about them
 * in the same way, whatever the RDB version, type and encoding. For example, a set stored as an
 * intset, a listpack or a table has the same hash, in any order of its members.
 *
 *     struct rdb_content content;
 *     rdb_content_init(&content, &opts);
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT) {         // RDB_DETAIL_ELEMENTS
 *         if (ev.kind == RDB_KEY)
 *             key = rdb_content_key(&opts, ev.key.db, ev.key.name);
 *         else if (!rdb_content_put(&content, &ev, &err))
 *             ...
 *         if (ev.kind == RDB_VALUE_END)
 *             ... key, rdb_content_sum(&content) ...
 *     }
 *
 * A value is a set of parts, and its hash is computed from the sum of their hashes:
 *
 *     string   the string                    list     each element, with its index
 *     set      each member                   zset     each member, with its score
 *     hash     each field, with its value and expiry; of a path hash, with its path
 *     stream   each entry; its metadata; each group, with its consumers and pending entries
 *     array    each item, with its index     module   all items, in order
 *     vector set: its dimension and the like; each element, with its attributes and vector
 *
 * Not included, because servers change them on their own: the times at which a consumer was last
 * seen or active, the division of a stream into nodes, and the graph of a vector set, in which
 * chance links the elements. -0 and 0 are the same score, and so are
 * all NaNs, because packed encodings do not distinguish them.
 */
#ifndef RDB_CONTENT_H
#define RDB_CONTENT_H

#include "base/err.h"
#include "base/siphash.h"
#include "rdb/event.h"
#include "rdb/vectors.h"

enum rdb_part_kind {
    RDB_PART_ELEMENT, /* of a list or array, by its index; a whole string or module value */
    RDB_PART_MEMBER,  /* of a set, sorted set or vector set */
    RDB_PART_FIELD,   /* of a hash */
    RDB_PART_ENTRY,   /* of a stream */
    RDB_PART_META,    /* of a stream: ids and counters; of a vector set: what all have in common */
    RDB_PART_GROUP,
    RDB_PART_IDMP /* state of idempotent XADD in a stream */
};

/* One part. */
struct rdb_part {
    enum rdb_part_kind kind;
    uint64_t index;            /* number of the part in this value, from 0 */
    uint8_t name[16];          /* identifies the part: its index or id, big-endian, or a hash */
    struct rd_hash128 content; /* of everything except the expiry */
    int64_t expire_ms;         /* of a field; else RDB_NO_EXPIRE */
};

typedef bool (*rdb_part_fn)(void *ctx, const struct rdb_part *part, struct rd_err *err);

struct rdb_content_opts {
    uint8_t key[RD_SIPHASH_KEY]; /* random, and the same for all values that are compared */
    bool no_expire;              /* leave out the expiries of fields */
    bool no_offsets;  /* leave out the fields that stream types before 19 lack: the largest deleted
                         id, the number of entries ever added, the number read by a group */
    bool no_idmp;     /* leave out the fields that stream types before 26 lack */
    rdb_part_fn part; /* called for every part; may be NULL */
    void *ctx;
};

/* Private to content.c. */
struct rdb_content {
    struct rdb_content_opts opts;
    enum rdb_kind kind;
    struct rd_hash128 sum;
    uint64_t n_parts;
    struct rdb_part part;
    struct rd_siphash hash; /* of the part */
    struct rd_siphash name;
    struct rd_hash128 path; /* of a path hash: that of the fields that are being read */
    bool has_path;
    uint64_t len; /* of the string that is being read */
    uint64_t strings_left;
    bool in_group;
    bool in_consumer;
    struct rd_hash128 pending;
    struct rd_hash128 consumers;
    struct rd_siphash consumer;
    struct rd_hash128 owned;
    struct rdb_vectors vectors;
    enum rdb_vectors_part at; /* of a vector set: what the last item was */
    bool is_vectors;
    bool open;           /* a part of the vector set */
    bool has_attributes; /* the element */
};

/* The options are copied. */
void rdb_content_init(struct rdb_content *content, const struct rdb_content_opts *opts);

/* Adds the events VALUE … VALUE_END of a reader, by element; RD_ERR_USAGE for packed events.
 * Otherwise it fails only if opts.part fails. It allocates no memory. */
bool rdb_content_put(struct rdb_content *content, const struct rdb_event *ev, struct rd_err *err);

/* Whether the last event was a piece of the name of an element of a vector set. */
static inline bool rdb_content_is_name(const struct rdb_content *content)
{
    return content->is_vectors && content->at == RDB_VECTORS_NAME;
}

/* After VALUE_END: the hash, and the number of parts. */
struct rd_hash128 rdb_content_sum(const struct rdb_content *content);
uint64_t rdb_content_parts(const struct rdb_content *content);

struct rd_hash128 rdb_content_key(const struct rdb_content_opts *opts, uint64_t db,
                                  struct rd_slice name);

#endif
