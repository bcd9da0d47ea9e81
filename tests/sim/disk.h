/* disk.h - the files of a process that may die before each call, or in the middle of a write.
 *
 *     struct disk disk = {.calls = sim_fs_calls(files), .process = &faults};
 *     struct rd_fs fs = disk_calls(&disk);
 */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include "base/fs.h"
#include "tests/sim/bucket.h"

struct disk {
    struct rd_fs calls; /* without faults */
    struct bucket_faults *process;
    /* Called before what they say happens; may be NULL. */
    void (*before_unlink)(void *ctx, const char *name);
    void (*before_rename)(void *ctx, const char *from, const char *to);
    void *ctx;
};

/* The disk is borrowed. */
struct rd_fs disk_calls(struct disk *disk);

#endif
