/* timeline.h - finds the state of a log at a given time from its time annotations.
 *
 *     struct aof_timeline line;
 *     aof_timeline_init(&line, limit_s);
 *     for each event of the log, in order:
 *         snapshot:    aof_timeline_snapshot(&line, saved_s, name, &err)    // false: refuse
 *         command:     aof_timeline_command(&line, in_base)
 *         annotation:  aof_timeline_annotation(&line, t, in_base, name, &err)
 *             AOF_TIMELINE_GO_ON, AOF_TIMELINE_REFUSE, or AOF_TIMELINE_STOP: the rest is later than
 *             the limit
 *     at the end, if nothing was later: aof_timeline_end(&line, &err)
 *
 * The data at a given time is known only if annotations record when commands were written
 * (aof-timestamp-enabled, off by default), and if the base is not later. All other cases are
 * RD_ERR_USAGE with the reason.
 */
#ifndef AOF_TIMELINE_H
#define AOF_TIMELINE_H

#include "aof/aof.h"

struct aof_timeline {
    int64_t limit_s;
    int64_t base_s; /* time of the base, or AOF_NO_TIME */
    bool has_base;  /* a snapshot, or commands of a base file */
    uint64_t annotations;
    int64_t first_s, last_s; /* annotations, or AOF_NO_TIME */
    uint64_t untimed;        /* commands after the base and before the first annotation */
};

enum aof_timeline_step { AOF_TIMELINE_GO_ON, AOF_TIMELINE_STOP, AOF_TIMELINE_REFUSE };

void aof_timeline_init(struct aof_timeline *line, int64_t limit_s);

/* saved_s: the field ctime of the snapshot, or AOF_NO_TIME. */
bool aof_timeline_snapshot(struct aof_timeline *line, int64_t saved_s, const char *name,
                           struct rd_err *err);

void aof_timeline_command(struct aof_timeline *line, bool in_base);

/* in_base: the file is the base; its first annotation is the time of the base. */
enum aof_timeline_step aof_timeline_annotation(struct aof_timeline *line, int64_t time_s,
                                               bool in_base, const char *name, struct rd_err *err);

bool aof_timeline_end(const struct aof_timeline *line, struct rd_err *err);

#endif
