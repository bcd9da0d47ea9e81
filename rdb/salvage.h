/* salvage.h - recovers intact keys from a damaged snapshot.
 *
 * When parsing fails, salvage resyncs: it searches for the next position from which many
 * consecutive records parse and pass the deep check, or from which the records lead to the end of
 * the file. The search includes the records just before the failure, because a damaged length makes
 * a record swallow the records after it, and parsing fails only later.
 *
 * Example: counts what can be recovered.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS();
 *     struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err) ||
 *         !rdb_salvage(src, NULL, NULL, &opts, &res, &err)) // without an output
 *         return 1;
 *     printf("%llu keys, %llu ranges are lost\n", (unsigned long long)res.keys,
 *            (unsigned long long)res.ranges);
 *     rd_src_close(src);
 *
 * Recovered records are copied verbatim; the output has the input's version. Left out are damaged
 * ranges, keys that servers refuse (duplicates, collections with two equal members, ...), and the
 * size hints, which would no longer be correct.
 *
 * Bytes inside a value can look like records. So each run of records has a grade, and keys that may
 * be wrong have doubts. Runs without an anchor, and values of modules whose type is not proved,
 * are written only to opts.doubtful, if it is set. If the checksum of the input does not match, the
 * output has no checksum, unless opts.reseal is set.
 *
 * If a single byte is wrong, the checksum shows which one and what it was. It also shows which
 * bytes were inserted, or written twice, which few are missing, and which two blocks were
 * exchanged. With that corrected, the whole file is sound and its checksum matches: nothing is
 * lost, and nothing is doubtful.
 *
 * A snapshot may have gone through a transfer that put other bytes before and after it, or changed
 * line ends or the character set. That is undone first.
 *
 * Threads: one thread calls rdb_salvage(); callbacks run on it. Different inputs may be salvaged
 *   at the same time.
 * Ownership: the caller owns everything it passes. What a callback receives is valid until it
 *   returns.
 * Errors: damage is a result, not an error; false means that the work could not be done.
 * Cost: see rdb_salvage().
 */
#ifndef RDB_SALVAGE_H
#define RDB_SALVAGE_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/check.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rdb_loss_kind {
    RDB_LOSS_RANGE = 0,  /* bytes that are not readable as records */
    RDB_LOSS_KEY = 1,    /* a readable key that servers would refuse */
    RDB_LOSS_PARTIAL = 2 /* a collection that was cut by damage; its first elements are kept */
};

/* Only the library allocates it. */
struct rdb_loss {
    enum rdb_loss_kind kind;
    uint64_t from, to;  /* byte range of the input, `to` excluded */
    const char *why;    /* the cause, or the word of the finding */
    uint64_t at;        /* where parsing failed: in the range, or RD_NO_OFFSET */
    const char *resync; /* how `to` was found; NULL for RDB_LOSS_KEY */
    uint64_t db;
    bool has_key; /* the record at `from` was that of a key whose name could be read */
    struct rd_slice key;
    uint64_t key_len;
    const struct rdb_type *type;
    uint64_t kept; /* RDB_LOSS_PARTIAL: elements */
};

/* The evidence that a run of records is real. An anchor is one of: the start of the file, the end
 * of the file, the end of a record according to its own lengths, the selector of a database with
 * its size, the valid header of the next damaged record. A run that is only likely to be real, by
 * the sizes of databases or by keys of several kinds, counts as one with an anchor on one side, and
 * all its keys have a doubt. */
enum rdb_grade {
    RDB_GRADE_NONE = 0, /* nothing: it may be the inside of a value */
    RDB_GRADE_ONE = 1,  /* an anchor on one side */
    RDB_GRADE_BOTH = 2  /* anchors on both sides */
};

/* The possible problems of a key, as bits. */
enum rdb_doubt {
    RDB_DOUBT_ANCHOR = 1,  /* its run has no anchor: it may not be a key */
    RDB_DOUBT_FIELD = 2,   /* it may be a field of a hash that was damaged */
    RDB_DOUBT_EXPIRY = 4,  /* its expiry may be lost */
    RDB_DOUBT_DB = 8,      /* it may belong to another database */
    RDB_DOUBT_BESIDE = 16, /* it is next to damage: its name or value may be damaged */
    RDB_DOUBT_MODULE = 32  /* nothing else in the file is of its type of module, which is not a
                              published one: a server would refuse the file because of it */
};
enum { RDB_DOUBTS = 6 };

/* The stable word of one bit. */
RD_API const char *rdb_doubt_word(enum rdb_doubt doubt);
RD_API const char *rdb_grade_word(enum rdb_grade grade);

/* Consecutive recovered records with the same doubts in one database. Only the library allocates
 * it. */
struct rdb_salvage_run {
    uint64_t from, to; /* byte range of the input */
    uint64_t db;       /* to which the keys were written */
    uint64_t keys;     /* number written to the output, or to opts.doubtful */
    enum rdb_grade grade;
    unsigned doubts; /* of each key: enum rdb_doubt */
    bool left_out;   /* not in the output */
};

/* A key with a doubt. Only the library allocates it. */
struct rdb_salvage_doubt {
    uint64_t offset;
    uint64_t db;
    struct rd_slice key; /* its first bytes, at most RDB_FINDING_KEY_MAX */
    uint64_t key_len;    /* of the whole name */
    const struct rdb_type *type;
    unsigned doubts;
    bool left_out;
};

/* The difference between a damaged input and the file that its checksum describes. */
enum rdb_correction_kind {
    RDB_CORRECTION_NONE = 0,      /* more than one place is damaged, or bytes are missing */
    RDB_CORRECTION_BYTE = 1,      /* one byte has a wrong value */
    RDB_CORRECTION_INSERTED = 2,  /* bytes were inserted, or some were written twice */
    RDB_CORRECTION_EXCHANGED = 3, /* two blocks of the same size are in each other's place */
    RDB_CORRECTION_MISSING = 4,   /* up to three bytes are missing in one place */
    RDB_CORRECTION_HEADER = 5,    /* the header is that of another version, or not a header */
    RDB_CORRECTION_TRANSFER = 6   /* only what `transfer` says */
};

/* What a transfer did to a snapshot. Nothing is lost by it. */
enum rdb_before {
    RDB_BEFORE_NONE = 0,        /* the input begins with the snapshot */
    RDB_BEFORE_REPLICATION = 1, /* replies of a master, and the header of its payload */
    RDB_BEFORE_TEXT = 2,        /* such as messages of a program */
    RDB_BEFORE_BYTES = 3,
    RDB_BEFORE_SNAPSHOT = 4 /* the beginning of another snapshot, of which nothing is saved */
};
/* Changes of the bytes, as bits. */
enum rdb_text_change {
    RDB_TEXT_CRLF = 1, /* each LF became CR LF */
    RDB_TEXT_UTF8 = 2  /* each byte was read as Latin-1 or Windows-1252, and written as UTF-8 */
};

struct rdb_salvage_opts {
    size_t size;  /* of this struct: set by RDB_SALVAGE_OPTS() */
    bool partial; /* keep the first elements of cut collections */
    void (*loss)(void *ctx, const struct rdb_loss *loss); /* in order of the input; may be NULL */
    void (*tick)(void *ctx, uint64_t offset);             /* may be NULL */
    /* Whether to keep a key. Called with its RDB_KEY event and with its RDB_VALUE_END, which has
     * its size; both calls must return true. NULL: keep all. Also called for bytes that only look
     * like a key. */
    bool (*wants)(void *ctx, const struct rdb_event *ev);
    void *ctx;
    uint64_t seed[2]; /* key of the hashes that find duplicates: random, new for each run */
    bool strict;      /* do not write keys with a doubt to the output */
    bool reseal;      /* write a checksum even if that of the input does not match */
    /* Receives the keys that are left out of the output, as a separate snapshot: those without an
     * anchor or a proved type and, with `strict`, those with a doubt. May be NULL. */
    struct rd_sink *doubtful;
    void (*run)(void *ctx, const struct rdb_salvage_run *run);       /* may be NULL */
    void (*doubt)(void *ctx, const struct rdb_salvage_doubt *doubt); /* may be NULL */
    bool enterprise; /* the file has opcodes of Redis Enterprise (rdb_check_result.enterprise) */
    rdb_compile_fn compile; /* of rdb_check_opts. Code that does not compile is left out */
    bool no_modules;        /* leave out what modules keep beside the keys, as `wants` leaves out
                               their values: servers without the modules load the output */
};
#define RDB_SALVAGE_OPTS(...) RD_SIZED(rdb_salvage_opts, __VA_ARGS__)

struct rdb_salvage_result {
    size_t size; /* of this struct: set by RDB_SALVAGE_RESULT() */
    enum rdb_dialect dialect;
    int version;
    bool guessed_version; /* the header is damaged too, or has a wrong version */
    bool found_end;       /* the end mark was found */
    uint64_t keys;        /* kept, including partial ones */
    uint64_t keys_dropped;
    uint64_t keys_partial;
    uint64_t keys_unwanted; /* intact, but not wanted */
    uint64_t ranges;        /* lost */
    uint64_t bytes_lost;    /* in them */
    uint64_t first_loss;    /* offset, or RD_NO_OFFSET when nothing is lost */
    uint64_t damage; /* start of the first record that may be damaged, at or before first_loss;
                        RD_NO_OFFSET when nothing is lost */
    bool proved;     /* the checksum of the input matches, or does after the correction */
    bool corrected;  /* the checksum shows what is wrong, see `correction`. It was corrected */
    uint64_t corrected_at;                /* the byte, the inserted bytes, or the first block */
    uint8_t corrected_from, corrected_to; /* RDB_CORRECTION_BYTE */
    bool sealed;                          /* the output has a checksum */
    uint64_t keys_doubted;                /* in `keys`: those with a doubt */
    uint64_t others;                      /* functions and data of modules that were kept */
    uint64_t keys_left_out; /* not in `keys`: without an anchor, of a module whose type is not
                               proved, or with a doubt and `strict` */
    uint64_t unchecked;     /* keys after the first million, not checked for duplicates */
    enum rdb_correction_kind correction;
    uint64_t corrected_len;    /* bytes that were inserted, or of each block. After inserted bytes,
                                 offsets in runs, doubts and losses are those without them */
    uint64_t corrected_other;  /* RDB_CORRECTION_EXCHANGED: the second block */
    uint64_t modules_left_out; /* records that opts.no_modules left out */
    /* What a transfer did. With `text`, offsets are those of the bytes before it. */
    enum rdb_before before; /* what precedes the snapshot */
    uint64_t before_len;
    uint64_t after_len;  /* bytes after the snapshot that do not belong to it */
    unsigned text;       /* enum rdb_text_change */
    uint8_t restored[9]; /* RDB_CORRECTION_MISSING and RDB_CORRECTION_HEADER: the right bytes,
                            corrected_len */
    bool intact;         /* the checksum matches the input: nothing in it is damaged */
    int header_version;  /* of the header; 0: it cannot be read. Another one than `version`:
                            guessed_version, and it need not be damaged, or it is newer than the
                            library */
};
#define RDB_SALVAGE_RESULT(...) RD_SIZED(rdb_salvage_result, __VA_ARGS__)

/* src must be able to seek and know its size. out may be NULL: then only the report is made.
 * Otherwise copy is a second source over the same bytes. The sink is not closed. False: salvage
 * failed (I/O, memory, not seekable). Time is linear in the input, with at most a few dozen parsing
 * attempts per byte of a damaged range. Memory is bounded as in rdb/check.h. */
RD_API bool rdb_salvage(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                        const struct rdb_salvage_opts *opts, struct rdb_salvage_result *ret,
                        struct rd_err *err);

#ifdef __cplusplus
}
#endif

#endif
