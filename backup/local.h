/* local.h - a snapshot on the local disk before it is passed on, so that its server does not wait
 * for a slow receiver.
 *
 *     struct backup_local local;
 *     if (!backup_local_open(&local, "/var/lib/redoubt/nightly", &err) ||
 *         !backup_local_copy(&local, src, NULL, &err) ||
 *         !backup_local_source(&local, &again, src, &err))
 *         ...
 *     rd_src_close(again);
 *     backup_local_close(&local);
 *
 * The file has no name and the mode 0600: it disappears with the process, however that ends. Some
 * of the disk stays free. If the snapshot is larger, backup_local_copy() stops, and
 * backup_local_source() gives the rest from the source.
 */
#ifndef BACKUP_LOCAL_H
#define BACKUP_LOCAL_H

#include <stdatomic.h>

#include "base/src.h"

/* What stays free: this much, and at least a hundredth of the disk. */
#define BACKUP_LOCAL_RESERVE ((uint64_t)64 << 20)

struct backup_local {
    int fd;
    uint64_t size;
    bool whole; /* the source was read to its end */
};

bool backup_local_open(struct backup_local *local, const char *folder, struct rd_err *err);
/* Reads the source to its end, or until the disk is full. *cancel ends it with RD_ERR_IO. */
bool backup_local_copy(struct backup_local *local, struct rd_src *src, const atomic_bool *cancel,
                       struct rd_err *err);
/* All bytes. rest is borrowed, and not used if the copy is whole. local must outlive the source. */
bool backup_local_source(struct backup_local *local, struct rd_src **ret, struct rd_src *rest,
                         struct rd_err *err);
void backup_local_close(struct backup_local *local);

#endif
