/* restore.h - shared by the parts of `redoubt restore`; private to tools/restore/.
 *
 *     restore.c   options; the set, or the moment, that is restored
 *     log.c       the snapshot that the log of a set amounts to
 *     layout.c    files and folders as a server loads them
 *     staging.c   several files that get their names together
 *     send.c      into a running server
 *     report.c    the result
 */
#ifndef TOOLS_RESTORE_RESTORE_H
#define TOOLS_RESTORE_RESTORE_H

#include "backup/plan.h"
#include "client/target.h"
#include "rebuild/data.h"
#include "tools/cli/filter.h"
#include "tools/vault/vault.h"

enum { RESTORE_PATH_MAX = 4096 };

enum restore_layout { RESTORE_LAYOUT_AUTO, RESTORE_LAYOUT_RDB, RESTORE_LAYOUT_AOF };

/* A repository. */
struct restore_source {
    struct archive_repo *repo;
    bool listed;
    struct rd_err err; /* set: it cannot be read */
    struct archive_sets sets;
    const struct archive_set *newest; /* the newest good one when they were listed */
};

struct restore {
    struct cli *cli;
    struct vault vault;
    char *to;          /* owned */
    const char *shown; /* `to` without a password */
    struct client_target server;
    bool force, dry_run;
    bool keep_unknown; /* see struct rebuild_data */
    int layout;        /* enum restore_layout */
    const char *offset_text, *before_text;
    struct backup_want want;
    uint64_t version; /* of the RDB; 0: as it is */
    int dialect;      /* -1: as it is */
    struct filter filter;
    struct rd_buf patterns; /* of --key */

    struct backup_open open;
    struct restore_source sources[BACKUP_STORES];
    const struct restore_source *source; /* the one that is tried */
    struct archive_repo *repo;           /* of it */
    const struct archive_set *set;
    struct backup_plan plan; /* unless the goal is BACKUP_GOAL_SET */
    struct rebuild_counts result;
    uint64_t keys;        /* sent, or kept by the filter */
    size_t masters;       /* of the running cluster that got them; 0: a single server */
    bool nothing;         /* the filter matches no key */
    struct rd_buf staged; /* the names of files that wait for others */
    struct rd_buf made;   /* the folders that this run created */
};

/* Whether the set is a cluster; whether it is a log. */
bool restore_of_cluster(const struct archive_set *set);
bool restore_of_log(const struct archive_set *set);
/* Whether the snapshot must be changed. */
bool restore_converts(const struct restore *run);
/* Whether the destination becomes a folder with a log. */
bool restore_makes_log(const struct restore *run);

/* ---- log.c ---- */

/* Writes the snapshot of the data that the log of the set holds. */
bool restore_rebuild(struct restore *run, struct rd_sink *out, struct rd_err *err);

/* ---- layout.c ---- */

/* Writes the snapshot that is restored, of the set or of the moment, into a spool that is empty. */
bool restore_spool(struct restore *run, const struct archive_file *file, struct spool *spool,
                   struct rd_err *err);
/* Into a file or a folder. */
bool restore_lay_out(struct restore *run, struct rd_err *err);

/* ---- staging.c ---- */

/* Turns the path of a file into the one under which it waits for the others. */
bool restore_stage(struct restore *run, char path[RESTORE_PATH_MAX], struct rd_err *err);
/* All files are complete: gives them their names. */
bool restore_publish(struct restore *run, struct rd_err *err);
/* Creates a folder unless it exists. */
bool restore_make_folder(struct restore *run, const char *path, struct rd_err *err);
/* Removes the files that still wait, and, unless the restore is complete, the folders that it made
 * if they are empty. */
void restore_unstage(struct restore *run, bool complete);

/* ---- send.c ---- */

bool restore_send(struct restore *run, struct rd_err *err);

/* ---- report.c ---- */

/* Adds the commands that were run for a log, a moment or a master of a cluster. */
void restore_count(struct restore *run, const struct rebuild_counts *counts);
void restore_report(struct restore *run);

#endif
