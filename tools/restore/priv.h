/* priv.h - shared by the parts of `redoubt restore`; private to tools/restore/.
 *
 *     restore.c   options; the set, or the moment, that is restored
 *     plan.c      which set and which segments of the stream a moment needs
 *     stream.c    replays the segments on top of the set
 *     log.c       the snapshot that the log of a set amounts to
 *     layout.c    files and folders as a server loads them
 *     staging.c   several files that get their names together
 *     send.c      into a running server
 *     report.c    the result
 */
#ifndef TOOLS_RESTORE_PRIV_H
#define TOOLS_RESTORE_PRIV_H

#include "archive/stream.h"
#include "client/target.h"
#include "rebuild/data.h"
#include "tools/cli/filter.h"
#include "capture/segment_in.h"
#include "tools/vault/vault.h"

enum { RESTORE_PATH_MAX = 4096 };

enum restore_layout { RESTORE_LAYOUT_AUTO, RESTORE_LAYOUT_RDB, RESTORE_LAYOUT_AOF };

enum restore_goal { RESTORE_SET, RESTORE_TIME, RESTORE_OFFSET, RESTORE_BEFORE };

/* The parts that make up a moment. */
struct restore_plan {
    struct archive_stream stream;
    const struct archive_set *base;
    size_t begin, end;  /* the chain */
    size_t first, last; /* segments to read; first > last: the base is the moment itself */
    uint64_t offset;    /* of the moment: the end of the last command */
    const struct archive_file *file; /* the snapshot of the base */
    uint64_t base_offset;            /* its offset */
    uint64_t node;                   /* of a cluster's set, whose files are the segments; else 0 */
    int64_t last_us;                 /* the time of that command, if one was read; 0: unknown */
    bool of_log;                     /* the chain is that of an append-only folder */
    const char *why;                 /* a chain has the moment in an outage; or NULL */
    int64_t silence_ms; /* around the moment, if interruptions were not recorded; 0: they were */
};

struct restore {
    struct cli *cli;
    struct vault vault;
    char *to; /* owned */
    const char *id;
    const char *shown; /* `to` without a password */
    struct client_target server;
    bool force, dry_run;
    bool keep_unknown; /* see struct rebuild_data */
    int layout;        /* enum restore_layout */
    int64_t target_ms;
    const char *offset_text, *before_text, *replid;
    uint64_t version; /* of the RDB; 0: as it is */
    int dialect;      /* -1: as it is */
    struct filter filter;
    struct rd_buf patterns; /* of --key */

    enum restore_goal goal;
    uint64_t target; /* offset of RESTORE_OFFSET and RESTORE_BEFORE */
    struct backup_open open;
    struct archive_repo *repo;
    const struct archive_set *set;
    struct restore_plan plan; /* unless goal is RESTORE_SET */
    struct rebuild_counts result;
    uint64_t keys;        /* sent, or kept by the filter */
    size_t masters;       /* of the running cluster that got them; 0: a single server */
    bool nothing;         /* the filter matches no key */
    struct rd_buf staged; /* the names of files that wait for others */
};

/* Whether the set is a single snapshot; whether it is a cluster. */
bool restore_of_snapshot(const struct archive_set *set);
bool restore_of_cluster(const struct archive_set *set);
bool restore_of_log(const struct archive_set *set);
/* Whether the snapshot must be changed. */
bool restore_converts(const struct restore *run);
/* Whether the destination becomes a folder with a log. */
bool restore_makes_log(const struct restore *run);

/* ---- plan.c ---- */

/* Finds the set and the segments for the moment, in run->repo. RD_ERR_USAGE if it cannot be proved;
 * the error lists the moments that can be. */
bool restore_plan_make(struct restore *run, struct archive_sets *sets, struct rd_err *err);
void restore_plan_done(struct restore_plan *plan);

/* ---- stream.c ---- */

/* Opens segment i of the plan and compares it with its name and, with an order, with the one before
 * it. */
bool restore_open_segment(struct restore *run, size_t i, struct archive_order *order,
                          struct segment_in *ret, struct rd_err *err);
/* Makes the plan for a master in the set of a cluster; `file` is its snapshot. */
void restore_plan_node(struct restore *run, const struct archive_file *file);
/* Writes the snapshot of the moment. */
bool restore_replay(struct restore *run, struct rd_sink *out, struct rd_err *err);

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
/* Removes the files that still wait. */
void restore_unstage(struct restore *run);

/* ---- send.c ---- */

bool restore_send(struct restore *run, struct rd_err *err);

/* ---- report.c ---- */

/* Adds the commands that were run for a log, a moment or a master of a cluster. */
void restore_count(struct restore *run, const struct rebuild_counts *counts);
void restore_report(struct restore *run);

#endif
