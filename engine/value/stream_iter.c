/* stream_iter.c - iterates over the entries of a stream and changes them in place. */
#include "engine/value/stream.h"

#include "engine/value/stream_node.h"

static uint8_t *skip(uint8_t *p, uint64_t n)
{
    for (; n > 0 && p[0] != ENGINE_LP_END; n--)
        p = node_after(p);
    return p;
}

/* ---- iterating ---- */

void engine_stream_iter_begin(struct engine_stream_iter *it, const struct engine_stream *stream,
                              struct rdb_stream_id start, struct rdb_stream_id end, bool reverse)
{
    *it = (struct engine_stream_iter){
        .stream = stream, .start = start, .end = end, .reverse = reverse, .ready = true};
    const struct engine_stream_map *nodes = &stream->nodes;
    it->any = engine_stream_map_le(nodes, reverse ? end : start, &it->pos);
    if (!it->any && !reverse)
        it->any = engine_stream_map_first(nodes, &it->pos);
}

/* Opens the next node, before its first entry or after its last one. */
static bool enter(struct engine_stream_iter *it)
{
    const struct engine_stream_map *nodes = &it->stream->nodes;
    if (!it->ready && it->any)
        it->any = it->reverse ? engine_stream_map_prev(nodes, &it->pos)
                              : engine_stream_map_next(nodes, &it->pos);
    it->ready = false;
    if (!it->any)
        return false;
    it->lp = *(uint8_t **)engine_stream_map_at(nodes, it->pos);
    it->node_id = engine_stream_map_id(nodes, it->pos);
    uint8_t *p = skip(node_first(it->lp), 2);
    it->n_names = (uint64_t)node_num(p);
    it->names = node_after(p);
    it->left = 0;
    it->flags = 0;
    it->p = it->reverse ? NULL : skip(it->names, it->n_names);
    it->head = it->lp + engine_lp_bytes(it->lp) - 1;
    return true;
}

static void read_head(struct engine_stream_iter *it, uint8_t *p)
{
    it->head = p;
    it->flags = (uint64_t)node_num(p);
    p = node_after(p);
    it->id.ms = it->node_id.ms + (uint64_t)node_num(p);
    p = node_after(p);
    it->id.seq = it->node_id.seq + (uint64_t)node_num(p);
    p = node_after(p);
    it->n_fields = it->n_names;
    it->name = it->names;
    if ((it->flags & ENGINE_STREAM_SAME_FIELDS) == 0) {
        it->n_fields = (uint64_t)node_num(p);
        p = node_after(p);
    }
    it->p = p;
    it->left = it->n_fields;
}

/* Skips the rest of the entry and its element count. */
static bool step(struct engine_stream_iter *it)
{
    bool same = (it->flags & ENGINE_STREAM_SAME_FIELDS) != 0;
    uint8_t *p = node_after(skip(it->p, same ? it->left : 2 * it->left));
    if (p[0] == ENGINE_LP_END)
        return false;
    read_head(it, p);
    return true;
}

static bool step_back(struct engine_stream_iter *it)
{
    uint8_t *p = node_before(it->head);
    int64_t n = node_num(p);
    if (n == 0)
        return false; /* the mark at the end of the node's field names */
    for (; n > 0; n--)
        p = node_before(p);
    read_head(it, p);
    return true;
}

enum verdict { PASS, TAKE, OVER };

static enum verdict judge(const struct engine_stream_iter *it)
{
    int over_end = rdb_stream_id_cmp(it->id, it->end);
    int over_start = rdb_stream_id_cmp(it->id, it->start);
    if (((it->flags & ENGINE_STREAM_DELETED) != 0 && !it->tombstones) ||
        (it->reverse ? over_end > 0 : over_start < 0))
        return PASS;
    return (it->reverse ? over_start < 0 : over_end > 0) ? OVER : TAKE;
}

bool engine_stream_iter_next(struct engine_stream_iter *it)
{
    for (;;) {
        if (it->lp == NULL && !enter(it))
            return false;
        while (it->reverse ? step_back(it) : step(it)) {
            enum verdict verdict = judge(it);
            if (verdict != PASS)
                return verdict == TAKE;
        }
        it->lp = NULL;
    }
}

bool engine_stream_in_order(const struct engine_stream *stream)
{
    struct engine_stream_iter it;
    struct rdb_stream_id last = ENGINE_STREAM_ID_ZERO;
    engine_stream_iter_begin(&it, stream, ENGINE_STREAM_ID_ZERO, ENGINE_STREAM_ID_LAST, false);
    for (bool first = true; engine_stream_iter_next(&it); first = false) {
        if (!first && rdb_stream_id_cmp(it.id, last) <= 0)
            return false;
        last = it.id;
    }
    return true;
}

void engine_stream_iter_field(struct engine_stream_iter *it, struct engine_lp_item *ret_field,
                              struct engine_lp_item *ret_value)
{
    if ((it->flags & ENGINE_STREAM_SAME_FIELDS) != 0) {
        *ret_field = engine_lp_get(it->name);
        it->name = node_after(it->name);
    } else {
        *ret_field = engine_lp_get(it->p);
        it->p = node_after(it->p);
    }
    *ret_value = engine_lp_get(it->p);
    it->p = node_after(it->p);
    it->left--;
}

/* ---- single entries ---- */

struct rdb_stream_id engine_stream_edge(const struct engine_stream *stream, bool first,
                                        bool tombstones)
{
    struct engine_stream_iter it;
    engine_stream_iter_begin(&it, stream, ENGINE_STREAM_ID_ZERO, ENGINE_STREAM_ID_LAST, !first);
    it.tombstones = tombstones;
    if (engine_stream_iter_next(&it))
        return it.id;
    return first ? ENGINE_STREAM_ID_LAST : ENGINE_STREAM_ID_ZERO;
}

bool engine_stream_has(const struct engine_stream *stream, struct rdb_stream_id id)
{
    struct engine_stream_iter it;
    engine_stream_iter_begin(&it, stream, id, id, false);
    return engine_stream_iter_next(&it);
}

static void remove_node(struct engine_stream *stream, struct engine_stream_map_pos pos)
{
    engine_lp_free(*(uint8_t **)engine_stream_map_at(&stream->nodes, pos));
    engine_stream_map_remove(&stream->nodes, pos);
}

/* Updates the counters of the node after n entries were marked as deleted. */
static void count_deleted(uint8_t **node, int64_t n)
{
    uint8_t *p = node_first(*node);
    p = node_after(engine_lp_replace_int(node, p, node_num(p) - n));
    engine_lp_replace_int(node, p, node_num(p) + n);
}

bool engine_stream_delete(struct engine_stream *stream, struct rdb_stream_id id)
{
    struct engine_stream_iter it;
    engine_stream_iter_begin(&it, stream, id, id, false);
    if (!engine_stream_iter_next(&it))
        return false;
    uint8_t **node = engine_stream_map_at(&stream->nodes, it.pos);
    stream->length--;
    if (node_num(node_first(*node)) == 1) {
        remove_node(stream, it.pos);
        return true;
    }
    engine_lp_replace_int(node, it.head, (int64_t)(it.flags | ENGINE_STREAM_DELETED));
    count_deleted(node, 1);
    return true;
}

/* ---- trimming ---- */

/* The last entry of the node, deleted or not. */
static struct rdb_stream_id last_of(struct engine_stream *stream, struct engine_stream_map_pos pos)
{
    struct engine_stream_iter it = {.stream = stream, .reverse = true, .ready = true, .any = true};
    it.pos = pos;
    return enter(&it) && step_back(&it) ? it.id : it.node_id;
}

/* Marks the entry as deleted. Files may contain small numbers in long forms, so the following bytes
 * can move. */
static void mark(struct engine_stream_iter *it, uint8_t **node)
{
    size_t at = (size_t)(it->p - it->lp);
    size_t span = engine_lp_span(it->head);
    it->head = engine_lp_replace_int(node, it->head, (int64_t)(it->flags | ENGINE_STREAM_DELETED));
    it->lp = *node;
    it->p = it->lp + at + engine_lp_span(it->head) - span;
}

/* Marks entries of the first node as deleted until the limit is reached. */
static uint64_t trim_node(struct engine_stream *stream, const struct engine_stream_trim *trim,
                          struct engine_stream_map_pos pos)
{
    struct engine_stream_iter it = {.stream = stream, .ready = true, .any = true, .pos = pos};
    uint8_t **node = engine_stream_map_at(&stream->nodes, pos);
    int64_t n = 0;
    enter(&it);
    while (step(&it)) {
        bool stop = trim->by_id ? rdb_stream_id_cmp(it.id, trim->min_id) >= 0
                                : stream->length <= trim->max_len;
        if (stop)
            break;
        if ((it.flags & ENGINE_STREAM_DELETED) != 0 ||
            !engine_stream_may_remove(stream, it.id, trim->refs))
            continue;
        mark(&it, node);
        stream->length--;
        n++;
    }
    count_deleted(node, n);
    return (uint64_t)n;
}

/* The entries of the node may have to stay, or their pending entries have to go: they are removed
 * one by one. True: the node is gone. */
static bool trim_by_refs(struct engine_stream *stream, const struct engine_stream_trim *trim,
                         struct engine_stream_map_pos pos, uint64_t *gone)
{
    uint64_t n = trim_node(stream, trim, pos);
    *gone += n;
    bool empty = node_num(node_first(*(uint8_t **)engine_stream_map_at(&stream->nodes, pos))) == 0;
    if (empty)
        remove_node(stream, pos);
    return empty;
}

static bool is_whole(struct engine_stream *stream, const struct engine_stream_trim *trim,
                     struct engine_stream_map_pos pos, uint64_t live)
{
    return trim->by_id ? rdb_stream_id_cmp(last_of(stream, pos), trim->min_id) < 0
                       : stream->length - live >= trim->max_len;
}

static uint64_t trim_front(struct engine_stream *stream, const struct engine_stream_trim *trim)
{
    uint64_t gone = 0;
    struct engine_stream_map_pos pos;
    bool more = engine_stream_map_first(&stream->nodes, &pos);
    while (more && (trim->by_id || stream->length > trim->max_len)) {
        uint8_t *lp = *(uint8_t **)engine_stream_map_at(&stream->nodes, pos);
        uint64_t live = (uint64_t)node_num(node_first(lp));
        if (trim->limit > 0 && gone + live > trim->limit)
            break;
        bool whole = is_whole(stream, trim, pos, live);
        if (trim->refs != ENGINE_STREAM_KEEP_REFS) {
            struct rdb_stream_id id = engine_stream_map_id(&stream->nodes, pos);
            bool removed = trim_by_refs(stream, trim, pos, &gone);
            if (!whole)
                break;
            more = engine_stream_map_ge(&stream->nodes, id, &pos) &&
                   (removed || engine_stream_map_next(&stream->nodes, &pos));
            continue;
        }
        if (!whole)
            return trim->approx ? gone : gone + trim_node(stream, trim, pos);
        remove_node(stream, pos);
        stream->length -= live;
        gone += live;
        more = engine_stream_map_first(&stream->nodes, &pos);
    }
    return gone;
}

uint64_t engine_stream_trim(struct engine_stream *stream, const struct engine_stream_trim *trim)
{
    uint64_t gone = trim_front(stream, trim);
    if (stream->length == 0)
        stream->first_id = ENGINE_STREAM_ID_ZERO;
    else if (gone > 0)
        stream->first_id = engine_stream_edge(stream, true, false);
    return gone;
}

/* ---- the radix tree of servers ----
 *
 * Its keys are the IDs of nodes as 16 bytes, the most significant first. There is a node where keys
 * diverge, one for each run of bytes without divergence, and one for each key; the byte after a
 * divergence belongs to the node that diverges. */

enum { KEY = 16 };

static unsigned zero_bytes(uint64_t x)
{
    return x == 0 ? 8 : (unsigned)__builtin_clzll(x) / 8;
}

/* The length of the common prefix of two IDs. */
static unsigned common(struct rdb_stream_id a, struct rdb_stream_id b)
{
    unsigned n = zero_bytes(a.ms ^ b.ms);
    return n < 8 ? n : 8 + zero_bytes(a.seq ^ b.seq);
}

/* Depths of the divergences on the path to the last key. */
struct path {
    unsigned depth[KEY];
    unsigned n;
    uint64_t nodes;
};

/* The subtree at `depth` of the path is complete. */
static void close_branch(struct path *path, unsigned depth, bool below_parting)
{
    bool run = below_parting ? depth > path->depth[path->n - 1] + 1 : depth > 0;
    path->nodes += run ? 2 : 1;
}

/* Shortens the path to the depth at which the next key diverges from the last one. */
static void part(struct path *path, unsigned leaf, unsigned at, bool last)
{
    unsigned below = leaf;
    while (path->n > 0 && (last || path->depth[path->n - 1] > at)) {
        close_branch(path, below, true);
        below = path->depth[--path->n];
    }
    if (last) {
        close_branch(path, below, false);
        return;
    }
    if (path->n == 0 || path->depth[path->n - 1] < at)
        path->depth[path->n++] = at;
    close_branch(path, below, true);
}

uint64_t engine_stream_radix_nodes(const struct engine_stream *stream)
{
    struct path path = {.n = 0};
    struct engine_stream_map_pos pos;
    if (!engine_stream_map_first(&stream->nodes, &pos))
        return 1;
    struct rdb_stream_id id = engine_stream_map_id(&stream->nodes, pos);
    while (engine_stream_map_next(&stream->nodes, &pos)) {
        struct rdb_stream_id next = engine_stream_map_id(&stream->nodes, pos);
        part(&path, KEY, common(id, next), false);
        id = next;
    }
    part(&path, KEY, 0, true);
    return path.nodes;
}
