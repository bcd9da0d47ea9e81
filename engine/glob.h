/* glob.h - patterns of KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules, as in redis-server.
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
 * The empty text matches only the empty pattern, as in redis-server; commands handle the pattern
 * "*" themselves. Patterns match bytes, not characters. nocase ignores the case of ASCII letters,
 * except after a backslash in a class. One difference is deliberate: stars also match the empty
 * text, which redis-server leaves to each command.
 */
#ifndef ENGINE_GLOB_H
#define ENGINE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* Whether the whole text matches the whole pattern. At most O(pattern.len * text.len). */
bool engine_glob_match(struct rd_slice pattern, struct rd_slice text, bool nocase);

#endif
