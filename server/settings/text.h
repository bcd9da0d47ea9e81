/* text.h - lines of a configuration file: words and quotation marks. Private to server/settings/
 * and main.c.
 *
 *     char **words;
 *     size_t n;
 *     const char *why = settings_text_split(line, &words, &n);
 *     if (why != NULL)
 *         ... "Unbalanced quotes" ...
 *     settings_text_free(words, n);
 *
 * words.h describes words and quotation marks. Here words are NUL-terminated text, each in a block
 * of its own.
 *
 * Without memory, the process ends here: it cannot continue without a configuration.
 */
#ifndef SERVER_SETTINGS_TEXT_H
#define SERVER_SETTINGS_TEXT_H

#include "base/buf.h"
#include "base/err.h"

/* An empty line has no words. Returns NULL or the error: "Unbalanced quotes", or "NUL byte" for
 * "\x00". */
const char *settings_text_split(const char *line, char ***ret_words, size_t *ret_n);

/* Splits at each single blank and nothing else, as CONFIG SET does; "" has no words. */
void settings_text_split_blanks(const char *text, char ***ret_words, size_t *ret_n);
void settings_text_free(char **words, size_t n);

/* Adds a word to the end of a list, which settings_text_free() frees. */
void settings_text_append(char ***words, size_t *n, const char *word);

/* Quotes the text in double quotation marks, so that settings_text_split() can read it. */
void settings_text_quote(const char *text, struct rd_buf *ret);
void settings_text_quote_bytes(struct rd_slice text, struct rd_buf *ret);

char *settings_text_copy(const char *text, size_t len);

/* Frees *field and replaces it. */
void settings_text_replace(char **field, const char *text);

/* n * size bytes, zeroed. */
void *settings_text_room(size_t n, size_t size);

/* Replaces a file, and keeps its permissions: it may contain passwords. */
bool settings_text_replace_file(const char *name, struct rd_slice text, struct rd_err *err);

/* Removes blanks, tabs and line ends at both ends; in place. */
char *settings_text_trim(char *text);

#endif
