/* rdb.h - the RDB format: magic, dialects, versions, opcodes and value types.
 *
 *     "REDIS" vvvv  |  "VALKEY" vvv        9 bytes, v decimal digits
 *     record*                              opcode or value type, then its data
 *     0xFF                                 end
 *     crc64                                8 bytes little-endian, from version 5 on; 0: disabled
 *
 * Since Redis and Valkey diverged, they use the same numbers with different meanings (types from
 * 22, opcodes 242 to 244). So a type is looked up by dialect, version and number, never by number
 * alone. These facts come from files that the servers write; see docs/format/rdb.md.
 *
 * Example: names a type of a file.
 *
 *     const struct rdb_type *type = rdb_type_find(RDB_REDIS, 11, 20);
 *     if (type != NULL)
 *         printf("%s as %s\n", rdb_kind_name(type->kind), type->encoding);
 *
 * Threads: any thread may call everything.
 * Ownership: all results are constants that live as long as the program.
 * Errors: NULL or false for what does not exist.
 * Cost: constant time, except as noted.
 */
#ifndef RDB_RDB_H
#define RDB_RDB_H

#include "base/api.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rdb_dialect { RDB_REDIS = 0, RDB_VALKEY = 1 };

enum {
    RDB_MAGIC_LEN = 9,
    RDB_TRAILER_LEN = 8,
    RDB_VERSION_MIN = 1,
    RDB_VERSION_REDIS_MAX = 16,     /* read as far as its types are known */
    RDB_VERSION_REDIS_WHOLE = 15,   /* the newest of which every type and opcode is read */
    RDB_VERSION_REDIS_WRITTEN = 15, /* the newest that is written */
    RDB_VERSION_VALKEY_MIN = 80,
    RDB_VERSION_VALKEY_MAX = 81,
    RDB_VERSION_VALKEY_WHOLE = 80,
    RDB_VERSION_CHECKSUM = 5 /* first version that ends with a checksum */
};

/* Reasons of errors (rd_err_reason.id) of a snapshot, with their arguments. */
enum rdb_reason {
    RDB_REASON_VERSION = 1,        /* unknown version: the version, newest */
    RDB_REASON_TYPE = 2,           /* unknown type: its number */
    RDB_REASON_SUM = 3,            /* checksum mismatch: stored, computed */
    RDB_REASON_DB = 4,             /* no such database: its number, number of databases */
    RDB_REASON_PENDING_TWICE = 5,  /* an entry is pending twice in a group */
    RDB_REASON_CONSUMER_TWICE = 6, /* two consumers of a group have the same name */
    RDB_REASON_MEMBER_TWICE = 7,   /* a member or field is in its collection twice */
    RDB_REASON_OMISSION = 8,       /* the target cannot hold it: an enum rdb_omitted */
    RDB_REASON_OPCODE = 9          /* unknown opcode: its number */
};

enum rdb_opcode {
    RDB_OP_RAM_LRU = 107,       /* Redis Enterprise: access time of the next key, as a length */
    RDB_OP_SLOT_NUM = 121,      /* Redis Enterprise: a hash slot, as a length */
    RDB_OP_HASH_TEMPLATE = 242, /* Redis 15: fields shared by hashes */
    RDB_OP_UPDATE = 242,        /* Valkey 81: a command inside a snapshot */
    RDB_OP_KEY_META = 243,      /* Redis 13: module metadata of the next key */
    RDB_OP_SLOT_IMPORT = 243,   /* Valkey 80: a slot migration that was under way */
    RDB_OP_SLOT_INFO = 244,     /* Redis 12: keys and expiries of a hash slot */
    RDB_OP_FUNCTION2 = 245,
    RDB_OP_FUNCTION_PRE_GA = 246, /* 7.0 release candidates */
    RDB_OP_MODULE_AUX = 247,
    RDB_OP_IDLE = 248, /* seconds since last access, as a length */
    RDB_OP_FREQ = 249, /* LFU counter, one byte */
    RDB_OP_AUX = 250,
    RDB_OP_RESIZEDB = 251,
    RDB_OP_EXPIRETIME_MS = 252, /* int64 little-endian */
    RDB_OP_EXPIRETIME = 253,    /* int32 little-endian, seconds */
    RDB_OP_SELECTDB = 254,
    RDB_OP_EOF = 255
};

/* Storage of a node of a quicklist 2 (type 18): one plain long element, or a listpack. */
enum { RDB_NODE_PLAIN = 1, RDB_NODE_PACKED = 2 };

/* The kind of a value as users see it. The words are those of the TYPE command, except for bitmaps
 * of Redis 8.12: they are strings, because they consist of the same bytes as a string that has the
 * same bits. */
#define RDB_KINDS(X)                                                                               \
    X(STRING, 0, "string")                                                                         \
    X(LIST, 1, "list")                                                                             \
    X(SET, 2, "set")                                                                               \
    X(ZSET, 3, "zset")                                                                             \
    X(HASH, 4, "hash")                                                                             \
    X(STREAM, 5, "stream")                                                                         \
    X(MODULE, 6, "module")                                                                         \
    X(ARRAY, 7, "array")

enum rdb_kind {
#define X(name, number, word) RDB_KIND_##name = number,
    RDB_KINDS(X)
#undef X
};

/* How many there are in these headers. A later version of the library may know more. */
#define RDB_KIND_COUNT 8

/* name, id, number in the file, family, first version, kind, word for the encoding. The family is
 * REDIS, VALKEY, or BOTH for types from before they diverged. */
#define RDB_TYPES(X)                                                                               \
    X(STRING, 0, 0, BOTH, 1, STRING, "string")                                                     \
    X(LIST, 1, 1, BOTH, 1, LIST, "linkedlist")                                                     \
    X(SET, 2, 2, BOTH, 1, SET, "hashtable")                                                        \
    X(ZSET, 3, 3, BOTH, 1, ZSET, "skiplist")                                                       \
    X(HASH, 4, 4, BOTH, 1, HASH, "hashtable")                                                      \
    X(ZSET_2, 5, 5, BOTH, 8, ZSET, "skiplist")                                                     \
    X(MODULE, 6, 6, BOTH, 8, MODULE, "module")                                                     \
    X(MODULE_2, 7, 7, BOTH, 8, MODULE, "module_2")                                                 \
    X(HASH_ZIPMAP, 8, 9, BOTH, 2, HASH, "zipmap")                                                  \
    X(LIST_ZIPLIST, 9, 10, BOTH, 2, LIST, "ziplist")                                               \
    X(SET_INTSET, 10, 11, BOTH, 2, SET, "intset")                                                  \
    X(ZSET_ZIPLIST, 11, 12, BOTH, 2, ZSET, "ziplist")                                              \
    X(HASH_ZIPLIST, 12, 13, BOTH, 4, HASH, "ziplist")                                              \
    X(LIST_QUICKLIST, 13, 14, BOTH, 7, LIST, "quicklist")                                          \
    X(STREAM_LISTPACKS, 14, 15, BOTH, 9, STREAM, "stream_listpacks")                               \
    X(HASH_LISTPACK, 15, 16, BOTH, 10, HASH, "listpack")                                           \
    X(ZSET_LISTPACK, 16, 17, BOTH, 10, ZSET, "listpack")                                           \
    X(LIST_QUICKLIST_2, 17, 18, BOTH, 10, LIST, "quicklist2")                                      \
    X(STREAM_LISTPACKS_2, 18, 19, BOTH, 10, STREAM, "stream_listpacks_2")                          \
    X(SET_LISTPACK, 19, 20, BOTH, 11, SET, "listpack")                                             \
    X(STREAM_LISTPACKS_3, 20, 21, BOTH, 11, STREAM, "stream_listpacks_3")                          \
    X(HASH_METADATA_PRE_GA, 21, 22, REDIS, 12, HASH, "metadata_pre_ga")                            \
    X(HASH_LISTPACK_EX_PRE_GA, 22, 23, REDIS, 12, HASH, "listpack_ex_pre_ga")                      \
    X(HASH_METADATA, 23, 24, REDIS, 12, HASH, "metadata")                                          \
    X(HASH_LISTPACK_EX, 24, 25, REDIS, 12, HASH, "listpack_ex")                                    \
    X(STREAM_LISTPACKS_4, 25, 26, REDIS, 13, STREAM, "stream_listpacks_4")                         \
    X(STREAM_LISTPACKS_5, 26, 27, REDIS, 14, STREAM, "stream_listpacks_5")                         \
    X(ARRAY, 27, 28, REDIS, 14, ARRAY, "array")                                                    \
    X(HASH_2, 28, 22, VALKEY, 80, HASH, "hash_2")                                                  \
    X(PATH_HASH, 29, 23, VALKEY, 81, HASH, "path_hash")                                            \
    X(HASH_TMPL_LP, 30, 29, REDIS, 15, HASH, "template_listpack")                                  \
    X(HASH_TMPL_LP_REF, 31, 30, REDIS, 15, HASH, "template_listpack_ref")                          \
    X(HASH_TMPL_ARRAY, 32, 31, REDIS, 15, HASH, "template_array")                                  \
    X(HASH_TMPL_ARRAY_REF, 33, 32, REDIS, 15, HASH, "template_array_ref")                          \
    X(BITMAP, 34, 33, REDIS, 16, STRING, "bitmap")

enum rdb_type_id {
#define X(name, id, number, family, since, kind, word) RDB_TYPE_##name = id,
    RDB_TYPES(X)
#undef X
};

/* How many there are in these headers. A later version of the library may know more. */
#define RDB_TYPE_COUNT 35

enum rdb_family { RDB_FAMILY_BOTH = 0, RDB_FAMILY_REDIS = 1, RDB_FAMILY_VALKEY = 2 };

/* Only the library allocates it. */
struct rdb_type {
    enum rdb_type_id id;
    uint8_t number; /* in the file */
    uint8_t since;  /* first version that has it */
    enum rdb_family family;
    enum rdb_kind kind;
    const char *name;     /* "HASH_LISTPACK" */
    const char *encoding; /* "listpack" */
};

/* The type with this number, or NULL. O(1). */
RD_API const struct rdb_type *rdb_type_find(enum rdb_dialect dialect, int version, uint8_t number);
RD_API const struct rdb_type *rdb_type_get(enum rdb_type_id id);
RD_API const char *rdb_kind_name(enum rdb_kind kind);

/* The name of a dialect ("redis" or "valkey"); and whether a version exists in a dialect. */
RD_API const char *rdb_dialect_name(enum rdb_dialect dialect);
RD_API bool rdb_version_known(enum rdb_dialect dialect, int version);

/* The nine characters of a module's name from its 64-bit id (six bits each, high bits first), and
 * the low ten bits, its encoding version. dst is terminated. */
enum { RDB_MODULE_NAME_LEN = 9 };
RD_API void rdb_module_name(uint64_t id, char dst[RDB_MODULE_NAME_LEN + 1]);
RD_API unsigned rdb_module_encver(uint64_t id);

#ifdef __cplusplus
}
#endif

#endif
