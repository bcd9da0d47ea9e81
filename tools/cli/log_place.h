/* log_place.h - "[FILE:]N": a place in a log, as the command line names it.
 *
 *     struct log_place until;
 *     if (!log_place_parse(&until, "appendonly.aof.2.incr.aof:8123", &err))
 *         ...
 *     for each file that is read:       log_place_begin_file(&until, name, index);
 *     for each command:                 if (log_place_compare(&until, index, offset) >= 0) stop;
 *
 * Without FILE the number is meant in every file. In a capture the chapter is in the place of
 * the file, and its number is the index (stream_in.h finds the one that is meant where none was
 * named).
 */
#ifndef TOOLS_CLI_LOG_PLACE_H
#define TOOLS_CLI_LOG_PLACE_H

#include "base/err.h"

#include <limits.h>
#include <stdint.h>

struct log_place {
    char file[NAME_MAX + 1]; /* empty: none was named */
    size_t index;            /* of the file among those read; SIZE_MAX: not reached */
    uint64_t number;
};

/* RD_ERR_USAGE. */
bool log_place_parse(struct log_place *ret, const char *text, struct rd_err *err);

/* Another file is read: it may be the one that was named. */
void log_place_begin_file(struct log_place *place, const char *name, size_t index);

/* Whether a file was named and has not been reached. */
bool log_place_missing(const struct log_place *place);

/* -1, 0, 1: what is at `offset` of the file lies before, at, after the place. */
int log_place_compare(const struct log_place *place, size_t index, uint64_t offset);

#endif
