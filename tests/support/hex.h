/* hex.h - fixtures that are written as annotated text.
 *
 *     "REDIS0011"     # magic and version
 *     fe 00           # SELECTDB 0
 *
 * Pairs of hex digits and "printable ASCII" (no escapes inside), separated by blanks; # begins a
 * comment that goes to the end of the line.
 */
#ifndef TESTS_SUPPORT_HEX_H
#define TESTS_SUPPORT_HEX_H

#include "base/buf.h"

/* Appends the bytes that the text stands for. False: *ret_line is where it is not such text, or 0
 * where memory is short. */
bool hex_parse(struct rd_slice text, struct rd_buf *ret, unsigned *ret_line);

/* The same for a file; false also where it cannot be read (*ret_line is 0). */
bool hex_load(const char *path, struct rd_buf *ret, unsigned *ret_line);

#endif
