/* memory.h - estimates the memory of a value in the server that wrote the snapshot.
 *
 *     const struct stat_layout *layout = stat_layout_of(dialect, version);
 *     struct stat_value value;
 *     stat_value_begin(&value, layout, type);
 *     stat_value_elem(&value, &ev);            ... every ELEM event
 *     stat_value_blob(&value, blob.len);       ... every PACKED event
 *     bytes = stat_value_end(&value, bytes) + stat_memory_key(layout, name_len);
 *
 * The result is an estimate of what MEMORY USAGE KEY SAMPLES 0 reports after the snapshot is
 * loaded. It assumes the structures of a 64-bit machine, allocations rounded up to the size classes
 * of jemalloc, tables that grow in powers of two, and the packing thresholds of the default
 * configuration. It was compared with Redis 6.2, 7.0, 7.2, 7.4 and 8.0-dev and with Valkey 8.0. For
 * Redis 7.0 it assumes the jemalloc of Debian, whose size classes are multiples of 16; for the
 * others the one of their source tree, which has multiples of 8 up to 64. It does not include
 * memory that the allocator leaves unused, or buffers. A module's value counts with its size in
 * the file.
 */
#ifndef TOOLS_STAT_MEMORY_H
#define TOOLS_STAT_MEMORY_H

#include "rdb/event.h"
#include "tools/cli/servers.h"
#include "tools/stat/rax.h"

/* Sizes that differ between servers, in bytes. */
struct stat_layout {
    const char *name;   /* of the server: "Redis 7.0" */
    uint32_t key_entry; /* of the table of keys */
    uint32_t dict;      /* header of a hash table */
    uint32_t entry;     /* of a hash or sorted set in a table */
    uint32_t set_entry; /* of a set in a table */
    uint32_t node;      /* of a list */
    uint32_t stream;
    uint32_t consumer;
    bool set_listpack; /* small sets of strings are packed */
    bool buckets;      /* tables of 64-byte buckets with seven entries, not of pointers */
    uint32_t quantum;  /* of the classes up to 64 bytes */
    bool exact;        /* packed strings count as long as they are, not as allocated */
    bool list_packed;  /* a list of one small node is the node alone */
    bool embedded_key; /* the entry of the table of keys holds the name */
    bool bare_keys;    /* a set's table has an entry only where two members meet */
};

const struct stat_layout *stat_layout_of(enum rdb_dialect dialect, int version);

const struct stat_layout *stat_layout_for(enum cli_server server);

/* The layout after the aux field valkey-ver, whose value is `text`. */
const struct stat_layout *stat_layout_of_valkey(const struct stat_layout *layout,
                                                struct rd_slice text);

/* The bytes that jemalloc allocates for a request of n bytes. */
static inline uint64_t stat_memory_alloc(const struct stat_layout *layout, uint64_t n)
{
    if (n <= 8)
        return 8;
    if (n <= 64)
        return (n + layout->quantum - 1) / layout->quantum * layout->quantum;
    if (n <= 128)
        return (n + 15) & ~UINT64_C(15);
    uint64_t step = UINT64_C(1) << (61 - __builtin_clzll(n - 1));
    return (n + step - 1) & ~(step - 1);
}

/* A string of the server: a header that grows with the length, the bytes and a NUL. */
static inline uint64_t stat_memory_sds(const struct stat_layout *layout, uint64_t len)
{
    uint64_t head = len < 32 ? 1 : len < 256 ? 3 : len < 65536 ? 5 : len < UINT32_MAX ? 9 : 17;
    return stat_memory_alloc(layout, head + len + 1);
}

/* The value of a string key; `number`: the server stores it as an integer. */
uint64_t stat_memory_string(const struct stat_layout *layout, uint64_t len, bool number);

/* A collection that is one packed string. */
uint64_t stat_memory_blob(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len);

/* A list of one node. */
uint64_t stat_memory_list(const struct stat_layout *layout, enum rdb_type_id id, uint64_t len);

/* The memory of a key without its value. */
uint64_t stat_memory_key(const struct stat_layout *layout, uint64_t name_len);

/* The hash tables of a database, which MEMORY USAGE does not count. `expires` keys expire. */
uint64_t stat_memory_tables(const struct stat_layout *layout, uint64_t keys, uint64_t expires);

/* A value while it is read. */
struct stat_value {
    const struct stat_layout *layout;
    const struct rdb_type *type;
    uint64_t elems;  /* strings seen: fields and values count separately */
    uint64_t length; /* of the last of them */
    uint64_t largest;
    uint64_t strings; /* their bytes if each is allocated */
    uint64_t packed;  /* their bytes in a listpack, as long as they may be packed */
    uint64_t blobs;   /* bytes of packed strings */
    uint64_t nodes;
    uint64_t largest_blob;
    uint64_t inside;   /* offset of the packed string whose elements come one by one */
    bool plain;        /* a node is one element */
    uint64_t ttls;     /* fields that expire */
    uint64_t other;    /* consumer groups */
    uint32_t n_digits; /* elements that are integers, up to the threshold */
    int64_t low, high; /* … and their range */
    bool number;       /* the string is stored as an integer */
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

/* Returns the memory of the value without the key. `bytes` is that of VALUE_END. */
uint64_t stat_value_end(struct stat_value *value, uint64_t bytes);

/* The longest element that servers pack by default. */
enum { STAT_PACKED_ELEMENT = 64 };

/* For a hash, set or sorted set whose elements came one by one, and are as few as servers pack by
 * default: its memory if it were packed. Else 0. */
uint64_t stat_value_packed(const struct stat_value *value);

#endif
