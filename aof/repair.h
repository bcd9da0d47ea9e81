/* repair.h - truncates a log: after its last whole command, at a time, or at an offset.
 *
 * Making a plan changes nothing and lists the steps; running it performs them.
 *
 * Example: shows what truncating at a torn end would do.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct aof_check_opts opts = AOF_CHECK_OPTS();
 *     struct aof_check_result res = AOF_CHECK_RESULT();
 *     struct aof_repair plan;
 *     if (!rd_src_open_file(&src, "appendonly.aof", NULL, &err) ||
 *         !aof_check_one(src, "appendonly.aof", &opts, &res, &err))
 *         return 1;
 *     aof_repair_init(&plan);
 *     if (aof_repair_plan_fix(&plan, &res, &err))
 *         for (size_t i = 0; i < aof_repair_count(&plan); i++)
 *             printf("%s: %llu bytes\n", aof_repair_step(&plan, i)->name,
 *                    (unsigned long long)aof_repair_step(&plan, i)->to);
 *     // struct aof_repair_run run = AOF_REPAIR_RUN(.folder = ".", .suffix = ".saved");
 *     // aof_repair_run(&plan, &run, &err) does it
 *     aof_repair_done(&plan);
 *     aof_check_done(&res);
 *     rd_src_close(src);
 *
 * A log is never truncated inside a command or a transaction. Files after the truncated one are
 * removed from the manifest and renamed, not deleted. The truncated file is copied first. A crash
 * between two steps leaves either a log that a server loads or the original log, and no byte is
 * removed that is not in a durable copy:
 *
 *     the copy is made durable -> the manifest is replaced atomically -> the file is truncated ->
 *     files that are no longer in the manifest are renamed
 *
 * Threads: one thread at a time uses a plan; callbacks run on it.
 * Ownership: a plan owns its steps until aof_repair_done(). The caller owns everything it
 *   passes.
 * Errors: false and *err; a plan that could not be made is empty.
 * Cost: planning reads the log as far as the cut; running copies one file.
 */
#ifndef AOF_REPAIR_H
#define AOF_REPAIR_H

#include "aof/check.h"
#include "aof/manifest.h"

#ifdef __cplusplus
extern "C" {
#endif

enum aof_repair_kind {
    AOF_REPAIR_CUT = 0,  /* truncate to the first `to` bytes */
    AOF_REPAIR_ASIDE = 1 /* remove from the manifest, and rename */
};

/* Only the library allocates it. */
struct aof_repair_step {
    enum aof_repair_kind kind;
    char *name;
    uint64_t size; /* now */
    uint64_t to;   /* CUT */
};

/* Open, so that it can be part of other structs. The contents are private. */
struct aof_repair {
    struct aof_repair_state *state; /* NULL: empty */
};

/* The steps in their order; index < aof_repair_count(). At most one truncates a file, and it is the
 * first. Without a step there is nothing to do. */
RD_API size_t aof_repair_count(const struct aof_repair *plan);
RD_API const struct aof_repair_step *aof_repair_step(const struct aof_repair *plan, size_t index);

/* The new manifest; NULL: it does not change. */
RD_API const struct aof_manifest *aof_repair_manifest(const struct aof_repair *plan);

/* After aof_repair_plan_time(): time of the first annotation that is removed, or AOF_NO_TIME. */
RD_API int64_t aof_repair_time(const struct aof_repair *plan);

/* A log whose files can be opened. */
struct aof_repair_log {
    size_t size;                         /* of this struct: set by AOF_REPAIR_LOG() */
    const struct aof_manifest *manifest; /* NULL: one file */
    const char *name;                    /* of that file */
    /* `file` is NULL for a log that is one file. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void (*tick)(void *ctx, const struct rd_src *src); /* may be NULL */
    void *ctx;
};
#define AOF_REPAIR_LOG(...) RD_SIZED(aof_repair_log, __VA_ARGS__)

RD_API void aof_repair_init(struct aof_repair *plan);
RD_API void aof_repair_done(struct aof_repair *plan);

/* Truncates the last file after the last whole command that is not in a transaction. RD_ERR_CORRUPT
 * if that does not repair the log: damage in another file, in a snapshot or in the manifest, a file
 * that is not a log, changed line ends. RD_ERR_LOCKED: the file is being written. */
RD_API bool aof_repair_plan_fix(struct aof_repair *plan, const struct aof_check_result *checked,
                                struct rd_err *err);

/* Keeps the data written up to the end of second time_s: everything before the first later
 * annotation. RD_ERR_USAGE if the base was saved later (according to the aux field ctime of a
 * snapshot, or the first annotation of a base of commands), or if the log has no time annotation.
 * Damage before that position is RD_ERR_CORRUPT or RD_ERR_TRUNCATED. */
RD_API bool aof_repair_plan_time(struct aof_repair *plan, const struct aof_repair_log *log,
                                 int64_t time_s, struct rd_err *err);

/* Truncates the named file (NULL: the last) to `offset` bytes. RD_ERR_USAGE if no command or
 * transaction ends there; the text names the nearest ends before and after it. The bytes after the
 * offset may be damaged. */
RD_API bool aof_repair_plan_offset(struct aof_repair *plan, const struct aof_repair_log *log,
                                   const char *file, uint64_t offset, struct rd_err *err);

struct aof_repair_run {
    size_t size;          /* of this struct: set by AOF_REPAIR_RUN() */
    const char *folder;   /* of the files and the manifest */
    const char *manifest; /* name of the manifest, if plan.swap */
    const char *suffix;   /* of copies and of renamed files: ".redoubt-save-TIME" */
    bool no_copy;         /* do not copy the truncated file; other files are still renamed */
    void (*done)(void *ctx, const struct aof_repair_step *step, const char *saved_as);
    void *ctx;
};
#define AOF_REPAIR_RUN(...) RD_SIZED(aof_repair_run, __VA_ARGS__)

/* RD_ERR_LOCKED, before any change, if the size of a file differs from the plan or another process
 * has it open for writing. If it fails later, all original data still exists, under its name or
 * with the suffix. */
RD_API bool aof_repair_run(const struct aof_repair *plan, const struct aof_repair_run *run,
                           struct rd_err *err);

/* Whether a process has the file open for writing, as far as the kernel can tell. It grants a read
 * lease only if no process writes the file; some file systems do not support leases, and only the
 * owner can get one. */
RD_API bool aof_file_is_written(const char *path);

#ifdef __cplusplus
}
#endif

#endif
