/* memory.h - what a value takes in the memory of the server that wrote the snapshot.
 *
 *     const struct stat_layout *layout = stat_layout_of(dialect, version);
 *     struct stat_value value;
 *     stat_value_begin(&value, layout, type);
 *     stat_value_elem(&value, &ev);            ... every ELEM event
 *     stat_value_blob(&value, blob.len);       ... every PACKED event
 *     bytes = stat_value_end(&value, bytes) + stat_memory_key(layout, name_len);
 *
 * The figure is the one that MEMORY USAGE KEY SAMPLES 0 gives after the snapshot was loaded: sizes
 * of structures on 64-bit machines, allocations rounded up to the size classes of jemalloc, tables
 * that grow in powers of two, and collections packed where the default configuration packs them. It
 * was compared with Redis 7.0.15; for other servers the sizes of their structures are put in.
 * Nothing is known of memory that an allocator leaves unused, of buffers, and of modules, whose
 * values are taken for as large as they are in the file.
 */
#ifndef TOOLS_STAT_MEMORY_H
#define TOOLS_STAT_MEMORY_H

#include "rdb/event.h"
#include "tools/stat/rax.h"

/* Sizes that differ between servers, in bytes. */
struct stat_layout {
    const char *name;   /* whose: "Redis 7.0" */
    uint32_t key_entry; /* of the table of keys */
    uint32_t dict;      /* the head of a hash table */
    uint32_t entry;     /* of a hash or sorted set in a table */
    uint32_t set_entry; /* of a set in a table */
    uint32_t node;      /* of a list */
    uint32_t stream;
    uint32_t consumer;
    bool set_listpack; /* small sets of strings are packed */
    bool buckets;      /* tables of 64-byte buckets with seven entries, not of pointers */
};

const struct stat_layout *stat_layout_of(enum rdb_dialect dialect, int version);

/* What jemalloc gives for a request of n bytes. */
static inline uint64_t stat_memory_alloc(uint64_t n)
{
    if (n <= 8)
        return 8;
    if (n <= 128)
        return (n + 15) & ~UINT64_C(15);
    uint64_t step = UINT64_C(1) << (61 - __builtin_clzll(n - 1));
    return (n + step - 1) & ~(step - 1);
}

/* A string of the server: a head that grows with the length, the bytes, a NUL. */
static inline uint64_t stat_memory_sds(uint64_t len)
{
    uint64_t head = len < 32 ? 1 : len < 256 ? 3 : len < 65536 ? 5 : len < UINT32_MAX ? 9 : 17;
    return stat_memory_alloc(head + len + 1);
}

/* The value of a string key; `number`: the server keeps it as an integer. */
uint64_t stat_memory_string(uint64_t len, bool number);

/* A collection that is one packed string. */
uint64_t stat_memory_blob(uint64_t len);

/* A list of one node. */
uint64_t stat_memory_list(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len);

/* What a key takes beside its value. */
uint64_t stat_memory_key(const struct stat_layout *layout, uint64_t name_len);

/* The tables of a database: what MEMORY USAGE does not count. `expires` of the keys expire. */
uint64_t stat_memory_tables(const struct stat_layout *layout, uint64_t keys, uint64_t expires);

/* A value while it is read. */
struct stat_value {
    const struct stat_layout *layout;
    const struct rdb_type *type;
    uint64_t elems;  /* strings seen: fields and values count by themselves */
    uint64_t length; /* of the last of them */
    uint64_t largest;
    uint64_t strings; /* bytes that they take one by one */
    uint64_t packed;  /* bytes that they take in a listpack, as long as they may be packed */
    uint64_t blobs;   /* bytes of packed strings */
    uint64_t nodes;
    uint64_t ttls;     /* fields that expire */
    uint64_t other;    /* consumer groups */
    uint32_t n_digits; /* elements that are integers, as far as it matters */
    int64_t low, high; /* … and their range */
    bool number;       /* the string is kept as an integer */
    struct stat_rax rax;
    struct stat_rax pending; /* of the group, then of each consumer */
};

void stat_value_begin(struct stat_value *value, const struct stat_layout *layout,
                      const struct rdb_type *type);

/* A piece of a string: the first one has the length of all. */
void stat_value_elem(struct stat_value *value, const struct rdb_event *ev);
/* A packed string; `plain`: a list's node of one element. */
void stat_value_blob(struct stat_value *value, const struct rdb_event *ev);
/* What only streams have: GROUP, PENDING, CONSUMER, OWNED and so on. */
void stat_value_group(struct stat_value *value, const struct rdb_event *ev);

/* `bytes` is that of VALUE_END. The key itself is not counted. */
uint64_t stat_value_end(struct stat_value *value, uint64_t bytes);

#endif
