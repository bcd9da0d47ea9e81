/* damage.h - finds the start of damage, which may lie before the point where parsing fails.
 *
 * A damaged length makes a record swallow the records after it, or leaves some of its bytes to be
 * read as records. The reported position is at or before the first record that can no longer be
 * read: it goes back from the failure to a record whose header (name, type, expiry) would occur by
 * chance in fewer than one of several thousand places.
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
    uint64_t error;               /* first record with an error other than the checksum */
    uint64_t size;                /* first database size that does not match */
    uint64_t dbs[RDB_DAMAGE_DBS]; /* offsets of the last databases */
    uint64_t n_dbs;
};

void rdb_damage_init(struct rdb_damage *evidence);
void rdb_damage_event(struct rdb_damage *evidence, const struct rdb_event *ev);
void rdb_damage_finding(struct rdb_damage *evidence, const struct rdb_finding *finding);

/* Whether there is damage that a search can locate more exactly. If only the checksum does not
 * match, it may show which byte is wrong. */
bool rdb_damage_want_search(const struct rdb_check_result *checked);

/* The first byte that may be damaged: the start of a record, or 0 if only the checksum does not
 * match. RD_NO_OFFSET: no damage. If searched is NULL, the offset may be as early as the start of
 * the database. O(1). */
uint64_t rdb_damage_start(const struct rdb_check_result *checked, const struct rdb_damage *evidence,
                          const struct rdb_salvage_result *searched);

#endif
