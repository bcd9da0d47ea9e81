/* stream_node.h - private to engine/value/stream*.c: elements of a node, which is never empty.
 */
#ifndef ENGINE_VALUE_STREAM_NODE_H
#define ENGINE_VALUE_STREAM_NODE_H

#include "engine/listpack.h"

/* The number of live entries. */
static inline uint8_t *node_first(uint8_t *lp)
{
    return lp + ENGINE_LP_HEAD;
}

/* The next element, or the end mark. */
static inline uint8_t *node_after(uint8_t *p)
{
    return p + engine_lp_span(p);
}

static inline uint8_t *node_before(uint8_t *p)
{
    return p - engine_lp_span_back(p);
}

static inline int64_t node_num(const uint8_t *p)
{
    return engine_lp_get(p).num;
}

#endif
