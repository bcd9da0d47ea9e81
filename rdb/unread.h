/* unread.h - private to rdb/: whether what a check could not read is damaged, or not supported.
 *
 * A type or opcode that no server of the version writes is damage, unless the checksum of the file
 * shows that it was saved like this. What a newer server, or Dragonfly, may have written is not
 * supported.
 */
#ifndef RDB_UNREAD_H
#define RDB_UNREAD_H

#include "rdb/check.h"

/* The reader met a type or an opcode that it does not know. */
bool rdb_unread_is_number(const struct rd_err *err);

/* Replaces the error of such a number. res->sum must be known if it can be. */
void rdb_unread_number(const struct rdb_check_result *res, bool dragonfly, struct rd_err *err);

/* Replaces the error of a file of a version that does not exist yet, in which everything may be as
 * it must be. *err may be RD_ERR_OK. */
void rdb_unread_newer(const struct rdb_check_result *res, struct rd_err *err);

#endif
