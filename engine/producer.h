/* producer.h - the name that a server gives to an entry of a producer that has none of its own:
 * XADD … IDMPAUTO of Redis 8.6. The same fields in any order have the same name.
 *
 *     uint8_t name[ENGINE_PRODUCED_NAME];
 *     engine_produced_name(argv + 5, 2, name);  // two pairs of field and value
 */
#ifndef ENGINE_PRODUCER_H
#define ENGINE_PRODUCER_H

#include "base/slice.h"

enum { ENGINE_PRODUCED_NAME = 16 };

void engine_produced_name(const struct rd_slice *fields, size_t n_pairs,
                          uint8_t ret[ENGINE_PRODUCED_NAME]);

#endif
