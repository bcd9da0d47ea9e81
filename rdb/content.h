/* content.h - a hash of what a value holds, however it is stored.
 *
 * Two values of the same kind that a server would answer every command about in the same way have
 * the same hash, whatever the version, type and packing they are stored in: a set is the same set
 * as an intset, a listpack and a table, in any order of its members.
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
 * A value is taken as a set of parts, and its hash is made of the sum of theirs:
 *
 *     string   the string                    list     each element, with its place
 *     set      each member                   zset     each member, with its score
 *     hash     each field, with its value and expiry
 *     stream   each entry; its meta data; each group, with its consumers and what is pending
 *     array    each item, with its place     module   all items, in their order
 *
 * Left out, because servers change it by themselves: when a consumer was last seen or active, and
 * how a stream falls into nodes. -0 and 0 are one score, and so are all that are not numbers:
 * packed encodings do not keep them apart.
 */
#ifndef RDB_CONTENT_H
#define RDB_CONTENT_H

#include "base/err.h"
#include "base/siphash.h"
#include "rdb/event.h"

enum rdb_part_kind {
    RDB_PART_ELEMENT, /* of a list or array, by its place; the whole of a string or module value */
    RDB_PART_MEMBER,  /* of a set or sorted set */
    RDB_PART_FIELD,   /* of a hash */
    RDB_PART_ENTRY,   /* of a stream */
    RDB_PART_META,    /* of a stream: ids and counters */
    RDB_PART_GROUP,
    RDB_PART_IDMP /* what a stream remembers of idempotent XADD */
};

/* One part, when it was read. */
struct rdb_part {
    enum rdb_part_kind kind;
    uint64_t index;            /* of the parts of this value, from 0 on */
    uint8_t name[16];          /* what it is found by: its place or id, big-endian, or a hash */
    struct rd_hash128 content; /* of all but the expiry */
    int64_t expire_ms;         /* of a field; else RDB_NO_EXPIRE */
};

typedef bool (*rdb_part_fn)(void *ctx, const struct rdb_part *part, struct rd_err *err);

struct rdb_content_opts {
    uint8_t key[RD_SIPHASH_KEY]; /* random, and the same for all values that are compared */
    bool no_expire;              /* leave out the expiries of fields */
    bool no_offsets;  /* leave out what streams of before type 19 do not keep: the largest deleted
                         id, the number of entries ever added, the number read by a group */
    bool no_idmp;     /* leave out what streams of before type 26 do not keep */
    rdb_part_fn part; /* told of every part; may be NULL */
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
    uint64_t len; /* of the string that is being read */
    uint64_t strings_left;
    bool in_group;
    bool in_consumer;
    struct rd_hash128 pending;
    struct rd_hash128 consumers;
    struct rd_siphash consumer;
    struct rd_hash128 owned;
};

/* The options are copied. */
RD_API void rdb_content_init(struct rdb_content *content, const struct rdb_content_opts *opts);

/* Takes VALUE … VALUE_END as a reader gives them, by element; RD_ERR_USAGE where they are packed.
 * Else it fails only where opts.part does. No allocation. */
RD_API bool rdb_content_put(struct rdb_content *content, const struct rdb_event *ev,
                            struct rd_err *err);

/* After VALUE_END; and how many parts there were. */
RD_API struct rd_hash128 rdb_content_sum(const struct rdb_content *content);
RD_API uint64_t rdb_content_parts(const struct rdb_content *content);

RD_API struct rd_hash128 rdb_content_key(const struct rdb_content_opts *opts, uint64_t db,
                                         struct rd_slice name);

#endif
