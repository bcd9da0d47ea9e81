/* omission.h - data that a target cannot hold, and that is therefore not in the output.
 *
 * With opts.lossy, rdb_writer (writer.h) and rdb_commands (commands.h) pass every omission to
 * opts.omitted, so that the caller can report what is missing and why.
 *
 * Example: prints what is left out.
 *
 *     #include <rdb/writer.h>
 *     struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = 11, .lossy = true);
 *     opts.omitted = NULL; // a function that gets a const struct rdb_omission *
 *     printf("%d: %s\n", opts.version, rdb_omitted_word(RDB_OMITTED_KEY));
 *
 * Threads: the callback runs on the thread that calls the writer or the commands.
 * Ownership: an omission and all that it points to are valid during the callback only.
 * Errors: the callback cannot fail.
 * Cost: constant time; the callback's own cost for each omission.
 */
#ifndef RDB_OMISSION_H
#define RDB_OMISSION_H

#include "base/err.h"
#include "rdb/rdb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is omitted: name, number, word, member of rdb_omitted_counts. The words are stable. */
#define RDB_OMITTED(X)                                                                             \
    X(KEY, 0, "key", keys)                                                                         \
    X(FIELD_EXPIRY, 1, "field-expiry", field_expires) /* the field is kept */                      \
    X(ELEMENT, 2, "element", other) /* a member of a sorted set, or an entry of a stream */        \
    X(PENDING, 3, "pending-entry", pending)   /* of a group of a stream */                         \
    X(PRODUCER, 4, "producer", other)         /* of a stream */                                    \
    X(KEY_METADATA, 5, "key-metadata", other) /* of a module */                                    \
    X(FUNCTION, 6, "function", functions)                                                          \
    X(MODULE_AUX, 7, "module-data", module_aux) /* of no key */                                    \
    X(SLOT_IMPORT, 8, "slot-import", other)                                                        \
    X(MEMBER_EXPIRY, 9, "member-expiry", other)      /* of KeyDB; the member is kept */            \
    X(STREAM_SETTINGS, 10, "stream-settings", other) /* of idempotent entries */

enum rdb_omitted {
#define X(name, number, word, counter) RDB_OMITTED_##name = number,
    RDB_OMITTED(X)
#undef X
};

RD_API const char *rdb_omitted_word(enum rdb_omitted what);

/* How much was left out, from rdb_writer_loss() and rdb_commands_loss(). Only the library allocates
 * it. */
struct rdb_omitted_counts {
    uint64_t keys;
    uint64_t field_expires;
    uint64_t functions;
    uint64_t module_aux;
    uint64_t pending; /* entries of consumer groups */
    uint64_t other;
};

/* The server that will read the output, if it is known. Some have the same
 * version of the format: Redis 7.4 and 8. */
enum rdb_server {
    RDB_SERVER_ANY = 0,     /* unknown: whatever the version of the format can hold */
    RDB_SERVER_REDIS = 1,   /* up to 7.4 */
    RDB_SERVER_REDIS_8 = 2, /* since 8.0.3 */
    RDB_SERVER_VALKEY = 3,
    RDB_SERVER_REDIS_8_0 = 4 /* what all patches of 8.0 read: the first form of vector sets */
};

/* Whether a server can have this type of module. False only for a type that comes with other
 * servers and cannot be loaded: vector sets are built into Redis 8. */
RD_API bool rdb_server_has_module(enum rdb_server server, uint64_t module_id);

enum { RDB_OMISSION_ELEMENT_MAX = 4096 };

/* Everything in it is valid during the call only. Only the library allocates it. */
struct rdb_omission {
    enum rdb_omitted what;
    const char *reason;          /* the text of the error without opts.lossy */
    uint64_t offset;             /* of the event */
    const struct rdb_type *type; /* of the key; NULL: it belongs to no key */
    uint64_t db;
    struct rd_slice key;
    struct rd_slice element; /* field, member, id of an entry, or name of what is not a key; a field
                                may be cut to its first RDB_OMISSION_ELEMENT_MAX bytes */
    struct rd_slice group;   /* of a pending entry */
};

typedef void (*rdb_omitted_fn)(void *ctx, const struct rdb_omission *omission);

#ifdef __cplusplus
}
#endif

#endif
