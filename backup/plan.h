/* plan.h - the set and the segments of the stream that a moment is made of.
 *
 *     struct backup_plan plan = {.watch = watch, .repo = &repo, .ring = ring,
 *                                .want = {.goal = BACKUP_GOAL_TIME, .ms = ms}};
 *     if (!backup_plan_make(&plan, &sets, &err))
 *         ...
 *     ... plan.base, and the segments from plan.first to plan.last: see replay.h ...
 *     backup_plan_done(&plan);
 *
 * A moment is restored only if it is proved: a set is a base for it, no segment is missing, and the
 * archive was not interrupted then.
 */
#ifndef BACKUP_PLAN_H
#define BACKUP_PLAN_H

#include "archive/stream.h"
#include "base/watch.h"
#include "capture/segment_in.h"

enum backup_goal {
    BACKUP_GOAL_SET,    /* a set as it is: no plan is needed */
    BACKUP_GOAL_TIME,   /* the last command up to a time */
    BACKUP_GOAL_OFFSET, /* the last command that ends at or before an offset */
    BACKUP_GOAL_BEFORE  /* before the command that begins at an offset */
};

struct backup_want {
    enum backup_goal goal;
    int64_t ms;
    uint64_t offset;
    const char *id;     /* the base: the id of a set or its beginning; NULL: any */
    const char *replid; /* the history, likewise */
};

struct backup_plan {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    const struct rd_seal_ring *ring;
    struct backup_want want;

    /* Set by this library. */
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

/* Whether the set is a single snapshot. */
bool backup_plan_is_snapshot(const struct archive_set *set);

/* Finds the set and the segments for the moment. RD_ERR_USAGE if it cannot be proved; the error
 * lists the moments that can be. backup_plan_done() is called in any case. */
bool backup_plan_make(struct backup_plan *plan, struct archive_sets *sets, struct rd_err *err);

/* Only fills in plan->stream, with a warning about segments that are left out. */
bool backup_plan_list(struct backup_plan *plan, struct rd_err *err);

/* A plan for a master in the set of a cluster; `file` is its snapshot. */
void backup_plan_node(struct backup_plan *plan, const struct archive_set *set,
                      const struct archive_file *file);

/* Opens segment i. One of the stream is compared with its name and, with an order, with the one
 * before it; those of a cluster's set are proved by its manifest. */
bool backup_plan_open(const struct backup_plan *plan, size_t i, struct archive_order *order,
                      struct segment_in *ret, struct rd_err *err);

void backup_plan_done(struct backup_plan *plan);

#endif
