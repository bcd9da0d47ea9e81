/* streams.h - random histories: the effects of random commands on a master, as a log.
 *
 *     struct rd_buf log = {0};
 *     streams_make(seed, 400, &log);
 */
#ifndef TESTS_HISTORY_STREAMS_H
#define TESTS_HISTORY_STREAMS_H

#include "base/buf.h"

#include <stdint.h>

enum { STREAMS_DBS = 2, STREAMS_KEYS = 8 };

/* Commands of every type, also transactions, and those that read, move or remove other keys, on
 * keys "a" to "h" of two databases. With an odd seed scripts are logged as they are, as servers
 * before Redis 5 do. */
void streams_make(uint64_t seed, unsigned n_commands, struct rd_buf *ret);

/* The name of a key: one letter. */
struct rd_slice streams_key(unsigned i);

uint64_t streams_draw(uint64_t *state);

#endif
