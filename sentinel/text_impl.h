/* text_impl.h - words and numbers of the texts that Sentinels exchange. Private to sentinel/. */
#ifndef SENTINEL_TEXT_IMPL_H
#define SENTINEL_TEXT_IMPL_H

#include "base/slice.h"

enum { SENTINEL_PORT_MAX = 65535 };

/* Takes what is before the first `at` off the text. False: there is none, and *ret is the rest. */
bool sentinel_text_cut(struct rd_slice *text, char at, struct rd_slice *ret);

/* Whether the text begins with these words; if so, *ret is what follows them. */
bool sentinel_text_after(struct rd_slice text, const char *words, struct rd_slice *ret);

/* 0 to 65535. */
bool sentinel_text_port(struct rd_slice text, int *ret);

/* An id of a Sentinel or a server: 40 hexadecimal digits. */
bool sentinel_text_is_id(struct rd_slice text);

/* Copies with a NUL and cuts what does not fit. */
void sentinel_text_copy(char *dst, size_t size, struct rd_slice text);

/* A copy on the heap, with a NUL; NULL: out of memory. */
char *sentinel_text_dup(struct rd_slice text);

#endif
