/* vectors.c - vector sets for a server that reads the first form of their nodes alone.
 *
 * From Redis 8.0.3 on, the numbers of a node end each layer with its farthest link, and its level
 * has the version 1. Earlier servers refuse the whole file because of it. Without this number and
 * the version the node is as they wrote it, and all servers read it.
 */
#include "rdb/write/write.h"

void rdb_write_vectors_begin(struct rdb_writer *w)
{
    w->vectors.converts = true;
    rdb_vectors_begin(&w->vectors.walk);
}

static bool is_strange(struct rdb_writer *w)
{
    w->by_server = true;
    return rdb_write_unsupported(w, "vector set in a form that is not known");
}

static bool put(struct rdb_writer *w, uint64_t number)
{
    return rdb_put_len(w->out, RDB_MODULE_UINT) && rdb_put_len(w->out, number);
}

/* Up to the level, it is not known how many numbers the node will have. */
static bool put_level(struct rdb_writer *w, uint64_t level)
{
    const struct rdb_vectors *walk = &w->vectors.walk;
    uint64_t dropped = walk->has_worst ? walk->layers : 0;
    if (w->vectors.count < dropped)
        return is_strange(w);
    return put(w, w->vectors.count - dropped) && put(w, w->vectors.id) &&
           put(w, level & ((UINT64_C(1) << RDB_VECTORS_VERSION_AT) - 1));
}

bool rdb_write_vectors_item(struct rdb_writer *w, const struct rdb_event *ev)
{
    switch (rdb_vectors_next(&w->vectors.walk, ev)) {
    case RDB_VECTORS_STRANGE:
        return is_strange(w);
    case RDB_VECTORS_COUNT:
        w->vectors.count = ev->item.uint;
        return true;
    case RDB_VECTORS_ID:
        w->vectors.id = ev->item.uint;
        return true;
    case RDB_VECTORS_LEVEL:
        return put_level(w, ev->item.uint);
    case RDB_VECTORS_WORST:
        return true;
    default:
        return rdb_write_item(w, w->out, ev);
    }
}

bool rdb_write_vectors_end(struct rdb_writer *w)
{
    return rdb_vectors_ended(&w->vectors.walk) || is_strange(w);
}
