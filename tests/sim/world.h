/* world.h - the system of a simulation of backups, in the place of backup/system.c,
 * backup/places.c and capture/clock.c: a clock that only the simulation moves, chance from a seed,
 * and repositories that it opens.
 *
 * The program defines the functions of those files, so that the linker leaves them out of the
 * libraries.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdint.h>

#include "archive/store.h"

struct world {
    int64_t now_us; /* Unix time; all clocks go with it */
    uint64_t seed;  /* of the next random bytes */
    /* Opens the repository that the configuration calls `where`. */
    struct archive_store *(*open)(void *ctx, const char *where, struct rd_err *err);
    void *ctx;
    const char *key; /* what every file of a key contains */
};

extern struct world world;

#endif
