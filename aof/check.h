/* check.h - verifies an append-only log and reports all problems.
 *
 * Example: verifies a log that is one file.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct aof_check_opts opts = AOF_CHECK_OPTS();
 *     struct aof_check_result res = AOF_CHECK_RESULT();
 *     if (!rd_src_open_file(&src, "appendonly.aof", NULL, &err) ||
 *         !aof_check_one(src, "appendonly.aof", &opts, &res, &err))
 *         return 1; // the check failed (I/O, memory) and has no result
 *     puts(aof_verdict_word(res.verdict));
 *     if (res.verdict == AOF_VERDICT_TORN)
 *         printf("truncate it to %llu bytes\n", (unsigned long long)res.files[0]->ok_up_to);
 *     aof_check_done(&res);
 *     rd_src_close(src);
 *
 * The check makes one pass over the base and the incremental files, in memory that does not depend
 * on their size. It reads a file up to the first structural damage, and then searches the rest for
 * whole commands. The result decides the repair: a torn tail of the last file can be truncated, but
 * damage with commands after it needs aof/salvage.h.
 *
 * Commands are not run: their names are compared with the known names, and their arguments are only
 * measured.
 *
 * Threads: one thread calls aof_check(), which may start a second one and ends it before it
 *   returns; callbacks run on the calling thread. Different logs may be checked at the same
 *   time.
 * Ownership: the caller releases the result. What a callback receives is valid until it returns.
 * Errors: damage is part of the result. A function returns false only if it could not check.
 * Cost: linear in the bytes.
 */
#ifndef AOF_CHECK_H
#define AOF_CHECK_H

#include "aof/aof.h"
#include "aof/manifest.h"

#include "rdb/check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Findings also use the words of AOF_MANIFEST_PROBLEMS and, for a snapshot in a base file, those of
 * RDB_FINDINGS and RDB_NOTES. The words are stable. */
#define AOF_FINDINGS(X)                                                                            \
    X(CORRUPT, 201, "corrupt", ERROR)               /* a byte that no server writes */             \
    X(TRUNCATED, 202, "truncated", ERROR)           /* the file ends inside a command */           \
    X(LIMIT, 203, "limit", ERROR)                   /* larger than servers accept */               \
    X(NOT_LOG, 204, "not-a-log", ERROR)             /* no whole command in it */                   \
    X(TEXT_MODE, 205, "text-mode", ERROR)           /* its line ends were changed */               \
    X(WRITTEN, 206, "being-written", WARNING)       /* the last command is not complete yet */     \
    X(ZERO_TAIL, 207, "zero-tail", ERROR)           /* zeros up to the end of the file */          \
    X(MULTI_OPEN, 208, "multi-without-exec", ERROR) /* at the end of the file */                   \
    X(MULTI_NESTED, 209, "multi-in-multi", ERROR)   /* or an EXEC was lost */                      \
    X(EXEC_ALONE, 210, "exec-without-multi", ERROR)                                                \
    X(MISSING, 211, "file-missing", ERROR)              /* the manifest names a missing file */    \
    X(UNKNOWN_COMMAND, 212, "unknown-command", WARNING) /* once a name */                          \
    X(TIME_BACK, 213, "time-goes-back", WARNING) /* an annotation is earlier than the last */      \
    X(BASE_NEWER, 214, "base-newer", WARNING)    /* than the commands after it */                  \
    X(ORPHAN, 215, "not-in-manifest", WARNING)   /* its name belongs to the log */                 \
    X(LEFTOVER, 216, "leftover-file", INFO)      /* the temporary file of a rewrite */             \
    X(HISTORY, 217, "history-file", INFO)        /* no longer needed */                            \
    X(EMPTY_FILE, 218, "empty-file", INFO)                                                         \
    X(INNER, 219, "script-in-transaction", INFO) /* with a MULTI and an EXEC of its own */         \
    X(SHORT_COMMAND, 220, "too-few-arguments", ERROR)                                              \
    X(DISCARD, 221, "discard-in-multi", ERROR)                                                     \
    X(LATE_SNAPSHOT, 222, "snapshot-in-incr", ERROR) /* its keys may exist already */

enum aof_finding_id {
#define X(name, number, word, severity) AOF_FINDING_##name = number,
    AOF_FINDINGS(X)
#undef X
};

/* Only the library allocates it. */
struct aof_finding {
    unsigned id; /* enum aof_finding_id, aof_manifest_problem, rdb_finding_id or rdb_note_id: no
                         number is in two of them */
    const char *word; /* the stable word of the id */
    enum rdb_severity severity;
    const char *file;                   /* its name; NULL: the manifest, or the log as a whole */
    uint64_t offset;                    /* in it, or RD_NO_OFFSET */
    uint64_t line;                      /* its line, as an editor counts; 0: unknown */
    uint64_t command;                   /* its number in the file, from 1; 0: not about a command */
    const struct rdb_finding *snapshot; /* details of a finding about a snapshot, or NULL */
    const char *text;                   /* lives until the callback returns */
};

/* From best to worst. */
#define AOF_VERDICTS(X)                                                                            \
    X(SOUND, 0, "ok")                                                                              \
    X(WARNED, 1, "warnings")                                                                       \
    X(WRITTEN, 2, "being-written")     /* whole except for a last command that is being written */ \
    X(TORN, 3, "torn")                 /* the end of the last file: it can be truncated */         \
    X(BAD_MANIFEST, 4, "bad-manifest") /* only the list of files must be rebuilt */                \
    X(UNSUPPORTED, 5, "unsupported")   /* the snapshot has an unknown version or type */           \
    X(MISSING, 6, "missing")           /* a file of the log */                                     \
    X(DAMAGED, 7, "damaged")           /* before the end: truncating would lose data */            \
    X(NOT_LOG, 8, "not-a-log")         /* no whole command in it: another kind of file */

enum aof_verdict {
#define X(name, number, word) AOF_VERDICT_##name = number,
    AOF_VERDICTS(X)
#undef X
};

/* The maximum number of files for which struct aof_check_detail is kept: the first ones and the
 * last. It bounds the memory for a manifest of a hundred thousand damaged files. */
enum { AOF_CHECK_DETAILS = 256 };

/* Details of a file that is damaged or holds a snapshot. Only the library allocates it. */
struct aof_check_detail {
    struct rd_err err;                /* of a file that is damaged */
    struct rdb_check_result snapshot; /* of a file that has a snapshot */
};

/* Only the library allocates it. */
struct aof_check_file {
    const char *name;
    const struct aof_file *file; /* of result.manifest; NULL for a log that is one file */
    enum aof_verdict verdict;
    enum aof_content content;
    bool last;             /* the last file of the log */
    bool damaged;          /* the commands or the snapshot break */
    enum rd_err_code code; /* then: the kind of damage */
    uint64_t broken_at;    /* and its offset, or RD_NO_OFFSET */
    bool has_snapshot;     /* it begins with one */
    bool snapshot_bad;     /* it has findings that are errors */
    enum aof_text_mode text_mode;
    const char *hint; /* advice for a file that is not a log, or NULL */
    uint64_t size;
    uint64_t ok_up_to; /* after the last whole command that is not inside a transaction */
    uint64_t ok_up_to_line;
    uint64_t whole; /* after the last whole command */
    uint64_t after; /* where whole commands continue after the damage, or RD_NO_OFFSET */
    bool searched;  /* after the damage */
    uint64_t zeros; /* zero bytes at the end of a file that is damaged */
    uint64_t commands, transactions, annotations; /* up to the damage */
    int64_t first_time, last_time;                /* seconds, of time annotations, or AOF_NO_TIME */
    int64_t saved; /* when the snapshot was saved (its aux ctime), or AOF_NO_TIME */
    struct aof_check_detail *detail; /* owned by the result. NULL: a sound file of commands, or too
                                        many details already (this limit does not apply to the last
                                        file) */
};

struct aof_check_result {
    size_t size; /* of this struct: set by AOF_CHECK_RESULT() */
    enum aof_verdict verdict;
    struct aof_manifest manifest;        /* empty for a log that is one file */
    struct aof_check_file *const *files; /* in the order in which they are read */
    size_t n_files;
    uint64_t errors, warnings, infos; /* findings by severity */
    uint64_t commands, transactions, annotations, bytes;
    int64_t first_time, last_time;
};
#define AOF_CHECK_RESULT(...) RD_SIZED(aof_check_result, __VA_ARGS__)

struct aof_check_opts {
    size_t size; /* of this struct: set by AOF_CHECK_OPTS() */
    /* Opens a file of the log, read from its beginning; closed by the check. A missing file is
     * RD_ERR_IO with sys ENOENT. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void (*finding)(void *ctx, const struct aof_finding *finding); /* may be NULL */
    /* Whether the last file is being written: a process has it open for writing, or its size has
     * changed. NULL: unknown. */
    bool (*written)(void *ctx, const struct aof_file *file, uint64_t size);
    /* Called for each command up to the damage with its name, which is valid until the callback
     * returns. The name is empty if it has more than 64 bytes and the command came in pieces. May
     * be NULL. */
    void (*command)(void *ctx, struct rd_slice name);
    /* Called regularly with the source that is being read; may be NULL. */
    void (*tick)(void *ctx, const struct rd_src *src);
    void *ctx;
    /* The names in the folder, to find files that the manifest does not list; NULL: do not search.
     */
    const char *const *names;
    size_t n_names;
    const char *prefix; /* of the files' names: "appendonly.aof" */
    int64_t now_ms;     /* to count expired keys of a snapshot; 0: do not count */
    bool quick;         /* of snapshots: framing and checksum only */
    bool single_thread;
    const struct rdb_spool *spool; /* see rdb/check.h */
    uint64_t seed[2];              /* see rdb/check.h */
};
#define AOF_CHECK_OPTS(...) RD_SIZED(aof_check_opts, __VA_ARGS__)

/* Checks the log that a manifest lists. False if the check failed. *ret is set when the function
 * returns, in either case; release it with aof_check_done(). */
RD_API bool aof_check(struct rd_src *manifest, const struct aof_check_opts *opts,
                      struct aof_check_result *ret, struct rd_err *err);

/* Checks a log that is one file (before 7.0, or a single file of a folder). `name` is used in
 * findings and must outlive *ret; opts->open is not used. */
RD_API bool aof_check_one(struct rd_src *src, const char *name, const struct aof_check_opts *opts,
                          struct aof_check_result *ret, struct rd_err *err);

RD_API void aof_check_done(struct aof_check_result *res);

RD_API const char *aof_verdict_word(enum aof_verdict verdict);

#ifdef __cplusplus
}
#endif

#endif
