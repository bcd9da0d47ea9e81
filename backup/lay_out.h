/* lay_out.h - writes a set or a moment as files that a server loads.
 *
 *     struct backup_lay_out out = {.to = "/var/lib/redis", .open = open_out, .check = check_out};
 *     r.write = write;    // calls backup_lay_out(&out, r, err)
 *
 * Several targets get their names together as well:
 *
 *     ok = backup_lay_out_begin(&out, "shards", &err);
 *     ... for each target, out.to = the path of its folder in there, and backup_lay_out() ...
 *     ok = ok && backup_lay_out_publish(&out, &err);
 *     backup_lay_out_done(&out, ok);
 *
 * A folder gets dump.rdb, or with BACKUP_LAYOUT_AOF appendonlydir; a cluster a folder for each
 * master. Files of which a server needs several get their names together (staging.h).
 */
#ifndef BACKUP_LAY_OUT_H
#define BACKUP_LAY_OUT_H

#include "backup/restore.h"
#include "backup/staging.h"

enum backup_layout {
    BACKUP_LAYOUT_AUTO, /* a log remains one in a folder: with appendonly yes, the server would
                           ignore dump.rdb */
    BACKUP_LAYOUT_RDB,
    BACKUP_LAYOUT_AOF
};

struct backup_lay_out {
    /* Set by the caller; borrowed. */
    const char *to; /* a file or a folder; "-": standard output, which open() knows */
    enum backup_layout layout;
    bool replaces; /* files that exist */
    /* Opens an output; `data`: it has the data of the set. */
    bool (*open)(void *ctx, const char *path, bool data, struct rd_sink **ret, struct rd_err *err);
    /* Whether a file may be written: see struct backup_staging. */
    bool (*check)(void *ctx, const char *path, struct rd_err *err);
    /* Writes the snapshot in a spool to a path, changed. It sets out->nothing if nothing is to be
     * written. NULL: snapshots are written as they are. */
    bool (*change)(struct backup_lay_out *out, const struct archive_file *file,
                   const struct spool *snapshot, const char *path, struct rd_err *err);
    void *ctx;

    /* Set by this library. */
    bool nothing;
    bool together; /* begun with backup_lay_out_begin() */
    struct backup_staging staging;
};

/* RD_ERR_USAGE: a file exists, or the destination does not fit the layout. */
bool backup_lay_out(struct backup_lay_out *out, struct backup_restore *r, struct rd_err *err);

/* Makes the folder for several targets, unless it exists. From now on out->to is always a folder,
 * and files wait until backup_lay_out_publish(). backup_lay_out_done() removes those that did not
 * get their names, and the folders that were made for them unless all is complete. */
bool backup_lay_out_begin(struct backup_lay_out *out, const char *folder, struct rd_err *err);
bool backup_lay_out_publish(struct backup_lay_out *out, struct rd_err *err);
void backup_lay_out_done(struct backup_lay_out *out, bool complete);

/* Whether the destination becomes a folder with a log. */
bool backup_lay_out_is_log(const struct backup_lay_out *out, const struct archive_set *set);

#endif
