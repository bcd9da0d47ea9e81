/* damage.h - where damage begins, which is not where the structure breaks: a damaged length makes a
 * record swallow those after it, or leaves some of its bytes to be read as records. The place that
 * is told lies at or before the first record that cannot be read any more: from the break back to a
 * record whose head (name, type, expiry) chance makes in less than one place of some thousands.
 *
 *     struct rdb_damage evidence;
 *     rdb_damage_init(&evidence);
 *     ... rdb_check(), whose callbacks call rdb_damage_event() and rdb_damage_finding() ...
 *     if (rdb_damage_want_search(&checked))
 *         ... rdb_salvage(), with or without an output ...
 *     uint64_t from = rdb_damage_start(&checked, &evidence, &searched);
 */
#ifndef RDB_DAMAGE_H
#define RDB_DAMAGE_H

#include "rdb/check.h"
#include "rdb/salvage.h"

enum { RDB_DAMAGE_DBS = 64 };

struct rdb_damage {
    uint64_t error;               /* first record with an error that is not the checksum's */
    uint64_t size;                /* first announcement of a size that is contradicted */
    uint64_t dbs[RDB_DAMAGE_DBS]; /* where the last databases begin */
    uint64_t n_dbs;
};

RD_API void rdb_damage_init(struct rdb_damage *evidence);
RD_API void rdb_damage_event(struct rdb_damage *evidence, const struct rdb_event *ev);
RD_API void rdb_damage_finding(struct rdb_damage *evidence, const struct rdb_finding *finding);

/* Whether there is damage whose place a search makes more exact. */
RD_API bool rdb_damage_want_search(const struct rdb_check_result *checked);

/* The first byte that may be damaged: the start of a record, or 0 where the checksum alone tells
 * that something is wrong. RD_NO_OFFSET: nothing is damaged. searched may be NULL: then the place
 * may lie as far back as the start of the database. O(1). */
RD_API uint64_t rdb_damage_start(const struct rdb_check_result *checked,
                                 const struct rdb_damage *evidence,
                                 const struct rdb_salvage_result *searched);

#endif
