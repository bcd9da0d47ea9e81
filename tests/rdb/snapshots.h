/* snapshots.h - the snapshots among the fixtures, as fixtures/MANIFEST.tsv lists them.
 *
 *     static void visit(void *ctx, const struct snapshot *s) { ... s->bytes ... }
 *     unsigned n = snapshots_each(4096, visit, &ctx);
 *     cr_assert_gt(n, 100);
 *
 * Annotated text (.hex) comes as the bytes that it stands for.
 */
#ifndef TESTS_RDB_SNAPSHOTS_H
#define TESTS_RDB_SNAPSHOTS_H

#include "base/slice.h"

enum { SNAPSHOT_PATH_MAX = 512, SNAPSHOT_EXPECTED_MAX = 256 };

struct snapshot {
    char path[SNAPSHOT_PATH_MAX];         /* in the folder of fixtures */
    char expected[SNAPSHOT_EXPECTED_MAX]; /* see fixtures/README.md */
    struct rd_slice bytes;                /* borrowed, until visit() returns */
};

/* Calls visit() with every snapshot of up to max_len bytes, and returns how many there were. Aborts
 * where a file of the list cannot be read. */
unsigned snapshots_each(size_t max_len, void (*visit)(void *ctx, const struct snapshot *s),
                        void *ctx);

/* The same for those of whom nothing is remarked. */
unsigned snapshots_each_sound(size_t max_len, void (*visit)(void *ctx, const struct snapshot *s),
                              void *ctx);

#endif
