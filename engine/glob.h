/* glob.h - patterns of KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules, as the server reads them.
 *
 *     engine_glob_match(rd_slice_str("user:[0-9]*"), rd_slice_str("user:17"), false);     // true
 *
 *     *          any bytes, or none
 *     ?          one byte
 *     [abc]      one of these bytes; [^abc] any other; [a-z] a range, its ends in either order; a
 *                backslash takes the next byte as it is. A class that nothing closes reaches to the
 *                end of the pattern.
 *     \x         the byte x, and x alone
 *     others     themselves
 *
 * An empty text matches the empty pattern only, as in a server; commands take "*" by itself for
 * everything before they ask. Bytes, not characters. nocase folds the letters of ASCII, but for
 * what a backslash takes inside a class. One thing is different on purpose: stars match the empty
 * text too, where the server asks each command to see to that.
 */
#ifndef ENGINE_GLOB_H
#define ENGINE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* Whether the whole text matches the whole pattern. At worst O(pattern.len * text.len). */
bool engine_glob_match(struct rd_slice pattern, struct rd_slice text, bool nocase);

#endif
