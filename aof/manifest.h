/* manifest.h - the list of the files of a log.
 *
 *     file appendonly.aof.1.base.rdb seq 1 type b
 *     file appendonly.aof.1.incr.aof seq 1 type i
 *     # a comment
 *     file "a name with \x20 blanks" seq 2 type i startoffset 1200 endoffset 3400
 *
 * A line is a list of key and value pairs, quoted as in redis.conf if necessary. file, seq and type
 * are required, in any order and case; startoffset and endoffset (Redis 8, on incremental files)
 * are offsets of the replication stream; other pairs are kept unchanged. If a key occurs twice, the
 * last one counts. Lines end with LF or CR LF, have at most 1024 bytes including the line end, and
 * may begin and end with blanks. A comment has '#' at the start of the line. Only the leading
 * digits of a seq and the first byte of a type count. (aof.c of Redis 7.0:
 * aofLoadManifestFromFile.)
 *
 * Example: lists the files of a log.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct aof_manifest m;
 *     aof_manifest_init(&m);
 *     if (!rd_src_open_file(&src, "appendonlydir/appendonly.aof.manifest", NULL, &err) ||
 *         !aof_manifest_read(&m, src, NULL, NULL, &err))
 *         return 1;
 *     for (size_t i = 0; i < aof_manifest_count(&m); i++)
 *         puts(aof_manifest_file(&m, i)->name);
 *     aof_manifest_done(&m);
 *     rd_src_close(src);
 *
 * Threads: one thread at a time uses a manifest; different manifests are independent.
 * Ownership: a manifest owns its files until aof_manifest_done(). Pointers to files are valid
 *   until it changes.
 * Errors: false and *err, or the callback for problems.
 * Cost: reading takes n log n for n files; adding is amortized constant time.
 */
#ifndef AOF_MANIFEST_H
#define AOF_MANIFEST_H

#include "aof/aof.h"
#include "base/sink.h"
#include "base/src.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AOF_MANIFEST_LINE_MAX = 1024, AOF_NAME_MAX = 255, AOF_FILES_MAX = 100000 };

/* Open: programs make such structs for aof_manifest_add(). A line has no other fixed fields; more
 * pairs are in `extra`. */
struct aof_file {
    char *name; /* without '/'; NUL-terminated */
    uint64_t seq;
    enum aof_type type;
    int64_t start_offset, end_offset; /* of the replication stream; -1: not given */
    char *extra;                      /* other pairs, as written, or NULL */
    uint64_t offset;                  /* of its line */
    unsigned line;                    /* 1 is the first; 0: not from a file */
};

/* Open, so that it can be part of other structs. The contents are private. */
struct aof_manifest {
    struct aof_manifest_state *state; /* NULL: empty */
};

RD_API void aof_manifest_init(struct aof_manifest *m);
/* Frees the contents; *m is empty afterwards. */
RD_API void aof_manifest_done(struct aof_manifest *m);

/* The files in the order of the lines; index < aof_manifest_count(). A caller may change fields of
 * a file, except name and extra. */
RD_API size_t aof_manifest_count(const struct aof_manifest *m);
RD_API struct aof_file *aof_manifest_file(const struct aof_manifest *m, size_t index);

/* Problems: name, number, stable word, and whether servers refuse to start because of it. */
#define AOF_MANIFEST_PROBLEMS(X)                                                                   \
    X(EMPTY, 301, "manifest-empty", 1)           /* no bytes */                                    \
    X(NO_FILES, 302, "manifest-no-files", 0)     /* only comments; servers start a new log */      \
    X(LINE_LONG, 303, "manifest-line-long", 1)   /* more than 1024 bytes */                        \
    X(LINE_BLANK, 304, "manifest-line-blank", 1) /* no pairs */                                    \
    X(LINE_CUT, 305, "manifest-line-cut", 1)     /* no line end at the end of the file */          \
    X(LINE_PAIRS, 306, "manifest-line-pairs",                                                      \
      1) /* an odd number of words, or quotes without an end */                                    \
    X(LINE_NUL, 307, "manifest-line-nul", 1)                                                       \
    X(NO_NAME, 308, "manifest-no-name", 1)                                                         \
    X(BAD_NAME, 309, "manifest-bad-name", 1) /* a path, empty, too long, or with a NUL */          \
    X(BAD_SEQ, 310, "manifest-bad-seq", 1)   /* missing, not a number, or 0 */                     \
    X(BAD_TYPE, 311, "manifest-bad-type", 1) /* not b, h or i */                                   \
    X(BAD_OFFSET, 312, "manifest-bad-offset", 0)                                                   \
    X(TWO_BASES, 313, "manifest-two-bases", 1)                                                     \
    X(SEQ_ORDER, 314, "manifest-seq-order", 1)     /* incremental files not in ascending order */  \
    X(SAME_NAME, 315, "manifest-same-name", 0)     /* a file listed twice */                       \
    X(SEQ_MISSING, 316, "manifest-seq-missing", 0) /* a gap between two numbers */                 \
    X(NO_TYPE, 317, "manifest-no-type", 1)

enum aof_manifest_problem {
#define X(name, number, word, fatal) AOF_MANIFEST_##name = number,
    AOF_MANIFEST_PROBLEMS(X)
#undef X
};

/* Called for each problem, in file order (same-name and no-files last). offset is that of the first
 * wrong byte; line 0 means the whole file. */
typedef void (*aof_manifest_problem_fn)(void *ctx, enum aof_manifest_problem problem,
                                        uint64_t offset, unsigned line, const char *text);

/* Reads all of src (not a push source), at most AOF_FILES_MAX files (RD_ERR_LIMIT). *m must be
 * initialized and empty. If `problem` is NULL, the first problem for which servers refuse to start
 * is RD_ERR_CORRUPT at its offset, and *m stays empty. Otherwise problems are reported to it,
 * unusable lines are left out (a second base; an incremental file listed again), and the other
 * files are in *m. False also for I/O and memory errors. */
RD_API bool aof_manifest_read(struct aof_manifest *m, struct rd_src *src,
                              aof_manifest_problem_fn problem, void *ctx, struct rd_err *err);

RD_API const char *aof_manifest_problem_word(enum aof_manifest_problem problem);
/* Whether servers refuse to start because of it. */
RD_API bool aof_manifest_problem_fatal(enum aof_manifest_problem problem);
/* The message with which servers refuse. *ret_line: they also print the line. */
RD_API const char *aof_manifest_problem_refusal(enum aof_manifest_problem problem, bool *ret_line);

/* Writes the manifest as servers do: base, history, incremental files, with names quoted if
 * necessary. Comments are not kept. */
RD_API bool aof_manifest_write(const struct aof_manifest *m, struct rd_sink *sink);

/* Adds a copy at the end. NULL: out of memory. */
RD_API struct aof_file *aof_manifest_add(struct aof_manifest *m, const struct aof_file *file);
RD_API void aof_manifest_remove(struct aof_manifest *m, size_t index);

/* NULL: no such file. */
RD_API const struct aof_file *aof_manifest_base(const struct aof_manifest *m);
RD_API const struct aof_file *aof_manifest_last_incr(const struct aof_manifest *m);

/* "appendonly.aof", 3, AOF_BASE, true: "appendonly.aof.3.base.rdb". False: dst is too small, or
 * such a file cannot exist (AOF_HISTORY; an incremental snapshot). */
RD_API bool aof_file_name(char *dst, size_t size, const char *prefix, uint64_t seq,
                          enum aof_type type, bool snapshot);

/* The reverse: false if `name` does not belong to `prefix`. *ret_snapshot: it ends with .rdb.
 * History files keep their names, so *ret_type is AOF_BASE or AOF_INCR. */
RD_API bool aof_file_name_parse(const char *name, const char *prefix, uint64_t *ret_seq,
                                enum aof_type *ret_type, bool *ret_snapshot);

/* Whether servers write a snapshot into this file: a base whose name ends with .rdb. Such a file is
 * never empty; all others may be. */
RD_API bool aof_file_holds_snapshot(const struct aof_file *file);

#ifdef __cplusplus
}
#endif

#endif
