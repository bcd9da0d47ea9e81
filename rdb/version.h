/* version.h - what an RDB version is called in messages, the release that wrote a snapshot, and
 * the header with the version.
 *
 *     struct rdb_version_text text = rdb_version_text(RDB_REDIS, 6);
 *     puts(text.s); // "RDB version 6 (Redis 2.6 to 3.0)"
 *
 * Threads: any thread may call everything.
 */
#ifndef RDB_VERSION_H
#define RDB_VERSION_H

#include "rdb/rdb.h"

/* Returned by value, so that printf("%s", rdb_version_text(…).s) works. */
struct rdb_version_text {
    char s[64];
};

/* The version and the servers that write it. A version of no release has no servers; a version that
 * the dialect does not have gets the name of the dialect. */
struct rdb_version_text rdb_version_text(enum rdb_dialect dialect, int version);

/* What servers write. The expiry of hash fields came with 7.4 and Valkey 9.0, the producers of
 * streams with 8.6. */
enum {
    RDB_VERSION_OF_7_0 = 10,
    RDB_VERSION_OF_7_4 = 12,
    RDB_VERSION_OF_8_6 = 13,
    RDB_VERSION_OF_VALKEY_9 = 80
};

/* Whether a type is the counter of GCRA, which a few builds of Redis 8.8 and 8.10 have. Redis 8.12
 * uses the number for another type. */
bool rdb_is_gcra(enum rdb_dialect dialect, int version, uint8_t number);

/* Whether the reader takes a byte for an opcode in snapshots of this version. */
bool rdb_opcode_is_read(enum rdb_dialect dialect, int version, uint8_t opcode);

/* The newest server whose snapshots the reader reads. A replica announces it: Valkey 9 chooses the
 * version of a snapshot by it, and without it the oldest one, which cannot hold all of its data. */
#define RDB_REPLICA_VERSION "9.2.0"

struct rdb_release {
    char version[32]; /* printable; empty: the snapshot does not say */
    bool valkey;
};

/* Notes a field before the keys; false: it does not name a release. A Valkey may also name the
 * Redis with which it is compatible: that does not replace its own name. */
bool rdb_release_take(struct rdb_release *release, struct rd_slice name, struct rd_slice value);

/* Dialect and version of the header of a snapshot, the first RDB_MAGIC_LEN bytes. The version may
 * be one that does not exist. False: the bytes are no header. */
bool rdb_header_parse(struct rd_slice bytes, enum rdb_dialect *ret_dialect, int *ret_version);

/* Finds the header of a snapshot among other bytes. Text that only names one is none: a header is
 * followed by a type or an opcode. */
bool rdb_header_find(struct rd_slice bytes, size_t *ret);

#endif
