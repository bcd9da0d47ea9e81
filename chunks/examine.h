/* examine.h - whether all packs of a target are whole, and what is hurt if they are not.
 *
 *     struct chunks_examine x = {.repo = repo, .sets = &sets, .found = on_damage, .ctx = &report};
 *     if (!chunks_examine(&x, &err))
 *         ... something could not be read ...
 *     ... x.hurt[i] is true for the sets that are hurt ...
 *     chunks_examine_done(&x);
 *
 * Every byte of the packs is read once.
 */
#ifndef CHUNKS_EXAMINE_H
#define CHUNKS_EXAMINE_H

#include "base/buf.h"
#include "chunks/usage.h"

enum { CHUNKS_HURT_NAMES = 1000 };

/* Damage of a pack, for one of the sets that need what is damaged. */
struct chunks_damage {
    const char *pack;
    const char *what;              /* "keys", "a part of a long value", "the order of keys", "the
                                      index of keys", or "nothing that a set needs" */
    const char *chunk;             /* its name, or NULL */
    const struct archive_set *set; /* NULL: no set needs it */
    const struct rd_err *err;      /* missing, or damaged */
    bool recoverable;              /* the parity of the pack gives the bytes */
    uint64_t n_keys;               /* of the set, that are hurt */
    const struct rd_slice *names;  /* of the first of them; fewer if names are not known */
    size_t n_names;
};

struct chunks_examine {
    struct archive_repo *repo;
    struct archive_sets *sets;
    const struct archive_set *only;             /* what this set needs; NULL: what any set needs */
    bool presence;                              /* only whether packs are there, with their sizes */
    bool (*wants)(void *ctx, const char *pack); /* whether a pack is read; NULL: all are */
    void (*found)(void *ctx, const struct chunks_damage *damage);
    void *ctx;
    void (*tick)(void *ctx, uint64_t bytes); /* may be NULL; bytes that were read */

    bool *hurt;       /* out: of each set */
    bool *without;    /* private */
    bool *unreadable; /* out: of each set: its manifest or a recipe cannot be read */
    uint64_t n_packs, n_damaged;
    uint64_t n_read; /* packs of which every byte was read */
};

bool chunks_examine(struct chunks_examine *x, struct rd_err *err);
void chunks_examine_done(struct chunks_examine *x);

#endif
