/* salvage.h - recovers intact commands from a damaged log.
 *
 * Example: counts what can be recovered from a file.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src, *copy;
 *     struct aof_salvage_opts opts = AOF_SALVAGE_OPTS();
 *     struct aof_salvage_result res = AOF_SALVAGE_RESULT();
 *     if (!rd_src_open_file(&src, "appendonly.aof", NULL, &err) ||
 *         !rd_src_open_again(&copy, src, &err) ||
 *         !aof_salvage_file(src, copy, NULL, "appendonly.aof", false, &opts, &res, &err))
 *         return 1;
 *     printf("%llu commands, %llu losses\n", (unsigned long long)res.commands,
 *            (unsigned long long)res.losses);
 *     rd_src_close(copy);
 *     rd_src_close(src);
 *
 * When the framing fails, salvage resyncs: it searches for the next position from which consecutive
 * commands parse. A damaged length or count makes a command swallow the commands after it, or
 * leaves some of its bytes to be read as commands. So the search begins after the start of the
 * first doubtful command, not where the parser stopped. A single wrong byte in the framing is
 * located exactly: the command is parsed again with each digit of its lengths replaced in turn,
 * until it ends where a command begins. Only damage of more than one byte is searched byte by byte;
 * bytes inside an intact argument are then not accepted as commands.
 *
 * A damaged transaction is dropped as a whole. Recovered commands are copied verbatim; a SELECT is
 * added if the effective one was lost. A damaged snapshot, at the start of a file or as base, is
 * recovered by rdb_salvage().
 *
 * Threads: one thread calls a function; callbacks run on it. Different logs may be salvaged at
 *   the same time.
 * Ownership: the functions close what opts.open and opts.create opened; the caller owns
 *   everything else.
 * Errors: damage is a result, not an error; false means that the work could not be done.
 * Cost: see aof_salvage().
 */
#ifndef AOF_SALVAGE_H
#define AOF_SALVAGE_H

#include "aof/manifest.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/salvage.h"

#ifdef __cplusplus
extern "C" {
#endif

enum aof_loss_kind {
    AOF_LOSS_RANGE = 0,       /* bytes that are not readable as commands, or one damaged command */
    AOF_LOSS_TRANSACTION = 1, /* from its MULTI to its EXEC, or to its last readable command */
    AOF_LOSS_SNAPSHOT = 2,    /* in a snapshot: see `snapshot` */
    AOF_LOSS_FILE = 3         /* a file of the manifest is missing */
};

/* Only the library allocates it. */
struct aof_loss {
    enum aof_loss_kind kind;
    const char *file;  /* name; valid until the callback returns, like all other text */
    uint64_t from, to; /* byte range of that file, `to` excluded */
    uint64_t at;       /* where parsing failed, or RD_NO_OFFSET */
    const char *why;
    const char *resync;    /* how `to` was found */
    bool counted;          /* `commands` is the exact number lost, else the minimum */
    uint64_t commands;     /* MULTI and EXEC included */
    int64_t before, after; /* seconds: the time annotations before and after it, or AOF_NO_TIME */
    uint64_t db;           /* selected at the start of the range */
    uint64_t db_after;     /* selected after the range */
    bool db_uncertain;     /* a SELECT may have been lost: later commands may belong to another
                              db */
    const struct rdb_loss *snapshot; /* AOF_LOSS_SNAPSHOT; else NULL */
};

/* A command that is kept, but may be damaged: its name is unknown, or whole commands lie at the end
 * of its last argument. A command of which only the first bytes were written looks like that if its
 * lengths fit by chance. Only the library allocates it. */
struct aof_doubt {
    const char *file;
    uint64_t offset;
    struct rd_slice name;
    uint64_t inner; /* where the commands in the argument begin, or RD_NO_OFFSET */
};

struct aof_salvage_opts {
    size_t size; /* of this struct: set by AOF_SALVAGE_OPTS() */
    /* Opens a file of the log; called twice or more for each. The source must be able to seek and
     * know its size. RD_ERR_IO with sys ENOENT: the file is lost, the work continues. aof_salvage()
     * closes it. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    /* Opens the output that replaces a file; aof_salvage() closes it. NULL: only report. */
    bool (*create)(void *ctx, const struct aof_file *file, struct rd_sink **ret,
                   struct rd_err *err);
    void (*loss)(void *ctx, const struct aof_loss *loss);    /* in order of the log; may be NULL */
    void (*doubt)(void *ctx, const struct aof_doubt *doubt); /* may be NULL */
    /* Whether it is the name of a command. NULL: use the names of servers and common modules. */
    bool (*known)(void *ctx, struct rd_slice name);
    void (*tick)(void *ctx, uint64_t offset); /* may be NULL */
    void *ctx;
    uint64_t seed[2]; /* see rdb/check.h */
};
#define AOF_SALVAGE_OPTS(...) RD_SIZED(aof_salvage_opts, __VA_ARGS__)

struct aof_salvage_result {
    size_t size;            /* of this struct: set by AOF_SALVAGE_RESULT() */
    uint64_t files;         /* read */
    uint64_t files_missing; /* named in the manifest but missing */
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
    uint64_t doubts;        /* commands with an unknown name */
    uint64_t selects_added; /* written to replace lost ones */
    bool db_uncertain;      /* after some loss */
    uint64_t swallowed;     /* commands with whole commands at the end of their last argument */
};
#define AOF_SALVAGE_RESULT(...) RD_SIZED(aof_salvage_result, __VA_ARGS__)

/* out must be initialized and empty; it receives the manifest of the output. False: salvage failed
 * (I/O, memory). Time is linear in the input, with a few dozen parsing attempts for each damaged
 * place; memory does not depend on the input. */
RD_API bool aof_salvage(const struct aof_manifest *in, const struct aof_salvage_opts *opts,
                        struct aof_manifest *out, struct aof_salvage_result *ret,
                        struct rd_err *err);

/* One file; *ret is added to. copy is a second source over the same bytes; both can seek and know
 * their size. out may be NULL; it is not closed. opts->open and opts->create are not used.
 * snapshot: the file must begin with a snapshot (a base whose name ends with .rdb), whatever its
 * first bytes are. */
RD_API bool aof_salvage_file(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                             const char *name, bool snapshot, const struct aof_salvage_opts *opts,
                             struct aof_salvage_result *ret, struct rd_err *err);

#ifdef __cplusplus
}
#endif

#endif
