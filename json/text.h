/* text.h - writes bytes as the content of a JSON string.
 *
 *     struct json_text text = {.form = JSON_UTF8};
 *     uint8_t *end = json_text_put(&text, dst, piece, true);      // dst has
 * json_text_room(piece.len) end = json_text_put(&text, end, last_piece, false);
 *
 * JSON_UTF8 writes UTF-8 unchanged. A byte that is not part of valid UTF-8 becomes the lone
 * surrogate U+DC80 + byte - 0x80, written \udcXX, as with Python's "surrogateescape": overlong
 * forms, encoded surrogates and code points over U+10FFFF are escaped byte by byte. A character
 * that is divided between two pieces is written whole: up to three bytes wait for the next piece.
 * JSON_HEX and JSON_BASE64 (with padding) write letters and digits only.
 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include "base/slice.h"

enum json_form { JSON_UTF8, JSON_HEX, JSON_BASE64 };

struct json_text {
    enum json_form form;
    unsigned n_held;
    uint8_t held[3]; /* bytes of an unfinished character, or of an unfinished group of base64 */
};

/* The most bytes that json_text_put() writes for a piece of this length, and the slack it needs
 * after them. len must be under SIZE_MAX / 8. */
static inline size_t json_text_room(size_t len)
{
    return 6 * (len + 3) + 16;
}

/* Writes a piece without quotes and returns the end of what was written. With `more`, the string
 * continues with the next call; without it, nothing is held back and `text` is ready for the next
 * string. O(n), no allocation. */
uint8_t *json_text_put(struct json_text *text, uint8_t *dst, struct rd_slice piece, bool more);

/* The length of the character beyond ASCII at p, which has `avail` bytes; 0: it is not valid UTF-8,
 * or not complete. */
size_t json_text_character(const uint8_t *p, size_t avail);

/* Copies a whole short string. True if it is ASCII and needs no escapes; otherwise the output is
 * invalid. */
bool json_text_put_plain(uint8_t *dst, struct rd_slice s);

#endif
