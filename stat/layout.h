/* layout.h - how servers store keys and values: sizes and forms that differ between versions.
 *
 *     const struct stat_layout *layout = stat_layout_of(dialect, rdb_version);
 *     layout = stat_layout_of_release(layout, &release);  ... when the file names its server
 *
 * Sizes are those of 64-bit machines. The layouts of Redis 7.0, 8.0 and 8.6, of Valkey 8.0, 8.1 and
 * 9.1 were measured with the packages of Debian, whose jemalloc has size classes that are multiples
 * of 16; those of other versions have multiples of 8 up to 64, as in the source trees.
 */
#ifndef STAT_LAYOUT_H
#define STAT_LAYOUT_H

#include "rdb/rdb.h"
#include "rdb/version.h"
#include "data/servers.h"

/* Where the name of a key is. */
enum stat_name_place {
    STAT_NAME_APART,     /* a string of its own, to which the entry of the table points */
    STAT_NAME_IN_ENTRY,  /* in the entry of the table */
    STAT_NAME_IN_OBJECT, /* in the object, with the expiry, and with a short string value */
};

/* The entries of a table whose elements are allocations of their own, such as sets. */
enum stat_table_kind {
    STAT_TABLE_ENTRIES, /* an entry for each element */
    STAT_TABLE_BARE,    /* an entry only where two elements meet in one place */
    STAT_TABLE_BUCKETS, /* 64 bytes for up to seven elements, of which a full one has another */
};

struct stat_layout {
    const char *name; /* of the server: "Redis 7.0" */
    enum stat_name_place place;
    enum stat_table_kind keys; /* of a database, if the name is in the object */
    enum stat_table_kind sets; /* also of hashes and sorted sets that are tables */
    uint32_t dict;             /* header of a table */
    uint32_t node;             /* of a list */
    uint32_t stream;
    uint32_t consumer;
    uint32_t rax;          /* header of a radix tree */
    uint32_t pending;      /* allocations of a pending entry, in all */
    uint32_t pending_id;   /* more for each id that is pending in any group */
    uint32_t group;        /* more for a group */
    uint32_t ttl_hash;     /* more for a hash whose fields expire */
    uint32_t field_ttl;    /* more for a field that expires */
    uint32_t field_no_ttl; /* more for one that does not, if others of the hash do */
    uint32_t embedded;     /* an object with name and value is at most this long */
    bool no_pointer;       /* such an object has no pointer */
    bool set_listpack;     /* small sets of strings are packed */
    bool fields_embedded;  /* a field and a short value of a hash are one allocation */
    bool ttl_heads;        /* the head of a field that expires is two bytes longer */
    bool ttl_tables;       /* a hash whose fields expire is always a table */
    bool members_embedded; /* a node of a sorted set has the member */
    bool list_packed;      /* a list of one small node is the node alone */
    bool ziplists;         /* packed values are ziplists */
    uint32_t quantum;      /* of the classes up to 64 bytes */
};

/* The bytes that jemalloc allocates for a request of n bytes. */
static inline uint64_t stat_layout_alloc(const struct stat_layout *layout, uint64_t n)
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

/* The layout of the server that writes this RDB version. */
const struct stat_layout *stat_layout_of(enum rdb_dialect dialect, int version);

/* The layout of the server that a snapshot names, which knows more than the RDB version. */
const struct stat_layout *stat_layout_of_release(const struct stat_layout *layout,
                                                 const struct rdb_release *release);

/* The layout of a server named as in --for: "valkey-8.1". `server` is that of data_server_add(). */
const struct stat_layout *stat_layout_for(enum data_server server, const char *text);

#endif
