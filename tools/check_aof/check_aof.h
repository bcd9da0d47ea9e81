/* check_aof.h - shared by the parts of check-aof; the check of doctor uses it, too.
 *
 * check_aof.c finds the files of a log, checks them and stores the results in a struct aof_job;
 * tools/check_aof/report.c prints it as text and tools/check_aof/json.c as JSON;
 * tools/check_aof/change.c plans and makes the changes.
 */
#ifndef TOOLS_CHECK_AOF_CHECK_AOF_H
#define TOOLS_CHECK_AOF_CHECK_AOF_H

#include "aof/check.h"
#include "aof/rebuild.h"
#include "aof/repair.h"
#include "rebuild/knows.h"
#include "tools/cli/findings.h"

#include <limits.h>

/* The result of one check. */
struct aof_job_found {
    bool checked;
    struct aof_check_result res;
    struct findings findings;
    struct aof_job_names *names; /* with -v, else NULL */
    struct rebuild_unsupported unsupported;
};

enum aof_job_change {
    AOF_JOB_CHECK,
    AOF_JOB_FIX,
    AOF_JOB_TIME,
    AOF_JOB_OFFSET,
    AOF_JOB_SALVAGE,
    AOF_JOB_MANIFEST
};

struct aof_job {
    struct cli *cli;
    enum aof_job_change change;
    bool yes, no_copy, dry_run, force;
    int64_t time_ms;
    const char *offset; /* [FILE:]N */
    const char *out;

    const char *path;
    char shown[RD_ERR_TEXT_MAX]; /* the path, escaped for text output */
    char file[PATH_MAX];         /* the path of a log in the folder that the user gave */
    char folder[PATH_MAX];       /* of the files */
    char name[NAME_MAX + 1];     /* of the manifest, or of the one file */
    bool is_stdin, has_manifest;
    bool in_folder; /* the user gave the folder, not the manifest */
    char **names;   /* the names in the folder of a manifest */
    size_t n_names;
    uint64_t passed, current; /* bytes of the previous files and of the current one */

    struct aof_job_found found;
};

/* tools/check_aof/capture.c: verifies the capture in the folder of the path, and returns the exit
 * status. */
int aof_job_run_capture(struct aof_job *job);

/* ---- tools/check_aof/out.c: the folder that --salvage writes ---- */

/* The files are written into a new folder in OUT, and get their places when all of them are there:
 * OUT has no log, or a whole one. */
struct aof_job_out {
    const char *path; /* OUT */
    char stage[PATH_MAX];
    bool made, staged; /* OUT was created; `stage` exists */
};

/* Without `force`, OUT must be new or empty. */
bool aof_job_out_begin(struct aof_job_out *out, struct aof_job *job, struct rd_err *err);
bool aof_job_out_create(struct aof_job_out *out, struct aof_job *job, const char *name,
                        struct rd_sink **ret, struct rd_err *err);
/* Moves the file to OUT. */
bool aof_job_out_move(struct aof_job_out *out, const char *name, struct rd_err *err);
/* Removes what was not moved, and OUT if it was created and is empty. */
void aof_job_out_end(struct aof_job_out *out);

/* ---- tools/check_aof/files.c: finding the log ---- */

/* Why no log was found, although the folder can be read (rd_err_reason.id). */
enum {
    AOF_JOB_REASON_SEVERAL = 501, /* it has several manifests */
    AOF_JOB_REASON_CAPTURE        /* it holds a capture */
};

/* Fills in folder, name, has_manifest and names from the path. */
bool aof_job_find(struct aof_job *job, struct rd_err *err);
void aof_job_done(struct aof_job *job);
/* Lists the folder again after names have changed. */
bool aof_job_look_again(struct aof_job *job, struct rd_err *err);

/* Opens a file of the log; NULL: the only file of a log without a manifest. ctx is the job. */
bool aof_job_open(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
bool aof_job_open_manifest(struct aof_job *job, struct rd_src **ret, struct rd_err *err);
void aof_job_tick(void *ctx, const struct rd_src *src);

bool aof_job_full_path(const struct aof_job *job, const char *name, char *dst, size_t size,
                       struct rd_err *err);

/* ---- check_aof.c ---- */

bool aof_job_check(struct aof_job *job, struct aof_job_found *ret, struct rd_err *err);
int aof_job_status(const struct aof_job_found *found);
void aof_job_found_done(struct aof_job_found *found);

/* ---- tools/check_aof/names.c: -v ---- */

struct aof_job_names;

bool aof_job_names_new(struct aof_job_names **ret, struct rd_err *err);
void aof_job_names_add(struct aof_job_names *names, struct rd_slice name);
/* Call once after the last name: sorts, and keeps the most frequent names. */
void aof_job_names_end(struct aof_job_names *names);
void aof_job_names_report(FILE *out, const struct aof_job_names *names);
void aof_job_names_json(struct json_write *json, const struct aof_job_names *names);

/* ---- tools/check_aof/change.c ---- */

/* --fix, --truncate-to-timestamp, --truncate-to-offset; returns the exit status. */
int aof_job_run_change(struct aof_job *job);

/* ---- tools/check_aof/salvage.c ---- */

/* --salvage OUT; returns the exit status. */
int aof_job_run_salvage(struct aof_job *job);

/* ---- tools/check_aof/manifest.c ---- */

/* --fix-manifest; returns the exit status. */
int aof_job_run_manifest(struct aof_job *job);

/* Builds a manifest from the files of the folder and the readable lines of the old one; sets
 * job->name if the folder has no manifest. *ret must be initialized. */
bool aof_job_rebuild(struct aof_job *job, const struct aof_manifest *old, struct aof_rebuild *ret,
                     struct rd_err *err);

/* ---- tools/check_aof/report.c ---- */

void aof_job_report(struct cli *cli, const struct aof_job *job, const struct aof_job_found *found);
/* 2024-05-01T12:00:00Z, or "@" and the number if it is not a valid time. */
struct rd_shown aof_job_time(int64_t seconds);
/* Returns a hint that names the option to use; NULL: none is needed. */
const char *aof_job_way_out(const struct aof_check_result *res);
/* Prints "PATH: sound" and so on, without details. */
void aof_job_report_verdict(struct cli *cli, const struct aof_job *job,
                            const struct aof_job_found *found);
/* Prints the findings that are errors to stderr, with hints. */
void aof_job_report_errors(struct cli *cli, const struct aof_job *job,
                           const struct aof_job_found *found);
void aof_job_report_plan(struct cli *cli, FILE *to, const struct aof_repair *plan);
void aof_job_report_done(struct cli *cli, FILE *to, const struct aof_repair_step *step,
                         const char *saved_as);

/* ---- tools/check_aof/json.c ---- */

/* Writes the members of an open object. */
void aof_job_json(struct json_write *json, const struct aof_job *job,
                  const struct aof_job_found *found);
/* Writes one step of a change; saved_as may be NULL. */
void aof_job_json_step(struct json_write *json, const struct aof_repair_step *step,
                       const char *saved_as);

/* ---- tools/check_aof/compat.c ---- */

/* Implements `redis-check-aof [OPTION] FILE`, for scripts. */
int check_aof_compat(struct cli *cli, int argc, char **argv);

#endif
