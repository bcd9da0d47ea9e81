/* text.h - lines of a configuration file: words and quotation marks. Private to
 * settings*.c and main.c.
 *
 *     char **words;
 *     size_t n;
 *     const char *why = settings_text_split(line, &words, &n);
 *     if (why != NULL)
 *         ... "Unbalanced quotes" ...
 *     settings_text_free(words, n);
 *
 * What a word is, and what quotation marks do, is told in words.h; here words are text that ends
 * with a NUL, each a block of its own.
 *
 * A process whose heap is used up ends here: there is no way to continue without a configuration.
 */
#ifndef SERVER_SETTINGS_TEXT_H
#define SERVER_SETTINGS_TEXT_H

#include "base/buf.h"

/* An empty line is no words. NULL, or why there are none: "Unbalanced quotes", or "A byte of value
 * 0" where "\x00" stands for it. */
const char *settings_text_split(const char *line, char ***ret_words, size_t *ret_n);

/* Splits at each single blank and nothing else, as CONFIG SET does; "" is no words. */
void settings_text_split_blanks(const char *text, char ***ret_words, size_t *ret_n);
void settings_text_free(char **words, size_t n);

/* One word more at the end of a list that settings_text_free() frees. */
void settings_text_append(char ***words, size_t *n, const char *word);

/* The text in double quotation marks, so that settings_text_split() reads it again. */
void settings_text_quote(const char *text, struct rd_buf *ret);
void settings_text_quote_bytes(struct rd_slice text, struct rd_buf *ret);

char *settings_text_copy(const char *text, size_t len);

/* *field is freed and replaced. */
void settings_text_replace(char **field, const char *text);

/* n * size bytes, zeroed. */
void *settings_text_room(size_t n, size_t size);

/* Without blanks, tabs and line ends at both ends; in place. */
char *settings_text_trim(char *text);

#endif
