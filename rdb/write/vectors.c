/* vectors.c - vector sets for a server that reads the first form of their nodes alone.
 *
 * docs/format/modules.md has the layout. From Redis 8.0.3 on, the numbers of a node end each layer
 * with its farthest link, and its level has the version 1. Earlier servers refuse the whole file
 * because of it. Without this number and the version the node is as they wrote it, and all servers
 * read it.
 */
#include "rdb/write/write.h"

enum { HAS_PROJECTION = 1, HAS_ATTRIBUTES = 2, VERSION_AT = 24, VERSION_MAX = 1 };

/* The next part of the value. */
enum {
    AT_DIM,
    AT_ITEMS,
    AT_CONFIG,
    AT_FLAGS,
    AT_INPUT,
    AT_MATRIX,
    AT_NAME,
    AT_ATTRIBUTES,
    AT_VECTOR,
    AT_COUNT,
    AT_ID,
    AT_LEVEL,
    AT_LINKS,
    AT_ROOM,
    AT_LINK,
    AT_WORST,
    AT_LENGTH,
    AT_END
};

void rdb_vectors_begin(struct rdb_writer *w)
{
    w->vectors = (struct rdb_vectors){.converts = true, .at = AT_DIM};
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

/* ---- strings ---- */

static int after_string(const struct rdb_vectors *v)
{
    switch (v->at) {
    case AT_NAME:
        return v->has_attributes ? AT_ATTRIBUTES : AT_VECTOR;
    case AT_ATTRIBUTES:
        return AT_VECTOR;
    case AT_VECTOR:
        return AT_COUNT;
    default:
        return v->items > 0 ? AT_NAME : AT_END;
    }
}

static bool put_string(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_vectors *v = &w->vectors;
    if (v->at != AT_MATRIX && (v->at < AT_NAME || v->at > AT_VECTOR))
        return is_strange(w);
    if (!ev->item.str.more)
        v->at = after_string(v);
    return rdb_write_item(w, w->out, ev);
}

/* ---- numbers ---- */

/* Up to the level, it is not known how many numbers the node will have. */
static bool put_level(struct rdb_writer *w, uint64_t number)
{
    struct rdb_vectors *v = &w->vectors;
    uint64_t version = number >> VERSION_AT;
    v->layers = (number & 0xff) + 1;
    v->has_worst = version > 0;
    uint64_t dropped = v->has_worst ? v->layers : 0;
    if (version > VERSION_MAX || v->count < dropped)
        return is_strange(w);
    v->at = AT_LINKS;
    return put(w, v->count - dropped) && put(w, v->id) &&
           put(w, number & ((UINT64_C(1) << VERSION_AT) - 1));
}

static int after_links(const struct rdb_vectors *v)
{
    if (v->links > 0)
        return AT_LINK;
    if (v->has_worst)
        return AT_WORST;
    return v->layers > 0 ? AT_LINKS : AT_LENGTH;
}

/* The numbers of a layer, and the last of a node. */
static bool put_place(struct rdb_writer *w, uint64_t number)
{
    struct rdb_vectors *v = &w->vectors;
    switch (v->at) {
    case AT_LINKS:
        v->layers--;
        v->links = number;
        v->at = AT_ROOM;
        break;
    case AT_ROOM:
        v->at = after_links(v);
        break;
    case AT_LINK:
        v->links--;
        v->at = after_links(v);
        break;
    case AT_WORST:
        v->at = v->layers > 0 ? AT_LINKS : AT_LENGTH;
        return true;
    case AT_LENGTH:
        v->at = --v->items > 0 ? AT_NAME : AT_END;
        break;
    default:
        return is_strange(w);
    }
    return put(w, number);
}

static bool put_number(struct rdb_writer *w, uint64_t number)
{
    struct rdb_vectors *v = &w->vectors;
    switch (v->at) {
    case AT_ITEMS:
        v->items = number;
        break;
    case AT_FLAGS:
        v->has_attributes = (number & HAS_ATTRIBUTES) != 0;
        v->at = (number & HAS_PROJECTION) != 0 ? AT_INPUT : v->items > 0 ? AT_NAME : AT_END;
        return number <= (HAS_PROJECTION | HAS_ATTRIBUTES) ? put(w, number) : is_strange(w);
    case AT_COUNT:
        v->count = number;
        v->at = AT_ID;
        return true;
    case AT_ID:
        v->id = number;
        v->at = AT_LEVEL;
        return true;
    case AT_LEVEL:
        return put_level(w, number);
    case AT_DIM:
    case AT_CONFIG:
    case AT_INPUT:
        break;
    default:
        return put_place(w, number);
    }
    v->at++;
    return put(w, number);
}

bool rdb_vectors_item(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->item.opcode == RDB_MODULE_STRING)
        return put_string(w, ev);
    return ev->item.opcode == RDB_MODULE_UINT ? put_number(w, ev->item.uint) : is_strange(w);
}

bool rdb_vectors_end(struct rdb_writer *w)
{
    return w->vectors.at == AT_END || is_strange(w);
}
