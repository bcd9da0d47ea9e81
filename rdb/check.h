/* check.h - verifies a snapshot and reports all problems.
 *
 * Example: verifies a snapshot.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rdb_check_opts opts = RDB_CHECK_OPTS();
 *     struct rdb_check_result res = RDB_CHECK_RESULT();
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err) || !rdb_check(src, &opts, &res, &err))
 *         return 1; // the check failed (I/O, memory) and has no result
 *     if (res.damaged)
 *         printf("damaged at %llu\n", (unsigned long long)res.err.offset);
 *     printf("%llu keys, %llu errors\n", (unsigned long long)res.keys,
 *            (unsigned long long)res.errors);
 *     rd_src_close(src);
 *
 * The check makes one pass, in memory that does not depend on the input. It ends at the first
 * structural damage; rdb/salvage.h recovers data after it.
 *
 * What cannot be read is damage, except where a newer or another server may have written it: in a
 * version that is not known yet, in a file of Dragonfly, and where the checksum of the whole file
 * matches although its version has no such type or opcode. That is RD_ERR_UNSUPPORTED.
 *
 * Threads: one thread calls rdb_check(), which may start others and ends them before it returns;
 *   callbacks run on the calling thread. Different sources may be checked at the same time.
 * Ownership: the caller owns everything it passes. What a callback receives is valid until it
 *   returns.
 * Errors: damage is part of the result. A function returns false only if it could not check.
 * Cost: linear in the bytes.
 */
#ifndef RDB_CHECK_H
#define RDB_CHECK_H

#include "base/err.h"
#include "base/src.h"
#include "rdb/event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Findings that do not concern a single value; those of values are RDB_NOTES. The words are stable.
 */
#define RDB_FINDINGS(X)                                                                            \
    X(CORRUPT, 1, "corrupt", ERROR)         /* a byte that no writer produces */                   \
    X(TRUNCATED, 2, "truncated", ERROR)     /* the file ends inside a record */                    \
    X(UNSUPPORTED, 3, "unsupported", ERROR) /* an unknown version, type or opcode */               \
    X(LIMIT, 4, "limit", ERROR)             /* larger than an option allows */                     \
    X(CHECKSUM, 5, "checksum-mismatch", ERROR)                                                     \
    X(CHECKSUM_OFF, 6, "checksum-disabled", INFO)                                                  \
    X(CHECKSUM_NONE, 7, "no-checksum", INFO)    /* versions before 5 */                            \
    X(CONTAINER, 8, "container-damaged", ERROR) /* compressed data, damaged after the snapshot */  \
    X(TRAILING, 9, "trailing-bytes", WARNING)                                                      \
    X(DUPLICATE_KEY, 10, "duplicate-key", ERROR)                                                   \
    X(ZEROED, 11, "zeroed-range", ERROR) /* runs of zeros that read as empty keys */               \
    X(KEYS_SKIPPED, 12, "unchecked-keys", INFO)                                                    \
    X(DB_SIZE, 13, "db-size", WARNING)                                                             \
    X(SLOT_SIZE, 14, "slot-size", WARNING)                                                         \
    X(SLOT_KEY, 15, "key-in-wrong-slot", WARNING)                                                  \
    X(SLOT_INFO, 16, "bad-slot-info", ERROR)                                                       \
    X(HIGH_DB, 17, "high-db", INFO)                                                                \
    X(EXPIRED, 18, "expired-keys", INFO)                                                           \
    X(FUNCTION, 19, "function-without-engine", ERROR)                                              \
    X(FUNCTION_OLD, 20, "pre-release-function", WARNING)                                           \
    X(LUA, 21, "code-not-compiled", INFO) /* functions, and scripts in the field "lua" */          \
    X(ENTERPRISE, 22, "enterprise-opcodes", WARNING)                                               \
    X(MODULE, 23, "needs-module", INFO)                                                            \
    X(CODE, 24, "code-does-not-compile", ERROR)                                                    \
    X(NOT_RUN, 25, "code-not-run", INFO) /* functions, which servers run to load them */           \
    X(NEW_VERSION, 27, "partly-known-version", INFO) /* it may have types that are not read */     \
    X(SLOT_IMPORT, 26, "slot-import", INFO) /* keys of another node that are being imported */

enum rdb_finding_id {
#define X(name, number, word, severity) RDB_FINDING_##name = number,
    RDB_FINDINGS(X)
#undef X
};

/* Only the library allocates it. */
struct rdb_finding {
    unsigned id;      /* enum rdb_finding_id, or enum rdb_note_id: no number is in both */
    const char *word; /* the stable word of the id */
    enum rdb_severity severity;
    uint64_t offset;
    uint64_t inner;  /* offset in the decoded string, or RD_NO_OFFSET */
    uint64_t record; /* where the record begins, or RD_NO_OFFSET */
    uint64_t db;
    bool has_key;
    struct rd_slice key;         /* its first bytes, at most RDB_FINDING_KEY_MAX */
    uint64_t key_len;            /* of the whole name */
    const struct rdb_type *type; /* or NULL */
    const char *text;            /* lives until the callback returns */
};

enum { RDB_FINDING_KEY_MAX = 512 };

typedef void (*rdb_finding_fn)(void *ctx, const struct rdb_finding *finding);

/* Compiles the Lua code of a function library, without its first line, or of a script, without
 * running it. Returns the problem, which is valid until the next call, or NULL. */
typedef const char *(*rdb_compile_fn)(void *ctx, struct rd_slice code);

/* Storage for key hashes that do not fit in memory (more than 1.5 million); see
 * rdb_check_opts.spool. Open: programs define it. More operations would be another struct. */
struct rdb_spool {
    bool (*append)(void *ctx, const void *bytes, size_t len, struct rd_err *err);
    /* Reads len bytes at offset (both are multiples of the appended length). */
    bool (*read)(void *ctx, uint64_t offset, void *bytes, size_t len, struct rd_err *err);
    void *ctx;
};

struct rdb_check_opts {
    size_t size;                              /* of this struct: set by RDB_CHECK_OPTS() */
    bool quick;                               /* framing and checksum only */
    int64_t now_ms;                           /* to count expired keys; 0: do not count */
    rdb_finding_fn finding;                   /* may be NULL */
    void (*tick)(void *ctx, uint64_t offset); /* called for every key; may be NULL */
    /* Called for every event outside of values, KEY included; may be NULL. */
    void (*event)(void *ctx, const struct rdb_event *ev);
    void *ctx;
    const struct rdb_spool *spool; /* NULL: keys beyond the first 1.5 million are not
                                      compared */
    uint64_t seed[2];   /* key of the hashes that find duplicates: random, new for each run. If the
                         source can be read again, equal hashes are confirmed by comparing the
                         names. */
    bool single_thread; /* do everything on the calling thread: like threads = 1 */
    bool part;          /* bytes after the trailer do not belong to the snapshot: they are left in
                           the source */
    rdb_compile_fn compile; /* may be NULL: code is not compiled. Code longer than a piece
                               (rdb/reader.h) is never compiled */
    unsigned threads; /* how many may work, at most 32; 0: two. On a single processor one works */
};
#define RDB_CHECK_OPTS(...) RD_SIZED(rdb_check_opts, __VA_ARGS__)

enum rdb_sum_state {
    RDB_SUM_UNKNOWN = 0, /* the check did not reach the end */
    RDB_SUM_NONE = 1,    /* the version has no checksum */
    RDB_SUM_OFF = 2,     /* the writer disabled the checksum */
    RDB_SUM_OK = 3,
    RDB_SUM_BAD = 4
};

/* The number of places for kinds of values, with room for kinds to come. */
enum { RDB_CHECK_KINDS = 32 };

struct rdb_check_result {
    size_t size; /* of this struct: set by RDB_CHECK_RESULT() */
    bool has_header;
    enum rdb_dialect dialect;
    int version;
    bool damaged;      /* the structure breaks at err.offset */
    struct rd_err err; /* position and kind; only of structural damage */
    uint64_t record;   /* the record that could not be read */
    enum rdb_sum_state sum;
    uint64_t stored, computed; /* checksums */
    uint64_t end;              /* offset after the trailer, or where reading stopped */
    uint64_t trailing;         /* bytes after the trailer */
    uint64_t keys, expires, expired, field_expires;
    uint64_t dbs, functions, aux, module_aux;
    uint64_t enterprise;                    /* opcodes of Redis Enterprise */
    uint64_t errors, warnings, infos;       /* findings by severity */
    uint64_t keys_by_kind[RDB_CHECK_KINDS]; /* by enum rdb_kind */
    bool newer; /* the version is newer than the newest known one. The file was read as far as it is
                   like one of that version: `damaged`, with RD_ERR_UNSUPPORTED */
    uint64_t slot_imports; /* imports of slots of another node that were under way (Valkey 9) */
    uint64_t
        imported_keys;  /* of `keys`: in these slots, so that they are not the server's own yet */
    uint64_t templates; /* lists of field names that hashes share (Redis 8.10) */
    bool trailing_data; /* not all of the bytes after the trailer are zeros or line ends */
};
#define RDB_CHECK_RESULT(...) RD_SIZED(rdb_check_result, __VA_ARGS__)

/* False if the check failed. *ret is set when the function returns, in either case. */
RD_API bool rdb_check(struct rd_src *src, const struct rdb_check_opts *opts,
                      struct rdb_check_result *ret, struct rd_err *err);

RD_API const char *rdb_severity_name(enum rdb_severity severity);

#ifdef __cplusplus
}
#endif

#endif
