/* document.h - a JSON document of a user, to be placed into other JSON.
 *
 *     if (json_document_valid(text))
 *         while (json_document_next(&text, &in_string, &piece))
 *             ...
 */
#ifndef JSON_DOCUMENT_H
#define JSON_DOCUMENT_H

#include "base/slice.h"

enum { JSON_DOCUMENT_DEPTH = 256 };

/* Whether the text is one JSON value by RFC 8259, nested at most JSON_DOCUMENT_DEPTH deep. Bytes
 * that are not UTF-8 are accepted in strings. */
bool json_document_valid(struct rd_slice text);

struct json_document_piece {
    struct rd_slice bytes;
    bool ascii; /* to be copied; else bytes beyond ASCII of a string, to be escaped */
};

/* Takes the next piece from a valid text, without white space between tokens. False: the end. */
bool json_document_next(struct rd_slice *text, bool *in_string, struct json_document_piece *ret);

#endif
