/* tricky.h - sound snapshots whose values look like records.
 *
 * Hashes whose fields read as string keys, packed values and strings whose bytes are records,
 * strings that are whole snapshots or databases, lists of snapshots that are cut, several
 * databases. Each number gives the same file every time.
 */
#ifndef TESTS_RDB_TRICKY_H
#define TESTS_RDB_TRICKY_H

#include "base/buf.h"

enum { TRICKY_KINDS = 11 };

const char *tricky_name(unsigned kind);

/* Adds a whole snapshot. */
void tricky_make(unsigned kind, uint64_t seed, struct rd_buf *ret);

#endif
