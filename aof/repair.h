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
 *         for (size_t i = 0; i < plan.n_steps; i++)
 *             printf("%s: %llu bytes\n", plan.steps[i].name, (unsigned long long)plan.steps[i].to);
 *     // struct aof_repair_run run = {.folder = ".", .suffix = ".saved"};
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

struct aof_repair_step {
    enum aof_repair_kind kind;
    char *name;
    uint64_t size; /* now */
    uint64_t to;   /* CUT */
};

struct aof_repair {
    struct aof_repair_step *steps; /* at most one CUT, the first; empty: nothing to do */
    size_t n_steps, cap_steps;
    bool swap;                    /* the manifest changes */
    struct aof_manifest manifest; /* if swap: the new one */
    int64_t time_s;               /* plan_time: of the first removed annotation, or AOF_NO_TIME */
    int64_t base_time;            /* plan_time: when the base was saved, or AOF_NO_TIME */
    uint64_t annotations;         /* plan_time: number of time annotations read */
};

/* A log whose files can be opened. */
struct aof_repair_log {
    const struct aof_manifest *manifest; /* NULL: one file */
    const char *name;                    /* of that file */
    /* `file` is NULL for a log that is one file. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void (*tick)(void *ctx, const struct rd_src *src); /* may be NULL */
    void *ctx;
};

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
    const char *folder;   /* of the files and the manifest */
    const char *manifest; /* name of the manifest, if plan.swap */
    const char *suffix;   /* of copies and of renamed files: ".redoubt-save-TIME" */
    bool no_copy;         /* do not copy the truncated file; other files are still renamed */
    void (*done)(void *ctx, const struct aof_repair_step *step, const char *saved_as);
    void *ctx;
};

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
