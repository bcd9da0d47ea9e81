/* world.h - a folder with snapshots for a test of a job, and a watch that remembers. */
#ifndef TESTS_JOBS_WORLD_H
#define TESTS_JOBS_WORLD_H

#include "base/watch.h"

#include <stddef.h>

struct world {
    char folder[64];
    struct rd_watch watch;
    char said[4096];  /* the warnings and hints, a line each */
    int begun, ended; /* parts of the work that the watch saw */
};

void world_begin(struct world *w);
/* Removes the folder with all that is in it. */
void world_end(struct world *w);

/* The path of a name in the folder: valid until the eighth call after this one. */
const char *world_path(const struct world *w, const char *name);

/* Writes a snapshot of version 11. keys: "DB:KEY=VALUE", separated by blanks, databases ascending.
 * "F:NAME" is a library of functions. sum: with a checksum. */
void world_snapshot(const struct world *w, const char *name, const char *keys, bool sum);

/* Expects these keys of a snapshot, in the same form and in their order; aborts the test if it is
 * damaged. */
void world_expect_keys(const struct world *w, const char *name, const char *keys);

/* The text of a file, which the caller frees; NULL: there is no such file. */
char *world_read(const struct world *w, const char *name);
void world_write(const struct world *w, const char *name, const void *bytes, size_t len);

/* The number of entries of the folder, or of one in it; -1: there is no such folder. */
int world_count(const struct world *w, const char *name);

#endif
