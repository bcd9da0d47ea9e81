/* words.h - splits a line of text into words, as in inline commands, redis.conf and the first line
 * of a library.
 *
 *     struct rd_words words = {0};
 *     if (rd_words_split(&words, line))
 *         ... words.argv[0] .. words.argv[words.argc - 1] ...
 *     rd_words_done(&words);
 *
 * Blanks separate words; "…" understands \n \r \t \b \a \xHH and \c for any other c, '…' only \'; a
 * closing quote must be followed by a blank or the end. rd_words_quote() writes such a word.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include "base/buf.h"

struct rd_words {
    struct rd_slice *argv; /* each is followed by a NUL that does not count */
    size_t argc;
    size_t cap;
    struct rd_buf bytes;
};

/* False: unbalanced quotes. The previous words are dropped. */
bool rd_words_split(struct rd_words *words, struct rd_slice line);
void rd_words_done(struct rd_words *words);

/* Appends a word in double quotes, of printable ASCII. False: out of memory. */
bool rd_words_quote(struct rd_buf *out, struct rd_slice word);
bool rd_words_escape(struct rd_buf *out, struct rd_slice word); /* without the quotes */

/* Returns the text up to the next `end`, or all of it, and moves *rest past it. No quotes. */
struct rd_slice rd_word_cut(struct rd_slice *rest, char end);

/* Whether a text is this word; upper and lower case are the same. */
bool rd_word_is(struct rd_slice text, const char *word);

#endif
