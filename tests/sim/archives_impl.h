/* archives_impl.h - private to tests/sim/archives*.c.
 */
#ifndef TESTS_SIM_ARCHIVES_IMPL_H
#define TESTS_SIM_ARCHIVES_IMPL_H

#include "backup/archiver_impl.h"
#include "backup/open.h"
#include "backup/stream_sum.h"
#include "repl/capture_writer.h"
#include "tests/sim/archives.h"
#include "tests/sim/bucket.h"
#include "tests/sim/disk.h"
#include "tests/sim/master.h"

enum {
    BUCKETS = 2,
    LIVES = 5,
    STEPS = 12,
    SETS = 400,
    CHAINS = 200,
    SEGMENTS = 2000,
    START = 1000
};

/* The stream of one full synchronization. */
struct chain {
    uint64_t from, shipped;
};

/* A segment that no set needed, when `prune` looked. A set that is stored only then, from a
 * snapshot that waited on the disk, may be followed by a hole. */
struct released {
    size_t n_known; /* sets that were known then; 0: it was not released */
    bool limited;   /* or a set needed it, but the stream is kept for some time only */
    uint64_t start, end;
};

/* A set that was seen as good. */
struct known {
    char id[ARCHIVE_ID_MAX];
    uint64_t offset;
    bool stored[BUCKETS]; /* and no rule allows its removal */
};

struct history {
    struct bucket buckets[BUCKETS];
    struct bucket_faults archiver, other, none; /* the processes; `none` never fails */
    struct bucket_faults *running;
    struct backup_config config;
    uint64_t lives;
    bool nested;

    struct master master;
    uint64_t backlog; /* the beginning of what the master keeps */

    /* The archiver. */
    struct sim_fs *files;
    struct disk disk;
    struct backup_archiver a;
    struct repl_capture_lock lock;
    struct repl_capture_writer *writer;
    struct backup_ship *ship;
    struct backup_base *base;
    bool connected;
    uint64_t sent; /* what the writer got */
    bool shipping; /* ship.c is at work, not the writer */

    struct chain chains[CHAINS];
    size_t n_chains;
    struct known known[SETS];
    size_t n_known;
    struct released released[BUCKETS][SEGMENTS]; /* by number */
    struct sim_archives *sums;
};

struct view {
    struct history *h;
    struct bucket_faults *before;
    struct backup_open open;
};

/* The first one counts. False. */
bool archives_wrong(const char *fmt, ...) RD_PRINTF(1, 2);
uint64_t archives_draw(struct history *h, uint64_t n);

/* A process; returns the one that ran before, for its end. */
struct bucket_faults *archives_begin_life(struct history *h, struct bucket_faults *f);
void archives_end_life(struct history *h, struct bucket_faults *f, struct bucket_faults *before);

/* What there is, without faults. */
bool archives_begin_view(struct view *v, struct history *h);
void archives_end_view(struct view *v);

/* ---- archives_merge.c ---- */

/* A segment of the disk. */
struct archives_segment {
    uint64_t start, end;
    struct archive_store_sum bytes;
    struct backup_stream_sum commands;
};

bool archives_sum(struct rd_slice bytes, uint64_t number, uint64_t start,
                  struct archives_segment *ret);
/* Whether a segment of repository i is this one, or was made of it and others. */
bool archives_has(struct view *v, size_t i, const struct archive_segment *s,
                  const struct archives_segment *plain);

/* Merges the segments of all repositories, in the life that runs now. */
void archives_merge_once(struct history *h);
/* The same as another process, and compares the moments that can be restored. */
void archives_merge(struct history *h);

#endif
