/* usage.h - which chunks the sets of a target need.
 *
 *     struct chunks_usage usage;
 *     if (!chunks_usage_read(&usage, repo, &sets, NULL, NULL, &err))
 *         ... a set says what it needs in a recipe that cannot be read: nothing can be removed ...
 *     chunks_usage_done(&usage);
 */
#ifndef CHUNKS_USAGE_H
#define CHUNKS_USAGE_H

#include "archive/repo.h"

struct chunks_used; /* a blob that a set needs */

struct chunks_usage {
    struct chunks_used *used; /* by name, in a table with free places */
    size_t n_used, n_slots;
    uint8_t (*keys)[32]; /* of the lineages */
    size_t n_keys;
    struct chunks_inventory *inventory;
    struct chunks_names *names; /* of packs */
    uint64_t *only;             /* of each set: bytes that only this one needs */
    uint64_t *total;            /* of each set: bytes that it needs */
    uint64_t bytes;             /* of all packs */
    size_t n_files;             /* that are stored as chunks */
};

/* Reads the recipes of all sets but those of `without` (NULL: none). RD_ERR_USAGE: a key is not
 * given. Other errors: a manifest or a recipe cannot be read; if `unreadable` is not NULL, it is
 * set for the set instead. */
bool chunks_usage_read(struct chunks_usage *ret, struct archive_repo *repo,
                       struct archive_sets *sets, const bool *without, bool *unreadable,
                       struct rd_err *err);
void chunks_usage_done(struct chunks_usage *usage);

#endif
