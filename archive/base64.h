/* base64.h - decodes base64; json/text.h encodes it.
 */
#ifndef ARCHIVE_BASE64_H
#define ARCHIVE_BASE64_H

#include "base/slice.h"

/* Decodes groups of four characters, the last one with its padding. False: the text has another
 * form, or more than `size` bytes. */
bool archive_base64_get(struct rd_slice text, uint8_t *ret, size_t size, size_t *ret_len);

#endif
