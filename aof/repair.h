/* repair.h - cuts a log: after its last whole command, at a time, or at an offset.
 *
 * First a plan is made, which changes nothing and says what would be done; then it is carried out.
 *
 *     struct aof_repair plan;
 *     aof_repair_init(&plan);
 *     if (aof_repair_plan_time(&plan, &log, 1700000000, &err)) {
 *         ... show plan.steps[0] … plan.steps[plan.n_steps - 1], ask ...
 *         ok = aof_repair_run(&plan, &run, &err);
 *     }
 *     aof_repair_done(&plan);
 *
 * A log is never cut inside of a command or a transaction. Files after the one that is cut leave
 * the manifest and are renamed, not deleted. A file that is cut is copied before. The order of what
 * is done is such that a crash between two steps leaves a log that a server loads, or the log as it
 * was, and never takes a byte away that is not in a durable copy:
 *
 *     the copy is written and durable -> the manifest is replaced in one step -> the file is cut ->
 *     files that the manifest does not name any more are renamed
 */
#ifndef AOF_REPAIR_H
#define AOF_REPAIR_H

#include "aof/check.h"
#include "aof/manifest.h"

enum aof_repair_kind {
    AOF_REPAIR_CUT,  /* to its first `to` bytes */
    AOF_REPAIR_ASIDE /* out of the manifest, and renamed */
};

struct aof_repair_step {
    enum aof_repair_kind kind;
    char *name;
    uint64_t size; /* now */
    uint64_t to;   /* CUT */
};

struct aof_repair {
    struct aof_repair_step *steps; /* at most one CUT, the first; none: there is nothing to do */
    size_t n_steps, cap_steps;
    bool swap;                    /* the manifest changes */
    struct aof_manifest manifest; /* then: the new one */
    int64_t time_s;               /* plan_time: of the first annotation that goes, or AOF_NO_TIME */
    int64_t base_time;            /* plan_time: when the base was saved, or AOF_NO_TIME */
    uint64_t annotations;         /* plan_time: time annotations that were seen */
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

void aof_repair_init(struct aof_repair *plan);
void aof_repair_done(struct aof_repair *plan);

/* Cuts the last file after the last whole command that is not in a transaction. RD_ERR_CORRUPT
 * where that does not help: damage in another file, in a snapshot or in the manifest, a file that
 * is not a log, changed line ends. RD_ERR_LOCKED: it is being written. */
RD_API bool aof_repair_plan_fix(struct aof_repair *plan, const struct aof_check_result *checked,
                                struct rd_err *err);

/* Keeps what was written up to the end of second time_s: what stands before the first annotation
 * that is later. RD_ERR_USAGE where the base was saved later (a snapshot says so in its aux ctime,
 * a base of commands in its first annotation), and where no annotation tells a time. Damage before
 * the place is RD_ERR_CORRUPT or RD_ERR_TRUNCATED. */
RD_API bool aof_repair_plan_time(struct aof_repair *plan, const struct aof_repair_log *log,
                                 int64_t time_s, struct rd_err *err);

/* Cuts the named file (NULL: the last) to `offset` bytes. RD_ERR_USAGE where a command or
 * transaction does not end there: the text names the ends before and after it. What follows
 * the place may be damaged. */
RD_API bool aof_repair_plan_offset(struct aof_repair *plan, const struct aof_repair_log *log,
                                   const char *file, uint64_t offset, struct rd_err *err);

struct aof_repair_run {
    const char *folder;   /* of the files and the manifest */
    const char *manifest; /* name of the manifest, where plan.swap */
    const char *suffix;   /* of copies and of files that are set aside: ".redoubt-save-TIME" */
    bool no_copy;         /* of the file that is cut; files are set aside all the same */
    void (*done)(void *ctx, const struct aof_repair_step *step, const char *saved_as);
    void *ctx;
};

/* RD_ERR_LOCKED, before anything is done, where a file has another size than planned or another
 * process has it open for writing. When it fails later, everything that was is still there, under
 * its name or with the suffix. */
RD_API bool aof_repair_run(const struct aof_repair *plan, const struct aof_repair_run *run,
                           struct rd_err *err);

/* Whether some process has the file open for writing, as far as the kernel tells (it grants a lease
 * to read only where nobody writes; not on every file system, and to the owner alone). */
RD_API bool aof_file_is_written(const char *path);

#endif
