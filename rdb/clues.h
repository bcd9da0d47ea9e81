/* clues.h - where damage begins, which is not where the structure breaks: a damaged length makes a
 * record swallow those behind it, or leaves some of its bytes to be read as records. The place that
 * is told lies at or before the first record that cannot be read any more: from the break back to a
 * record whose head (name, type, expiry) chance makes in less than one place of some thousands.
 *
 *     struct rdb_clues clues;
 *     rdb_clues_init(&clues);
 *     ... rdb_check(), whose callbacks call rdb_clues_event() and rdb_clues_finding() ...
 *     if (rdb_clues_want_search(&checked))
 *         ... rdb_salvage(), with or without an output ...
 *     uint64_t from = rdb_clues_damage(&checked, &clues, &searched);
 */
#ifndef RDB_CLUES_H
#define RDB_CLUES_H

#include "rdb/check.h"
#include "rdb/salvage.h"

enum { RDB_CLUES_DBS = 64 };

struct rdb_clues {
    uint64_t error;              /* first record with an error that is not the checksum's */
    uint64_t size;               /* first announcement of a size that is contradicted */
    uint64_t dbs[RDB_CLUES_DBS]; /* where the last databases begin */
    uint64_t n_dbs;
};

RD_API void rdb_clues_init(struct rdb_clues *clues);
RD_API void rdb_clues_event(struct rdb_clues *clues, const struct rdb_event *ev);
RD_API void rdb_clues_finding(struct rdb_clues *clues, const struct rdb_finding *finding);

/* Whether there is damage whose place a search makes more exact. */
RD_API bool rdb_clues_want_search(const struct rdb_check_result *checked);

/* The first byte that may be damaged: the start of a record, or 0 where the checksum alone tells
 * that something is wrong. RD_NO_OFFSET: nothing is damaged. searched may be NULL: then the place
 * may lie as far back as the start of the database. O(1). */
RD_API uint64_t rdb_clues_damage(const struct rdb_check_result *checked,
                                 const struct rdb_clues *clues,
                                 const struct rdb_salvage_result *searched);

#endif
