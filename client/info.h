/* info.h - fields of the text that INFO returns.
 *
 *     uint64_t used;
 *     if (client_info_u64(text, "used_memory", &used))
 *         ...
 *     struct rd_slice line, lag;
 *     if (client_info_find(text, "slave0", &line) && client_info_part(line, "lag", &lag))
 *         ...
 */
#ifndef CLIENT_INFO_H
#define CLIENT_INFO_H

#include "base/slice.h"

/* Finds the line "NAME:VALUE" and returns its value without the line end, as a part of the text.
 * False: the text has no such line. */
bool client_info_find(struct rd_slice text, const char *name, struct rd_slice *ret);

/* The same for a number. False also if the value is not a number. */
bool client_info_u64(struct rd_slice text, const char *name, uint64_t *ret);

/* The same for a version, "MAJOR.MINOR" and anything after it, as MAJOR * 100 + MINOR. 0: the text
 * has no such line, or it is not a version. */
unsigned client_info_version(struct rd_slice text, const char *name);

/* The value of NAME in "NAME=VALUE,NAME=VALUE". */
bool client_info_part(struct rd_slice value, const char *name, struct rd_slice *ret);

#endif
