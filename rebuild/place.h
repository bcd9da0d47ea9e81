/* place.h - "[FILE:]N": a position in a log, as text.
 *
 *     struct rebuild_place until;
 *     if (!rebuild_place_parse(&until, "appendonly.aof.2.incr.aof:8123", &err))
 *         ...
 *     for each file that is read:
 *         rebuild_place_begin_file(&until, name, index);
 *     for each command:
 *         if (rebuild_place_compare(&until, index, offset) >= 0)
 *             stop;
 *
 * Without FILE, the number applies to every file. In a capture, the chapter takes the place of the
 * file, and its number is the index; rebuild/stream.h finds the chapter if none is named.
 */
#ifndef REBUILD_PLACE_H
#define REBUILD_PLACE_H

#include "base/err.h"

#include <limits.h>
#include <stdint.h>

struct rebuild_place {
    char file[NAME_MAX + 1]; /* empty: none was named */
    size_t index;            /* of the file among those read; SIZE_MAX: not reached */
    uint64_t number;
};

/* RD_ERR_USAGE. */
bool rebuild_place_parse(struct rebuild_place *ret, const char *text, struct rd_err *err);

/* Another file is read: it may be the one that was named. */
void rebuild_place_begin_file(struct rebuild_place *place, const char *name, size_t index);

/* Whether a file was named and has not been reached. */
bool rebuild_place_missing(const struct rebuild_place *place);

/* -1, 0, 1: `offset` of the file is before, at, after the position. */
int rebuild_place_compare(const struct rebuild_place *place, size_t index, uint64_t offset);

#endif
