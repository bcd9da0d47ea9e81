/* check.h - verifies an append-only log and tells everything that is wrong with it.
 *
 *     struct aof_check_opts opts = {.open = open_in_folder, .finding = print_it, .ctx = me};
 *     struct aof_check_result res;
 *     if (!aof_check(manifest_source, &opts, &res, &err))
 *         ... the check could not be done (I/O, memory): nothing is known ...
 *     if (res.verdict == AOF_VERDICT_TORN) ... a cut at res.files[res.n_files - 1].ok_up_to repairs
 * it ... aof_check_done(&res);
 *
 * One pass over the base and the incremental files, in memory that does not depend on their size.
 * A file is read as far as its structure holds; when it breaks, what follows is searched for
 * whole commands, because that decides what can be done: the torn tail of the last file can be cut
 * off, but damage with commands after it is a case for aof/salvage.h.
 *
 * Commands are not run: names are compared with those that are known, arguments are only measured.
 */
#ifndef AOF_CHECK_H
#define AOF_CHECK_H

#include "aof/aof.h"
#include "aof/manifest.h"
#include "aof/text_mode.h"
#include "rdb/check.h"

/* Besides these there are the words of AOF_MANIFEST_PROBLEMS, and those of RDB_FINDINGS and
 * RDB_NOTES for a snapshot in a base file. Words are stable. */
#define AOF_FINDINGS(X)                                                                            \
    X(CORRUPT, "corrupt", ERROR)               /* a byte that no server would have written */      \
    X(TRUNCATED, "truncated", ERROR)           /* the file ends inside a command */                \
    X(LIMIT, "limit", ERROR)                   /* larger than servers accept */                    \
    X(NOT_LOG, "not-a-log", ERROR)             /* no whole command is in it */                     \
    X(TEXT_MODE, "text-mode", ERROR)           /* its line ends were changed */                    \
    X(WRITTEN, "being-written", WARNING)       /* the last command is not complete yet */          \
    X(ZERO_TAIL, "zero-tail", ERROR)           /* zeros up to the end of the file */               \
    X(MULTI_OPEN, "multi-without-exec", ERROR) /* at the end of the file */                        \
    X(MULTI_NESTED, "multi-in-multi", ERROR)   /* or an EXEC was lost */                           \
    X(EXEC_ALONE, "exec-without-multi", ERROR)                                                     \
    X(MISSING, "file-missing", ERROR)              /* the manifest names what is not there */      \
    X(UNKNOWN_COMMAND, "unknown-command", WARNING) /* once a name */                               \
    X(TIME_BACK, "time-goes-back", WARNING)        /* an annotation earlier than the one before */ \
    X(BASE_NEWER, "base-newer", WARNING)           /* than what is to be applied to it */          \
    X(ORPHAN, "not-in-manifest", WARNING)          /* a file of the log by its name */             \
    X(LEFTOVER, "leftover-file", INFO)             /* the temporary file of a rewrite */           \
    X(HISTORY, "history-file", INFO)               /* not needed any more */                       \
    X(EMPTY_FILE, "empty-file", INFO)

enum aof_finding_id {
#define X(name, word, severity) AOF_FINDING_##name,
    AOF_FINDINGS(X)
#undef X
        AOF_FINDING_COUNT
};

struct aof_finding {
    const char *id; /* stable word */
    enum rdb_severity severity;
    const char *file;                   /* its name; NULL: the manifest, or the log as a whole */
    uint64_t offset;                    /* in it, or RD_NO_OFFSET */
    uint64_t line;                      /* there, as an editor counts; 0: not known */
    uint64_t command;                   /* its number in the file, from 1; 0: not about a command */
    const struct rdb_finding *snapshot; /* more of a finding about a snapshot, or NULL */
    const char *text;                   /* lives until the callback returns */
};

/* From the best to the worst. */
#define AOF_VERDICTS(X)                                                                            \
    X(SOUND, "ok")                                                                                 \
    X(WARNED, "warnings")                                                                          \
    X(WRITTEN, "being-written")     /* whole but for its last command, which a server writes */    \
    X(TORN, "torn")                 /* the end of the last file: it can be cut off */              \
    X(BAD_MANIFEST, "bad-manifest") /* of the log only: the list of files has to be made again */  \
    X(UNSUPPORTED, "unsupported")   /* the snapshot has a version or type that is not known */     \
    X(MISSING, "missing")           /* a file of the log */                                        \
    X(DAMAGED, "damaged")           /* before the end: what follows it would be lost */            \
    X(NOT_LOG, "not-a-log")         /* no whole command is in it: it is something else */

enum aof_verdict {
#define X(name, word) AOF_VERDICT_##name,
    AOF_VERDICTS(X)
#undef X
};

/* Of at most so many files of a log, the first ones and the last, struct aof_check_detail is kept:
 * a manifest of a hundred thousand damaged files must not cost a hundred thousand times as much. */
enum { AOF_CHECK_DETAILS = 256 };

/* More of a file that is damaged or holds a snapshot. */
struct aof_check_detail {
    struct rd_err err;                /* of a file that is damaged */
    struct rdb_check_result snapshot; /* of one that has a snapshot */
};

struct aof_check_file {
    const char *name;
    const struct aof_file *file; /* of result.manifest; NULL for a log that is one file */
    enum aof_verdict verdict;
    enum aof_content content;
    bool last;             /* the last file of the log */
    bool damaged;          /* the commands or the snapshot break */
    enum rd_err_code code; /* then: how */
    uint64_t broken_at;    /* and where, or RD_NO_OFFSET */
    bool has_snapshot;     /* it begins with one */
    bool snapshot_bad;     /* findings in it are errors */
    enum aof_text_mode text_mode;
    const char *hint; /* what can be done with a file that is not a log, or NULL */
    uint64_t size;
    uint64_t ok_up_to; /* after the last whole command that is not inside of a transaction */
    uint64_t ok_up_to_line;
    uint64_t whole; /* after the last whole command */
    uint64_t after; /* where whole commands continue after the damage, or RD_NO_OFFSET */
    bool searched;  /* after the damage */
    uint64_t zeros; /* zero bytes at the end of a file that is damaged */
    uint64_t commands, transactions, annotations; /* up to the damage */
    int64_t first_time, last_time;                /* seconds, of time annotations, or AOF_NO_TIME */
    int64_t saved; /* when the snapshot was saved (its aux ctime), or AOF_NO_TIME */
    struct aof_check_detail *detail; /* the result's. NULL: a sound file of commands, or there are
                                        too many details already (which the last file ignores) */
};

struct aof_check_result {
    enum aof_verdict verdict;
    struct aof_manifest manifest; /* empty for a log that is one file */
    struct aof_check_file *files; /* in the order in which they are read */
    size_t n_files;
    uint64_t errors, warnings, infos; /* findings by severity */
    uint64_t commands, transactions, annotations, bytes;
    int64_t first_time, last_time;
};

struct aof_check_opts {
    /* Opens a file of the log, read from its beginning; closed by the check. A file that is not
     * there is RD_ERR_IO with sys ENOENT. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void (*finding)(void *ctx, const struct aof_finding *finding); /* may be NULL */
    /* Whether the last file is being written: a process has it open for writing, or it has another
     * size than it had. NULL: not known. */
    bool (*written)(void *ctx, const struct aof_file *file, uint64_t size);
    /* Called for each command up to the damage with its name (empty: it has more than 64 bytes and
     * its command came in pieces), which lives until the callback returns; may be NULL. */
    void (*command)(void *ctx, struct rd_slice name);
    /* Called now and then with the source that is read; may be NULL. */
    void (*tick)(void *ctx, const struct rd_src *src);
    void *ctx;
    /* What is in the folder, to find files that the manifest does not name; NULL: do not. */
    const char *const *names;
    size_t n_names;
    const char *prefix; /* of the files' names: "appendonly.aof" */
    int64_t now_ms;     /* to count expired keys of a snapshot; 0: do not */
    bool quick;         /* of snapshots: framing and checksum only */
    bool single_thread;
    const struct rdb_spool *spool; /* see rdb/check.h */
    uint64_t seed[2];              /* see rdb/check.h */
};

/* The log that a manifest lists. False when the check could not be done; *ret is set in any case
 * and is ended with aof_check_done(). */
RD_API bool aof_check(struct rd_src *manifest, const struct aof_check_opts *opts,
                      struct aof_check_result *ret, struct rd_err *err);

/* A log that is one file (before 7.0, or a file of a folder by itself). `name` is used in findings
 * and must outlive *ret; opts->open is not used. */
RD_API bool aof_check_one(struct rd_src *src, const char *name, const struct aof_check_opts *opts,
                          struct aof_check_result *ret, struct rd_err *err);

RD_API void aof_check_done(struct aof_check_result *res);

RD_API const char *aof_verdict_word(enum aof_verdict verdict);

#endif
