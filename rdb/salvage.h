/* salvage.h - takes out of a damaged snapshot every key that can be proved whole.
 *
 * Where the structure breaks, the reader looks for the next place from which many records parse in
 * a row and pass the deep check, or from which the records lead to the end of the file. It looks
 * also inside the records just before the break: a damaged length makes a record swallow those
 * after it, and the break shows only later.
 *
 *     struct rdb_salvage_opts opts = {.loss = print_it, .ctx = me};
 *     rdb_salvage(src, copy, out, &opts, &res, &err);
 *
 * What is kept is kept verbatim; the output has the input's version. Left out are: what lies in
 * damaged ranges, keys that servers refuse (duplicates, collections with two equal members, ...),
 * and the size hints, which would not be true any more.
 *
 * What is found is not always what it looks like: the inside of a value can read as records. Each
 * run of records has a grade, and keys of which something may be wrong have a doubt. Runs without
 * an anchor go to opts.doubtful, and nowhere without it. Where the checksum of the input does not
 * prove its bytes, the output has none either, unless opts.reseal asks for one.
 */
#ifndef RDB_SALVAGE_H
#define RDB_SALVAGE_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/check.h"

enum rdb_loss_kind {
    RDB_LOSS_RANGE,  /* bytes that are no records any more */
    RDB_LOSS_KEY,    /* a readable key that servers would refuse */
    RDB_LOSS_PARTIAL /* a collection that was cut by damage; its first elements are kept */
};

struct rdb_loss {
    enum rdb_loss_kind kind;
    uint64_t from, to;    /* byte range of the input, `to` excluded */
    const char *why;      /* what broke, or the word of the finding */
    uint64_t at;          /* where it broke: in the range, or RD_NO_OFFSET */
    const char *way_back; /* how the reader found `to`; NULL for RDB_LOSS_KEY */
    uint64_t db;
    bool has_key; /* the record at `from` was that of a key whose name could be read */
    struct rd_slice key;
    uint64_t key_len;
    const struct rdb_type *type;
    uint64_t kept; /* RDB_LOSS_PARTIAL: elements */
};

/* What proves that a run of records stands where it was found. An anchor is: the start of the file,
 * the end of the file, the end of a record by its own lengths, the selector of a database with its
 * size, the sound head of the record that breaks next. */
enum rdb_grade {
    RDB_GRADE_NONE, /* nothing: it may be the inside of a value */
    RDB_GRADE_ONE,  /* an anchor on one side */
    RDB_GRADE_BOTH  /* anchors on both sides */
};

/* What may be wrong with a key, bits of a set. */
enum rdb_doubt {
    RDB_DOUBT_ANCHOR = 1, /* its run has no anchor: it may be no key at all */
    RDB_DOUBT_FIELD = 2,  /* it may be a field of a hash that was damaged */
    RDB_DOUBT_EXPIRY = 4, /* its expiry may be lost */
    RDB_DOUBT_DB = 8,     /* its database may be another one */
    RDB_DOUBT_BESIDE = 16 /* it lies beside damage: its name or value may be damaged */
};
enum { RDB_DOUBTS = 5 };

/* The stable word of one bit. */
RD_API const char *rdb_doubt_word(enum rdb_doubt doubt);
RD_API const char *rdb_grade_word(enum rdb_grade grade);

/* Records in a row that were found, have the same doubts and are in one database. */
struct rdb_salvage_run {
    uint64_t from, to; /* byte range of the input */
    uint64_t db;       /* in which the keys were written */
    uint64_t keys;     /* written to the output, or to opts.doubtful */
    enum rdb_grade grade;
    unsigned doubts; /* of each key: enum rdb_doubt */
    bool left_out;   /* not in the output */
};

/* A key with a doubt. */
struct rdb_salvage_doubt {
    uint64_t offset;
    uint64_t db;
    struct rd_slice key; /* its first bytes, at most RDB_FINDING_KEY_MAX */
    uint64_t key_len;    /* of the whole name */
    const struct rdb_type *type;
    unsigned doubts;
    bool left_out;
};

struct rdb_salvage_opts {
    bool partial; /* keep the first elements of cut collections */
    void (*loss)(void *ctx, const struct rdb_loss *loss); /* in order of the input; may be NULL */
    void (*tick)(void *ctx, uint64_t offset);             /* may be NULL */
    /* Whether a key is to be kept: asked with its RDB_KEY event and with the RDB_VALUE_END that
     * tells its size; both must say so. NULL: all are. Asked also for what only looks like a
     * key. */
    bool (*wants)(void *ctx, const struct rdb_event *ev);
    void *ctx;
    uint64_t seed[2]; /* key of the hashes that find duplicates: random, new for each run */
    bool strict;      /* keys with a doubt are not written to the output */
    bool reseal;      /* write a checksum even though that of the input proves nothing */
    /* Takes the keys that the output does not: those without an anchor and, with `strict`, those
     * with a doubt. A snapshot of its own. May be NULL. */
    struct rd_sink *doubtful;
    void (*run)(void *ctx, const struct rdb_salvage_run *run);       /* may be NULL */
    void (*doubt)(void *ctx, const struct rdb_salvage_doubt *doubt); /* may be NULL */
    bool enterprise; /* the file has opcodes of Redis Enterprise (rdb_check_result.enterprise) */
};

struct rdb_salvage_result {
    enum rdb_dialect dialect;
    int version;
    bool guessed_version; /* the header is damaged too, or of another version */
    bool found_end;       /* the end mark was found */
    uint64_t keys;        /* kept, partial ones included */
    uint64_t keys_dropped;
    uint64_t keys_partial;
    uint64_t keys_unwanted; /* whole, and not wanted */
    uint64_t ranges;        /* lost */
    uint64_t bytes_lost;    /* in them */
    uint64_t first_loss;    /* offset, or RD_NO_OFFSET when nothing is lost */
    uint64_t damage; /* start of the first record that may be damaged, at or before first_loss;
                        RD_NO_OFFSET when nothing is lost */
    bool proved;     /* the checksum of the input holds */
    bool sealed;     /* the output has a checksum */
    uint64_t keys_doubted;  /* in `keys`: those with a doubt */
    uint64_t others;        /* functions and data of modules that were kept */
    uint64_t keys_left_out; /* not in `keys`: without an anchor, or with a doubt and `strict` */
    uint64_t unchecked;     /* keys beyond the first million, not looked at for duplicates */
};

/* src must be able to seek and know its size. out may be NULL: then only the report is made.
 * Otherwise copy is a second source over the same bytes. The sink is not closed. False: the work
 * could not be done (I/O, memory, not seekable). Time is linear in the input, and in damaged ranges
 * at most some dozens of parsing attempts a byte; memory is bounded as in rdb/check.h. */
RD_API bool rdb_salvage(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                        const struct rdb_salvage_opts *opts, struct rdb_salvage_result *ret,
                        struct rd_err *err);

#endif
