#include "rdb/read/templates.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

struct names_at {
    uint64_t id;
    uint64_t offset;
    size_t first; /* index of its first name */
    size_t n;
};

struct rdb_templates {
    atomic_uint owners;
    struct rd_buf list;  /* struct names_at, in the order of the file */
    struct rd_buf by_id; /* uint32_t: place in the list + 1; 0: none */
    struct rd_buf ends;  /* size_t: where each name ends in `bytes` */
    struct rd_buf bytes;
    struct names_at open;
    bool is_open;
};

static struct names_at *list_of(const struct rdb_templates *t, size_t *ret_n)
{
    *ret_n = t->list.len / sizeof(struct names_at);
    return (struct names_at *)(void *)t->list.ptr;
}

static size_t names_of(const struct rdb_templates *t)
{
    return t->ends.len / sizeof(size_t);
}

static size_t end_of(const struct rdb_templates *t, size_t name)
{
    size_t end;
    memcpy(&end, t->ends.ptr + name * sizeof end, sizeof end);
    return end;
}

struct rdb_templates *rdb_templates_new(void)
{
    struct rdb_templates *t = rd_calloc(1, sizeof *t);
    if (t != NULL)
        atomic_init(&t->owners, 1);
    return t;
}

struct rdb_templates *rdb_templates_share(struct rdb_templates *t)
{
    if (t != NULL)
        atomic_fetch_add(&t->owners, 1);
    return t;
}

void rdb_templates_free(struct rdb_templates *t)
{
    if (t == NULL || atomic_fetch_sub(&t->owners, 1) > 1)
        return;
    rd_buf_done(&t->list);
    rd_buf_done(&t->by_id);
    rd_buf_done(&t->ends);
    rd_buf_done(&t->bytes);
    rd_free(t);
}

static bool copy(struct rd_buf *to, const struct rd_buf *from)
{
    return from->len == 0 || rd_buf_add(to, from->ptr, from->len);
}

bool rdb_templates_own(struct rdb_templates **templates)
{
    struct rdb_templates *t = *templates;
    if (atomic_load(&t->owners) == 1)
        return true;
    struct rdb_templates *own = rdb_templates_new();
    if (own == NULL)
        return false;
    if (!copy(&own->list, &t->list) || !copy(&own->by_id, &t->by_id) ||
        !copy(&own->ends, &t->ends) || !copy(&own->bytes, &t->bytes)) {
        rdb_templates_free(own);
        return false;
    }
    rdb_templates_free(t);
    *templates = own;
    return true;
}

void rdb_templates_reset(struct rdb_templates *t)
{
    t->list.len = t->by_id.len = t->ends.len = t->bytes.len = 0;
    t->is_open = false;
}

static void drop_open(struct rdb_templates *t)
{
    if (!t->is_open)
        return;
    t->ends.len = t->open.first * sizeof(size_t);
    t->bytes.len = t->open.first > 0 ? end_of(t, t->open.first - 1) : 0;
    t->is_open = false;
}

bool rdb_templates_begin(struct rdb_templates *t, uint64_t id, uint64_t offset)
{
    static const uint32_t none;
    drop_open(t);
    t->open = (struct names_at){.id = id, .offset = offset, .first = names_of(t)};
    while (t->by_id.len / sizeof none <= id)
        if (!rd_buf_add(&t->by_id, &none, sizeof none))
            return false;
    if (!rd_buf_reserve(&t->list, sizeof t->open))
        return false;
    t->is_open = true;
    return true;
}

static bool fits(const struct rdb_templates *t, size_t more, size_t max)
{
    size_t used = t->list.len + t->by_id.len + t->ends.len + t->bytes.len;
    return used <= max && more <= max - used;
}

enum rd_err_code rdb_templates_add_name(struct rdb_templates *t, struct rd_slice name, size_t max)
{
    size_t end = t->bytes.len + name.len;
    if (!fits(t, name.len + sizeof end, max))
        return RD_ERR_LIMIT;
    if (!rd_buf_reserve(&t->ends, sizeof end) || !rd_buf_add(&t->bytes, name.ptr, name.len))
        return RD_ERR_MEMORY;
    (void)rd_buf_add(&t->ends, &end, sizeof end);
    return RD_ERR_OK;
}

enum rd_err_code rdb_templates_extend_name(struct rdb_templates *t, struct rd_slice bytes,
                                           size_t max)
{
    size_t end = t->bytes.len + bytes.len;
    if (!fits(t, bytes.len, max))
        return RD_ERR_LIMIT;
    if (!rd_buf_add(&t->bytes, bytes.ptr, bytes.len))
        return RD_ERR_MEMORY;
    memcpy(t->ends.ptr + t->ends.len - sizeof end, &end, sizeof end);
    return RD_ERR_OK;
}

void rdb_templates_end(struct rdb_templates *t)
{
    t->open.n = names_of(t) - t->open.first;
    (void)rd_buf_add(&t->list, &t->open, sizeof t->open); /* reserved when it began */
    uint32_t place = (uint32_t)(t->list.len / sizeof t->open);
    memcpy(t->by_id.ptr + t->open.id * sizeof place, &place, sizeof place);
    t->is_open = false;
}

struct rdb_names rdb_templates_open(const struct rdb_templates *t)
{
    return (struct rdb_names){.of = t, .first = t->open.first, .n = names_of(t) - t->open.first};
}

size_t rdb_templates_count(const struct rdb_templates *t)
{
    return t == NULL ? 0 : t->list.len / sizeof(struct names_at);
}

static const struct names_at *find(const struct rdb_templates *t, uint64_t id)
{
    size_t n;
    uint32_t place;
    if (t == NULL || id >= t->by_id.len / sizeof place)
        return NULL;
    memcpy(&place, t->by_id.ptr + id * sizeof place, sizeof place);
    return place == 0 ? NULL : &list_of(t, &n)[place - 1];
}

bool rdb_templates_find(const struct rdb_templates *t, uint64_t id, struct rdb_names *ret)
{
    const struct names_at *found = find(t, id);
    if (found == NULL)
        return false;
    *ret = (struct rdb_names){.of = t, .first = found->first, .n = found->n};
    return true;
}

uint64_t rdb_templates_offset(const struct rdb_templates *t, uint64_t id)
{
    const struct names_at *found = find(t, id);
    return found == NULL ? RD_NO_OFFSET : found->offset;
}

uint64_t rdb_templates_place(const struct rdb_templates *t, size_t i)
{
    size_t n;
    return list_of(t, &n)[i].offset;
}

void rdb_templates_cut(struct rdb_templates *t, size_t keep)
{
    static const uint32_t none;
    size_t n;
    struct names_at *list = list_of(t, &n);
    if (keep >= n)
        return;
    drop_open(t);
    for (size_t i = keep; i < n; i++)
        memcpy(t->by_id.ptr + list[i].id * sizeof none, &none, sizeof none);
    t->ends.len = list[keep].first * sizeof(size_t);
    t->bytes.len = list[keep].first > 0 ? end_of(t, list[keep].first - 1) : 0;
    t->list.len = keep * sizeof *list;
}

struct rd_slice rdb_names_get(const struct rdb_names *names, size_t i)
{
    const struct rdb_templates *t = names->of;
    size_t name = names->first + i;
    size_t from = name > 0 ? end_of(t, name - 1) : 0;
    return t->bytes.len == 0 ? rd_slice("", 0)
                             : rd_slice(t->bytes.ptr + from, end_of(t, name) - from);
}

bool rdb_names_ascend(const struct rdb_names *names)
{
    for (size_t i = 1; i < names->n; i++) {
        struct rd_slice a = rdb_names_get(names, i - 1), b = rdb_names_get(names, i);
        if (a.len > b.len || (a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) >= 0)))
            return false;
    }
    return true;
}
