/* salvage.h - takes out of a damaged log every command that the damage did not touch.
 *
 *     struct aof_salvage_opts opts = {.open = open_in_folder, .create = create_in_out, .ctx = me,
 *                                     .loss = print_it};
 *     aof_salvage(&manifest, &opts, &out_manifest, &res, &err);
 *     ... write out_manifest after the files ...
 *
 * Where the framing breaks, the next place is looked for from which commands parse in a row. A
 * damaged length or count makes a command swallow those after it, or leaves some of its bytes to
 * be read as commands; so the search begins after the start of the first doubtful command, not
 * where the parser stopped. One wrong byte in the framing is explained exactly: the command is read
 * again with each digit of its lengths replaced in turn, until it ends where a command begins. Only
 * what no single byte explains is searched byte by byte, and then what lies inside an argument that
 * is whole is not taken for commands.
 *
 * A transaction that is damaged is lost whole. What is kept is kept verbatim, except that a SELECT
 * is put where the one that counted was lost. A snapshot in front (or as base) goes through
 * rdb_salvage() when it is not sound.
 */
#ifndef AOF_SALVAGE_H
#define AOF_SALVAGE_H

#include "aof/manifest.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/salvage.h"

enum aof_loss_kind {
    AOF_LOSS_RANGE,       /* bytes that are no commands any more, or one broken command */
    AOF_LOSS_TRANSACTION, /* from its MULTI to its EXEC, or as far as it goes */
    AOF_LOSS_SNAPSHOT,    /* in a snapshot: see `snapshot` */
    AOF_LOSS_FILE         /* a file of the manifest is not there */
};

struct aof_loss {
    enum aof_loss_kind kind;
    const char *file;  /* name; lives until the callback returns, as all other text */
    uint64_t from, to; /* byte range of that file, `to` excluded */
    uint64_t at;       /* where it broke, or RD_NO_OFFSET */
    const char *why;
    const char *way_back;  /* how the reader found `to` */
    bool counted;          /* `commands` is all that was lost, else the least that was */
    uint64_t commands;     /* MULTI and EXEC included */
    int64_t before, after; /* seconds: the time annotations around it, or AOF_NO_TIME */
    uint64_t db;           /* selected where the range begins */
    uint64_t db_after;     /* and after it */
    bool db_uncertain;     /* a SELECT may have been lost: what follows may be of another db */
    const struct rdb_loss *snapshot; /* AOF_LOSS_SNAPSHOT; else NULL */
};

/* A command that is kept, although its name is none that is known: perhaps it was hit. */
struct aof_doubt {
    const char *file;
    uint64_t offset;
    struct rd_slice name;
};

struct aof_salvage_opts {
    /* Opens a file of the log; called twice or more for each. The source must be able to seek and
     * know its size. RD_ERR_IO with sys ENOENT: the file is lost, the work continues. aof_salvage()
     * closes it. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    /* Opens the output that takes the place of a file; aof_salvage() closes it. NULL: only the
     * report is made. */
    bool (*create)(void *ctx, const struct aof_file *file, struct rd_sink **ret,
                   struct rd_err *err);
    void (*loss)(void *ctx, const struct aof_loss *loss);    /* in order of the log; may be NULL */
    void (*doubt)(void *ctx, const struct aof_doubt *doubt); /* may be NULL */
    /* Is it the name of a command? NULL: those of servers and of common modules are. */
    bool (*known)(void *ctx, struct rd_slice name);
    void (*tick)(void *ctx, uint64_t offset); /* may be NULL */
    void *ctx;
    uint64_t seed[2]; /* see rdb/check.h */
};

struct aof_salvage_result {
    uint64_t files;         /* read */
    uint64_t files_missing; /* named in the manifest and not there */
    uint64_t commands;      /* kept */
    uint64_t annotations;   /* kept */
    uint64_t snapshots;     /* that were not sound */
    uint64_t keys;          /* kept in a snapshot that had to be salvaged */
    uint64_t keys_doubted;  /* of these: kept, but not proved to be what was written */
    uint64_t keys_left_out; /* found in such a snapshot, and left out: nothing proves them */
    uint64_t keys_sound;    /* in snapshots that are sound */
    uint64_t losses;        /* ranges, transactions, keys */
    uint64_t bytes_lost;    /* in ranges and transactions */
    uint64_t transactions;  /* lost */
    uint64_t doubts;        /* commands with a name that is not known */
    uint64_t selects_added; /* written because one was lost */
    bool db_uncertain;      /* after some loss */
};

/* out must be initialized and empty; it gets what the manifest of the output has to say. False: the
 * work could not be done (I/O, memory). Time is linear in the input, with some dozens of parsing
 * attempts for each place that is damaged; memory does not depend on the input. */
RD_API bool aof_salvage(const struct aof_manifest *in, const struct aof_salvage_opts *opts,
                        struct aof_manifest *out, struct aof_salvage_result *ret,
                        struct rd_err *err);

/* One file; *ret is added to. copy is a second source over the same bytes; both can seek and know
 * their size. out may be NULL; it is not closed. opts->open and opts->create are not used.
 * snapshot: the file must begin with a snapshot (a base whose name ends with .rdb), however it
 * looks. */
RD_API bool aof_salvage_file(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                             const char *name, bool snapshot, const struct aof_salvage_opts *opts,
                             struct aof_salvage_result *ret, struct rd_err *err);

#endif
