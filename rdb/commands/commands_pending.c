/* The pending entries of a serialized stream. Only the framing is read; nodes and names are
 * skipped, so that reading a value twice is cheap.
 *
 *     nodes  length  ids and counters  groups: name  ids  pending…  consumers: name  owned…
 *
 * Offsets exist since type 19 (the second generation), times of activity since 21, entries without
 * an owner since 27. */
#include "base/mem.h"
#include "rdb/commands/commands_impl.h"
#include "rdb/enc/len.h"

#include <stdlib.h>

enum { GEN_OFFSETS = 2, GEN_ACTIVE = 3, GEN_NACKS = 5, ID_BYTES = 16, TIME_BYTES = 8 };

struct walk {
    struct rd_src *src;
    int gen;
    struct rdb_pending_ids *ids;
    bool no_memory;
};

static int generation(const struct rdb_type *type)
{
    static const enum rdb_type_id types[] = {
        RDB_TYPE_STREAM_LISTPACKS, RDB_TYPE_STREAM_LISTPACKS_2, RDB_TYPE_STREAM_LISTPACKS_3,
        RDB_TYPE_STREAM_LISTPACKS_4, RDB_TYPE_STREAM_LISTPACKS_5};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type->id == types[i])
            return (int)i + 1;
    return 0;
}

/* ---- the parts of a stream; false: malformed ---- */

static bool pass(struct walk *w, uint64_t n)
{
    struct rd_slice s;
    while (n > 0) {
        if (rd_src_need(w->src, 1, &s) != RD_SRC_OK)
            return false;
        size_t step = n < s.len ? (size_t)n : s.len;
        rd_src_consume(w->src, step);
        n -= step;
    }
    return true;
}

static bool get_len(struct walk *w, uint64_t *ret)
{
    struct rd_slice s;
    size_t size;
    if (rd_src_need(w->src, RDB_LEN_MAX, &s) == RD_SRC_FAIL ||
        rdb_len_parse(s.ptr, s.len, ret, &size) != RDB_PARSE_OK)
        return false;
    rd_src_consume(w->src, size);
    return true;
}

static bool pass_lens(struct walk *w, unsigned n)
{
    uint64_t any;
    for (unsigned i = 0; i < n; i++)
        if (!get_len(w, &any))
            return false;
    return true;
}

static bool pass_string(struct walk *w)
{
    struct rdb_str_head head;
    struct rd_slice s;
    if (rd_src_need(w->src, RDB_HEAD_MAX, &s) == RD_SRC_FAIL ||
        rdb_str_head_parse(s.ptr, s.len, &head) != RDB_PARSE_OK)
        return false;
    rd_src_consume(w->src, head.size);
    return head.kind == RDB_STR_INT || pass(w, head.stored);
}

/* Skips n blocks of a size; n is not trusted. */
static bool pass_blocks(struct walk *w, uint64_t n, unsigned size)
{
    return n <= UINT64_MAX / size && pass(w, n * size);
}

static bool add(struct walk *w, struct rdb_stream_id id)
{
    struct rdb_pending_ids *ids = w->ids;
    if (ids->n == ids->cap) {
        size_t cap = ids->cap == 0 ? 64 : ids->cap * 2;
        struct rdb_stream_id *more = rd_realloc(ids->ids, cap * sizeof *more);
        w->no_memory = more == NULL;
        if (more == NULL)
            return false;
        ids->ids = more;
        ids->cap = cap;
    }
    ids->ids[ids->n++] = id;
    return true;
}

static bool take_pending(struct walk *w)
{
    struct rd_slice s;
    if (rd_src_need(w->src, ID_BYTES + TIME_BYTES, &s) != RD_SRC_OK)
        return false;
    struct rdb_stream_id id = {rd_get_be64(s.ptr), rd_get_be64(s.ptr + 8)};
    rd_src_consume(w->src, ID_BYTES + TIME_BYTES);
    return add(w, id) && pass_lens(w, 1);
}

static bool pass_consumer(struct walk *w)
{
    uint64_t n_owned;
    return pass_string(w) && pass(w, w->gen >= GEN_ACTIVE ? 2 * TIME_BYTES : TIME_BYTES) &&
           get_len(w, &n_owned) && pass_blocks(w, n_owned, ID_BYTES);
}

static bool take_group(struct walk *w)
{
    uint64_t n_pending, n_consumers, n_given_back = 0;
    if (!pass_string(w) || !pass_lens(w, w->gen >= GEN_OFFSETS ? 3 : 2) || !get_len(w, &n_pending))
        return false;
    for (uint64_t i = 0; i < n_pending; i++)
        if (!take_pending(w))
            return false;
    if (!get_len(w, &n_consumers))
        return false;
    for (uint64_t i = 0; i < n_consumers; i++)
        if (!pass_consumer(w))
            return false;
    return w->gen < GEN_NACKS ||
           (get_len(w, &n_given_back) && pass_blocks(w, n_given_back, ID_BYTES));
}

static bool take_stream(struct walk *w)
{
    uint64_t n_nodes, n_groups;
    if (w->gen == 0 || !get_len(w, &n_nodes))
        return false;
    for (uint64_t i = 0; i < n_nodes; i++)
        if (!pass_string(w) || !pass_string(w))
            return false;
    if (!pass_lens(w, w->gen >= GEN_OFFSETS ? 8 : 3) || !get_len(w, &n_groups))
        return false;
    for (uint64_t i = 0; i < n_groups; i++)
        if (!take_group(w))
            return false;
    return true;
}

/* ---- the ids ---- */

static int by_id(const void *a, const void *b)
{
    const struct rdb_stream_id *x = a, *y = b;
    return rdb_stream_id_cmp(*x, *y);
}

/* Groups can share IDs. */
static void arrange(struct rdb_pending_ids *ids)
{
    size_t last = 0;
    if (ids->n == 0)
        return;
    qsort(ids->ids, ids->n, sizeof *ids->ids, by_id);
    for (size_t i = 1; i < ids->n; i++)
        if (rdb_stream_id_cmp(ids->ids[last], ids->ids[i]) != 0)
            ids->ids[++last] = ids->ids[i];
    ids->n = last + 1;
}

bool rdb_pending_ids_find(struct rdb_pending_ids *ids, struct rd_src *value,
                          const struct rdb_type *type, struct rd_err *err)
{
    struct walk w = {.src = value, .gen = generation(type), .ids = ids};
    ids->n = 0;
    if (!take_stream(&w) && w.no_memory)
        return rd_err_nomem(err, ids->cap * sizeof *ids->ids);
    arrange(ids);
    return true;
}

void rdb_pending_ids_done(struct rdb_pending_ids *ids)
{
    rd_free(ids->ids);
    *ids = (struct rdb_pending_ids){0};
}
