/* repo.h - a repository of chunks for the time of a test: sets are written and read back.
 */
#ifndef TESTS_CHUNKS_REPO_H
#define TESTS_CHUNKS_REPO_H

#include "archive/repo.h"
#include "base/buf.h"
#include "chunks/chunks.h"

struct chunks_repo {
    char path[64];
    struct archive_store *store;
    struct archive_repo repo;
    struct rd_seal_key key;
    struct rd_seal_ring ring;
    bool sealed;
    char state[128]; /* the path of the state */
    bool keeps_state;
    unsigned n_sets;
    uint64_t added;  /* by the last set */
    bool had_parent; /* the last set */
};

void chunks_repo_begin(struct chunks_repo *r, bool sealed);
void chunks_repo_end(struct chunks_repo *r);

/* Writes a set with these bytes as dump.rdb, `step` bytes at a time. False: see err. */
bool chunks_repo_put(struct chunks_repo *r, struct rd_slice bytes, size_t step, struct rd_err *err);
struct archive_sets chunks_repo_list(struct chunks_repo *r);
/* The bytes of set i (from old to new). */
bool chunks_repo_get(struct chunks_repo *r, size_t i, struct rd_buf *ret, struct rd_err *err);

/* A snapshot of n keys "key:N" in the order of a permutation made of `seed`, 0: ascending. Keys
 * with N % 100 == changed % 100 have another value; changed 0: none. Those below `gone` are left
 * out. */
void chunks_repo_snapshot(struct rd_buf *ret, unsigned n, unsigned seed, unsigned changed,
                          unsigned gone);
uint64_t chunks_repo_draw(uint64_t *state);

#endif
