/* memory.h - estimates the memory of a value in the server that wrote the snapshot.
 *
 *     struct stat_value value;
 *     stat_value_begin(&value, layout, type);
 *     stat_value_elem(&value, &ev);            ... every ELEM event
 *     stat_value_blob(&value, blob.len);       ... every PACKED event
 *     bytes = stat_value_key(&value, bytes, name_len, expires);
 *
 * The result is an estimate of what the server allocates for the key after the snapshot is loaded:
 * what used_memory of INFO falls by when the key is deleted. MEMORY USAGE is often less, because it
 * counts structures as they are declared, not as they are allocated, and more for streams, whose
 * nodes it counts as if all were large. It assumes allocations rounded up to the size classes of
 * jemalloc, tables that grow in powers of two, and the packing thresholds of the default
 * configuration. It does not include memory that the allocator leaves unused, or buffers. A
 * module's value counts with its size in the file.
 */
#ifndef STAT_MEMORY_H
#define STAT_MEMORY_H

#include "rdb/event.h"
#include "stat/layout.h"
#include "stat/rax.h"

/* A string of the server: a header that grows with the length, the bytes and a NUL. */
static inline uint64_t stat_memory_sds(const struct stat_layout *layout, uint64_t len)
{
    uint64_t head = len < 32 ? 1 : len < 256 ? 3 : len < 65536 ? 5 : len < UINT32_MAX ? 9 : 17;
    return stat_layout_alloc(layout, head + len + 1);
}

/* A string, as a key has it. */
struct stat_string {
    uint64_t name_len;
    uint64_t len;
    bool number; /* the server stores it as an integer */
    bool expires;
};

/* A key with a string, all of it. */
uint64_t stat_memory_string(const struct stat_layout *layout, const struct stat_string *string);

/* A collection that is one packed string. */
uint64_t stat_memory_blob(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len);

/* A list of one node. */
uint64_t stat_memory_list(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len);

/* The memory of a key without its value, which is not a string. */
uint64_t stat_memory_key(const struct stat_layout *layout, uint64_t name_len, bool expires);

/* The hash tables of a database, which belong to no key. `expires` keys expire. */
uint64_t stat_memory_tables(const struct stat_layout *layout, uint64_t keys, uint64_t expires);

/* A value while it is read. */
struct stat_value {
    const struct stat_layout *layout;
    const struct rdb_type *type;
    uint64_t elems;  /* strings seen: fields and values count separately */
    uint64_t length; /* of the last of them */
    uint64_t largest;
    uint64_t field;   /* length of the last field */
    uint64_t strings; /* their bytes if each is allocated, or each pair of a hash, or each member of
                       * a sorted set with its score */
    uint64_t packed;  /* their bytes in a listpack, as long as they may be packed */
    uint64_t blobs;   /* bytes of packed strings */
    uint64_t nodes;
    uint64_t largest_blob;
    uint64_t inside; /* offset of the packed string whose elements come one by one */
    bool plain;      /* a node is one element */
    uint64_t ttls;   /* fields that expire */
    uint64_t other;  /* consumer groups */
    uint64_t groups;
    uint64_t group_ids; /* pending entries of the group */
    uint64_t most_ids;  /* of the group with the most: groups tend to have the same */
    uint32_t n_digits;  /* elements that are integers, up to the threshold */
    int64_t low, high;  /* … and their range */
    bool number;        /* the string is stored as an integer */
    struct stat_rax rax;
    struct stat_rax pending; /* of the group, then of each consumer */
};

void stat_value_begin(struct stat_value *value, const struct stat_layout *layout,
                      const struct rdb_type *type);

/* A piece of a string: the first piece carries the total length. */
void stat_value_elem(struct stat_value *value, const struct rdb_event *ev);
/* A packed string (PACKED), or the length of one whose elements follow (PACKED_LONG). */
void stat_value_blob(struct stat_value *value, const struct rdb_event *ev);
/* The events that only streams have: GROUP, PENDING, CONSUMER, OWNED and so on. */
void stat_value_group(struct stat_value *value, const struct rdb_event *ev);

/* Returns the memory of the value without the key; 0 for a string, which is not known alone.
 * `bytes` is that of VALUE_END. */
uint64_t stat_value_end(struct stat_value *value, uint64_t bytes);

/* The memory of the key with this value, also of a string. */
uint64_t stat_value_key(struct stat_value *value, uint64_t bytes, uint64_t name_len, bool expires);

/* The longest element that servers pack by default. */
enum { STAT_PACKED_ELEMENT = 64 };

/* For a hash, set or sorted set whose elements came one by one, and are as few as servers pack by
 * default: its memory if it were packed. Else 0. */
uint64_t stat_value_packed(const struct stat_value *value);

#endif
