/* snapshot_impl.h - private to chunks/: what is around the records of a snapshot that is made of
 * some of them. */
#ifndef CHUNKS_SNAPSHOT_IMPL_H
#define CHUNKS_SNAPSHOT_IMPL_H

#include "rdb/rdb.h"

#include <stddef.h>
#include <stdint.h>

enum { CHUNKS_SELECT_MAX = 10 };

/* The bytes that select a database; returns how many. */
size_t chunks_select_print(uint8_t ret[CHUNKS_SELECT_MAX], uint64_t db);
/* The version in the first nine bytes of a snapshot. */
unsigned chunks_head_version(const uint8_t head[9]);

#endif
