/* quote.h - bytes as text in double quotes, as redis-cli reads and prints them.
 *
 *     "HSET" "k" "f" "a\"b\n\x00"
 */
#ifndef TOOLS_CLI_QUOTE_H
#define TOOLS_CLI_QUOTE_H

#include "base/buf.h"

/* Bytes in double quotes, escaped; those after `cut` bytes are left out, with the length. */
bool cli_put_quoted(struct rd_buf *buf, struct rd_slice bytes, size_t cut);

/* A command line: quoted words with blanks between them. */
bool cli_put_line(struct rd_buf *buf, const struct rd_slice *argv, size_t argc, size_t cut);

#endif
