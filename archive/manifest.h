/* manifest.h - describes a set of a repository: its files, their sizes and digests, and their
 * source.
 *
 * The manifest of a set is written last. A set without one does not exist. It is JSON;
 * docs/format/repository.md lists its members. Its last two are digests of the text before them:
 *
 *     …,"sha256":"<of all bytes before this comma>","hmac":"<of all bytes before this comma>"}
 *
 * The SHA-256 detects damage and needs no key. A sealed set also has the HMAC with the key of the
 * repository (its signature), so that someone who can write to the store cannot forge it. A
 * manifest is only read together with the keys that there are, and carries the verdict from then
 * on:
 *
 *     struct archive_manifest m = {0};
 *     if (!archive_manifest_parse(&m, rd_buf_slice(&text), &ring, &err))
 *         ... damaged, or the signature is wrong ...
 *     if (m.signature != ARCHIVE_SIGNATURE_VALID)
 *         ...
 *     archive_manifest_done(&m);
 */
#ifndef ARCHIVE_MANIFEST_H
#define ARCHIVE_MANIFEST_H

#include "archive/tag.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/seal.h"

enum {
    ARCHIVE_FORMAT = 1,
    ARCHIVE_ID_MAX = 40,
    ARCHIVE_FILE_NAME_MAX = 160,
    ARCHIVE_TEXT_MAX = 512,
    ARCHIVE_SHA256 = 32,
    ARCHIVE_FILES_MAX = 4096,
    ARCHIVE_DBS_MAX = 20000,
    ARCHIVE_NODES_MAX = 1000,
    ARCHIVE_SLOTS_MAX = 4096,               /* bytes of "0-5460,…" */
    ARCHIVE_MANIFEST_MAX = 16 * 1024 * 1024 /* bytes of its text */
};

/* The role of a file in the server. */
#define ARCHIVE_ROLES(X)                                                                           \
    X(RDB, "rdb")                                                                                  \
    X(AOF_MANIFEST, "aof-manifest")                                                                \
    X(AOF_BASE, "aof-base")                                                                        \
    X(AOF_INCR, "aof-incr")                                                                        \
    X(STREAM, "stream")

enum archive_role {
#define X(name, word) ARCHIVE_ROLE_##name,
    ARCHIVE_ROLES(X)
#undef X
        ARCHIVE_ROLE_COUNT
};

#define ARCHIVE_COMPRESSIONS(X)                                                                    \
    X(NONE, "none", "")                                                                            \
    X(LZ4, "lz4", ".lz4")                                                                          \
    X(GZIP, "gzip", ".gz")                                                                         \
    X(ZSTD, "zstd", ".zst")

enum archive_compression {
#define X(name, word, suffix) ARCHIVE_COMPRESSION_##name,
    ARCHIVE_COMPRESSIONS(X)
#undef X
        ARCHIVE_COMPRESSION_COUNT,
    /* Of files of sets only: the object is a list of chunks (chunks/chunks.h). */
    ARCHIVE_COMPRESSION_CHUNKS = ARCHIVE_COMPRESSION_COUNT,
    ARCHIVE_COMPRESSION_ALL
};

/* What is known about the author of a manifest. A wrong signature is an error. */
#define ARCHIVE_SIGNATURES(X)                                                                      \
    X(NONE, "none")       /* not sealed: anybody may have written it */                            \
    X(VALID, "valid")     /* by someone who has a key of the ring */                               \
    X(UNKNOWN, "unknown") /* its key is not among those that were given, or not known yet */

enum archive_signature {
#define X(name, word) ARCHIVE_SIGNATURE_##name,
    ARCHIVE_SIGNATURES(X)
#undef X
        ARCHIVE_SIGNATURE_COUNT
};

/* Size and digests of the bytes at one end of the pipe. */
struct archive_sums {
    uint64_t bytes;
    uint64_t crc64;
    uint8_t sha256[ARCHIVE_SHA256];
};

struct archive_file {
    char name[ARCHIVE_FILE_NAME_MAX];   /* of the server: "dump.rdb" */
    char object[ARCHIVE_FILE_NAME_MAX]; /* in the folder of the set: "dump.rdb.lz4.sealed" */
    enum archive_role role;
    enum archive_compression compression;
    bool sealed;
    uint64_t node; /* of a cluster: the number of its master, from 1; else 0 */
    struct archive_sums plain, stored;
    uint64_t added; /* of chunks: bytes that the file has added to those of other sets */
};

/* A master of a cluster. Its data is its snapshot (role rdb) and the stream after it (role stream,
 * in order) up to `offset`. */
struct archive_node {
    char id[64];
    char host[ARCHIVE_TEXT_MAX];
    uint64_t port;
    char slots[ARCHIVE_SLOTS_MAX];
    char replid[44];
    uint64_t base, offset; /* of the snapshot, and of the moment */
};

struct archive_db {
    uint64_t db, keys, expires;
};

struct archive_manifest {
    char id[ARCHIVE_ID_MAX];
    char target[ARCHIVE_TEXT_MAX];
    char source[ARCHIVE_TEXT_MAX]; /* without a password */
    char host[ARCHIVE_TEXT_MAX];   /* where the backup ran */
    char tool[ARCHIVE_TEXT_MAX];   /* "redoubt 0.2.0" */
    char server[ARCHIVE_TEXT_MAX]; /* "redis 7.0.15", or "" */
    int64_t begin_ms, end_ms;      /* unix time */
    int64_t data_ms;               /* the time of the data; 0: unknown */
    uint64_t rdb_version;
    char replid[44]; /* "": not known */
    uint64_t offset;
    bool scan; /* the keys were read at different times */
    uint64_t keys, expires, functions;
    char key_id[RD_SEAL_ID_HEX]; /* "": not sealed */
    struct archive_file *files;
    size_t n_files;
    struct archive_db *dbs;
    size_t n_dbs;
    struct archive_node *nodes; /* of a cluster */
    size_t n_nodes;
    struct archive_tag *tags; /* of the user; each name once */
    size_t n_tags;
    int64_t moment_from_us, moment_to_us; /* of a cluster: the data of each master is from a time in
                                             this range, by the clock of the host of the backup */

    enum archive_signature signature;
    bool has_hmac;
    uint8_t hmac[RD_SEAL_HMAC];
    size_t signed_len; /* bytes of the text that the HMAC covers */
};

/* Sets the name of a file, and that of its object: `name` is not its own field, and its compression
 * is set. RD_ERR_LIMIT: it is too long. */
bool archive_file_set_name(struct archive_file *file, const char *name, bool sealed,
                           struct rd_err *err);
/* What a file takes in its repository: its object, and what it added to the chunks. */
static inline uint64_t archive_file_bytes(const struct archive_file *file)
{
    return file->stored.bytes + file->added;
}

/* RD_ERR_MEMORY, RD_ERR_LIMIT. */
bool archive_manifest_add_file(struct archive_manifest *m, const struct archive_file *file,
                               struct rd_err *err);
bool archive_manifest_add_node(struct archive_manifest *m, const struct archive_node *node,
                               struct rd_err *err);
/* Replaces the value of a tag with this name. Also RD_ERR_USAGE: there are too many. */
bool archive_manifest_add_tag(struct archive_manifest *m, const struct archive_tag *tag,
                              struct rd_err *err);
/* The counts of a database; zeroed if it is new. dbs stay sorted if new databases come in ascending
 * order. NULL: out of memory, or too many databases. */
struct archive_db *archive_manifest_db(struct archive_manifest *m, uint64_t db);

/* Appends the text. key: the set is sealed with it; NULL: no HMAC. */
bool archive_manifest_print(const struct archive_manifest *m, const struct rd_seal_key *key,
                            struct rd_buf *ret, struct rd_err *err);

/* Reads a manifest and verifies its signature with the keys of the ring (NULL: none).
 * RD_ERR_CORRUPT and RD_ERR_CHECKSUM: the text is damaged, or the signature is missing or wrong;
 * RD_ERR_UNSUPPORTED: a later format. On failure *ret is unchanged. */
bool archive_manifest_parse(struct archive_manifest *ret, struct rd_slice text,
                            const struct rd_seal_ring *ring, struct rd_err *err);

/* Verifies an unknown signature with one more key, that of m->key_id. RD_ERR_CHECKSUM. */
bool archive_manifest_verify(struct archive_manifest *m, struct rd_slice text,
                             const struct rd_seal_key *key, struct rd_err *err);

void archive_manifest_done(struct archive_manifest *m);

const char *archive_signature_word(enum archive_signature signature);
const char *archive_role_word(enum archive_role role);
const char *archive_compression_word(enum archive_compression compression);
const char *archive_compression_suffix(enum archive_compression compression);

#endif
