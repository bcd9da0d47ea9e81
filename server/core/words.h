/* words.h - splits a line of text into words, as in inline commands and redis.conf.
 *
 *     struct words words = {0};
 *     if (words_split(&words, line))
 *         ... words.argv[0] .. words.argv[words.argc - 1] ...
 *     words_done(&words);
 *
 * Blanks separate words; "…" understands \n \r \t \b \a \xHH and \c for any other c, '…' only \'; a
 * closing quote must be followed by a blank or the end.
 */
#ifndef SERVER_CORE_WORDS_H
#define SERVER_CORE_WORDS_H

#include "base/buf.h"

struct words {
    struct rd_slice *argv; /* each is followed by a NUL that does not count */
    size_t argc;
    size_t cap;
    struct rd_buf bytes;
};

/* False: unbalanced quotes. The previous words are dropped. */
bool words_split(struct words *words, struct rd_slice line);
void words_done(struct words *words);

#endif
