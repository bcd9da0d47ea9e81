#include "rdb/vectors.h"

enum { HAS_PROJECTION = 1, HAS_ATTRIBUTES = 2, VERSION_MAX = 1, QUANT_MASK = 0xff };

void rdb_vectors_begin(struct rdb_vectors *walk)
{
    *walk = (struct rdb_vectors){.at = RDB_VECTORS_DIM};
}

static void next_element(struct rdb_vectors *w)
{
    w->ends = w->items == 0;
    w->at = w->ends ? RDB_VECTORS_STRANGE : RDB_VECTORS_NAME;
}

static bool is_string(enum rdb_vectors_part part)
{
    return part == RDB_VECTORS_MATRIX || (part >= RDB_VECTORS_NAME && part <= RDB_VECTORS_VECTOR);
}

static void after_string(struct rdb_vectors *w)
{
    if (w->at == RDB_VECTORS_MATRIX)
        next_element(w);
    else if (w->at == RDB_VECTORS_NAME && !w->has_attributes)
        w->at = RDB_VECTORS_VECTOR;
    else
        w->at++;
}

static void next_layer(struct rdb_vectors *w)
{
    w->at = w->layers > 0 ? RDB_VECTORS_LINKS : RDB_VECTORS_LENGTH;
}

static void after_link(struct rdb_vectors *w)
{
    if (w->links > 0)
        w->at = RDB_VECTORS_LINK;
    else if (w->has_worst)
        w->at = RDB_VECTORS_WORST;
    else
        next_layer(w);
}

/* The numbers of an element. False: they are not as this layout has them. */
static bool take_place(struct rdb_vectors *w, uint64_t number)
{
    if (w->numbers-- == 0)
        return false;
    switch ((int)w->at) {
    case RDB_VECTORS_ID:
        w->at = RDB_VECTORS_LEVEL;
        return true;
    case RDB_VECTORS_LEVEL:
        w->layers = (number & 0xff) + 1;
        w->has_worst = number >> RDB_VECTORS_VERSION_AT > 0;
        next_layer(w);
        return number >> RDB_VECTORS_VERSION_AT <= VERSION_MAX;
    case RDB_VECTORS_LINKS:
        w->layers--;
        w->links = number;
        w->at = RDB_VECTORS_ROOM;
        return true;
    case RDB_VECTORS_ROOM:
        after_link(w);
        return true;
    case RDB_VECTORS_LINK:
        w->links--;
        after_link(w);
        return true;
    case RDB_VECTORS_WORST:
        next_layer(w);
        return true;
    default:
        w->items--;
        next_element(w);
        return w->numbers == 0;
    }
}

static bool take_number(struct rdb_vectors *w, uint64_t number)
{
    switch ((int)w->at) {
    case RDB_VECTORS_ITEMS:
        w->items = number;
        break;
    case RDB_VECTORS_CONFIG:
        w->quant = (unsigned)(number & QUANT_MASK);
        break;
    case RDB_VECTORS_FLAGS:
        w->has_attributes = (number & HAS_ATTRIBUTES) != 0;
        if ((number & HAS_PROJECTION) == 0)
            next_element(w);
        else
            w->at = RDB_VECTORS_INPUT;
        return number <= (HAS_PROJECTION | HAS_ATTRIBUTES);
    case RDB_VECTORS_COUNT:
        w->numbers = number;
        break;
    case RDB_VECTORS_DIM:
    case RDB_VECTORS_INPUT:
        break;
    default:
        return take_place(w, number);
    }
    w->at++;
    return true;
}

enum rdb_vectors_part rdb_vectors_next(struct rdb_vectors *w, const struct rdb_event *ev)
{
    enum rdb_vectors_part part = w->at;
    bool string = ev->item.opcode == RDB_MODULE_STRING, ok = part != RDB_VECTORS_STRANGE;
    ok = ok && string == is_string(part) && (string || ev->item.opcode == RDB_MODULE_UINT);
    if (ok && !string)
        ok = take_number(w, ev->item.uint);
    else if (ok && !ev->item.str.more)
        after_string(w);
    if (ok)
        return part;
    w->at = RDB_VECTORS_STRANGE;
    w->ends = false;
    return RDB_VECTORS_STRANGE;
}
