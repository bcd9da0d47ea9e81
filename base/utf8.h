/* utf8.h - which bytes are characters that can be shown.
 *
 * Names of keys and texts of servers go to terminals. Characters in UTF-8 are printed as they are;
 * bytes that are none, and characters that a terminal interprets, are escaped.
 *
 *     while (p < end) {
 *         size_t len = rd_utf8_shown(p, (size_t)(end - p));
 *         if (len > 0)
 *             ... print len bytes ...
 *         else
 *             ... escape the byte *p ...
 *         p += len > 0 ? len : 1;
 *     }
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RD_UTF8_MAX = 4 }; /* bytes of a character */

/* Whether a character beyond ASCII is a control or format character that a terminal interprets or
 * that changes the order of the displayed text (C1, U+202E and others). */
bool rd_utf8_is_control(uint32_t point);

/* Returns the number of bytes of the character at p, of which `avail` bytes can be read; 0 if it is
 * a control or format character, or not UTF-8. */
size_t rd_utf8_shown(const uint8_t *p, size_t avail);

#endif
