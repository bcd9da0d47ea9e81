/* restore.h - finds a set, or the set and the stream of a moment, in the repositories of a target,
 * and reads its data.
 *
 *     static bool write(struct backup_restore *r, struct rd_err *err)
 *     {
 *         return backup_restore_snapshot(r, &r->set->m.files[0], sink, err);
 *     }
 *
 *     struct backup_restore r = {.watch = watch, .want = want, .now_ms = now_ms, .write = write};
 *     if (!backup_restore(&r, target, &err))
 *         ...
 *
 * Of several repositories the one with the newest set is tried first. If it cannot be read, or has
 * not what was asked for, the next one has its turn. A set whose signature is wrong is left out,
 * unless it was asked for; if `prune` removes a set meanwhile, the sets are listed again.
 *
 * lay_out.h writes files and folders as a server loads them.
 */
#ifndef BACKUP_RESTORE_H
#define BACKUP_RESTORE_H

#include "backup/open.h"
#include "backup/plan.h"
#include "chunks/chunks.h"
#include "data/spool.h"
#include "rebuild/data.h"

/* A repository; private. */
struct backup_restore_source {
    struct archive_repo *repo;
    bool listed;
    struct rd_err err; /* set: it cannot be read */
    struct archive_sets sets;
    const struct archive_set *newest; /* the newest good one when they were listed */
};

struct backup_restore {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct backup_want want;
    int64_t now_ms;    /* of commands without a time */
    bool keep_unknown; /* see struct rebuild_data */
    const struct filter
        *filter;       /* of a set: other keys may be left out, which is faster; NULL: none */
    const char *over;  /* a file that is there, and is replaced: what it has in common with a
                          snapshot in chunks is not read from the repository; NULL: none */
    bool skip_damaged; /* of a set in chunks: leave out records whose chunks cannot be read */
    bool final;        /* what write() does cannot be taken back: no other repository is tried */
    /* Writes r->set, with the functions below. Called again for another repository if it fails. */
    bool (*write)(struct backup_restore *r, struct rd_err *err);
    /* A repository failed, and the next one is tried. May be NULL. */
    void (*failed)(struct backup_restore *r, const struct rd_err *err);
    void *ctx;

    /* Set by this library, for write(). */
    struct archive_repo *repo;
    const struct archive_set *set;
    struct backup_plan plan; /* unless the goal is BACKUP_GOAL_SET */
    struct rebuild_counts counts;
    struct chunks_lost lost; /* with skip_damaged: what was left out */
    struct chunks_cost cost; /* with a filter: what was read of files of which not all was read */

    struct chunks_over kept; /* what was taken of `over`; id "": nothing */

    /* Private. */
    struct backup_open *open;
    struct spool old; /* `over` */
    struct backup_restore_source sources[BACKUP_STORES];
    struct backup_restore_source *source; /* the one that is tried */
};

/* RD_ERR_USAGE: there is no such set, or the moment cannot be proved. */
bool backup_restore(struct backup_restore *r, const struct backup_target *target,
                    struct rd_err *err);

/* The same with repositories that are open. */
bool backup_restore_from(struct backup_restore *r, struct backup_open *open, struct rd_err *err);

/* Whether the target has a key. For write(). */
bool backup_restore_has_keys(const struct backup_restore *r);

/* Whether the set is a cluster; whether it is a log. */
bool backup_restore_is_cluster(const struct archive_set *set);
bool backup_restore_is_log(const struct archive_set *set);

/* Writes a file of the set as it is. */
bool backup_restore_file(struct backup_restore *r, const struct archive_file *file,
                         struct rd_sink *out, struct rd_err *err);

/* Writes the snapshot that is restored: of the set, of the log in it, or of the moment. `file` is
 * the snapshot of the set, or that of a master of a cluster. */
bool backup_restore_snapshot(struct backup_restore *r, const struct archive_file *file,
                             struct rd_sink *out, struct rd_err *err);

/* The same into a spool that is empty. */
bool backup_restore_spool(struct backup_restore *r, const struct archive_file *file,
                          struct spool *spool, struct rd_err *err);

#endif
