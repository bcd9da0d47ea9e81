/* log_text.h - the content of a log as text, to compare two ways of reading it.
 *
 * A line is "OFFSET+LEN argc NAME checksum" for a command and "OFFSET+LEN text" for an annotation;
 * the last one is "end@WHOLE", "more@WHOLE" or "CODE@OFFSET after WHOLE". A command in pieces has
 * the same text as a whole one; for names over 64 bytes only the length is printed.
 */
#ifndef TESTS_AOF_LOG_TEXT_H
#define TESTS_AOF_LOG_TEXT_H

#include "aof/log.h"
#include "base/buf.h"

/* Reads to the end. Takes the source. The result ends with a NUL. With opts->lines, and unless
 * bytes is empty, the numbers of lines are compared with a count in `bytes`, which the source gives
 * out. */
struct rd_buf log_text(struct rd_src *src, const struct aof_log_opts *opts, struct rd_slice bytes);

struct rd_src *log_memory(struct rd_slice bytes);

/* Gives bytes in pieces of n through a window. */
struct rd_src *log_trickle(struct rd_slice bytes, size_t n, size_t window);

#endif
