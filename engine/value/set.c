#include "engine/value/set.h"

#include "base/copy.h"
#include "engine/call.h"
#include "engine/digest.h"
#include "engine/hash.h"
#include "engine/listpack.h"
#include "rdb/writer.h"

enum { INTSET_ENTRIES_MAX = 1 << 30 };

/* ---- tables ---- */

static struct rd_slice member_name(const void *item)
{
    return engine_member_text(item);
}

static const struct engine_table_type member_table = {.name = member_name};

static struct engine_member *member_new(struct rd_slice text)
{
    struct engine_member *m = engine_alloc(sizeof *m + text.len);
    m->len = (uint32_t)text.len;
    rd_copy_short(m->bytes, text.ptr, text.len);
    return m;
}

static void member_free(void *ctx, void *item)
{
    (void)ctx;
    engine_free(item);
}

static void make_table(struct engine_value *v, size_t n)
{
    enum { RESERVE_MAX = 1 << 30 };
    v->u.set = engine_alloc(sizeof *v->u.set);
    v->type = ENGINE_SET;
    v->encoding = ENGINE_HASHTABLE;
    engine_table_init(&v->u.set->members, &member_table, engine_table_seed());
    engine_table_reserve(&v->u.set->members, n < RESERVE_MAX ? n : RESERVE_MAX);
}

static bool table_add(struct engine_value *v, struct rd_slice text)
{
    struct engine_table_slot slot;
    if (engine_table_find_or_slot(&v->u.set->members, text, &slot) != NULL)
        return false;
    engine_table_add_at(&v->u.set->members, &slot, member_new(text));
    return true;
}

static bool table_remove(struct engine_value *v, struct rd_slice text)
{
    struct engine_member *m = engine_table_remove(&v->u.set->members, text);
    engine_free(m);
    return m != NULL;
}

/* ---- intsets ---- */

static void make_intset(struct engine_value *v)
{
    v->u.intset = engine_intset_new();
    v->type = ENGINE_SET;
    v->encoding = ENGINE_INTSET;
}

static void become_table(struct engine_value *v)
{
    uint8_t *is = v->u.intset;
    size_t n = engine_intset_count(is);
    char digits[RD_NUM_I64_MAX];
    make_table(v, n + 1);
    for (size_t i = 0; i < n; i++) {
        int64_t num = engine_intset_get(is, i);
        struct engine_member *m = member_new(rd_slice(digits, rd_num_put_i64(digits, num)));
        engine_table_add(&v->u.set->members, m);
    }
    engine_intset_free(is);
}

static bool too_many(size_t n, const struct engine_config *config)
{
    size_t max = config->set_max_intset_entries;
    return n > (max < INTSET_ENTRIES_MAX ? max : INTSET_ENTRIES_MAX);
}

static bool intset_add(struct engine_value *v, struct rd_slice text,
                       const struct engine_config *config)
{
    int64_t num;
    if (!rd_num_get_i64(text, &num)) {
        become_table(v);
        return table_add(v, text);
    }
    if (!engine_intset_add(&v->u.intset, num))
        return false;
    if (too_many(engine_intset_count(v->u.intset), config))
        become_table(v);
    return true;
}

/* ---- both encodings ---- */

struct engine_value engine_set_new(struct rd_slice first)
{
    struct engine_value v = {.type = ENGINE_SET};
    int64_t num;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_SET);
    if (rd_num_get_i64(first, &num))
        make_intset(&v);
    else
        make_table(&v, 0);
    engine_mem_leave(before);
    return v;
}

struct engine_value engine_set_new_intset(void)
{
    struct engine_value v = {.type = ENGINE_SET};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_SET);
    make_intset(&v);
    engine_mem_leave(before);
    return v;
}

bool engine_set_has(const struct engine_value *v, struct rd_slice member)
{
    int64_t num;
    if (v->encoding == ENGINE_HASHTABLE)
        return engine_table_find(&v->u.set->members, member) != NULL;
    return rd_num_get_i64(member, &num) && engine_intset_find(v->u.intset, num);
}

bool engine_set_add(struct engine_value *v, struct rd_slice member,
                    const struct engine_config *config)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_SET);
    bool added =
        v->encoding == ENGINE_HASHTABLE ? table_add(v, member) : intset_add(v, member, config);
    engine_mem_leave(before);
    return added;
}

bool engine_set_remove(struct engine_value *v, struct rd_slice member)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_SET);
    int64_t num;
    bool removed;
    if (v->encoding == ENGINE_HASHTABLE)
        removed = table_remove(v, member);
    else
        removed = rd_num_get_i64(member, &num) && engine_intset_remove(&v->u.intset, num);
    engine_mem_leave(before);
    return removed;
}

uint64_t engine_set_count(const struct engine_value *v)
{
    return v->encoding == ENGINE_HASHTABLE ? engine_table_count(&v->u.set->members)
                                           : engine_intset_count(v->u.intset);
}

static struct rd_slice intset_text(const struct engine_value *v, size_t index,
                                   char tmp[RD_NUM_I64_MAX])
{
    return rd_slice(tmp, rd_num_put_i64(tmp, engine_intset_get(v->u.intset, index)));
}

struct rd_slice engine_set_random(const struct engine_value *v, uint64_t random,
                                  char tmp[RD_NUM_I64_MAX])
{
    if (v->encoding == ENGINE_HASHTABLE) {
        engine_table_step(&v->u.set->members, 1);
        return engine_member_text(engine_table_random(&v->u.set->members, random));
    }
    return intset_text(v, engine_hash_below(random, engine_intset_count(v->u.intset)), tmp);
}

void engine_set_iter_begin(struct engine_set_iter *it, const struct engine_value *v)
{
    it->v = v;
    it->index = 0;
    if (v->encoding == ENGINE_HASHTABLE)
        engine_table_iter_begin(&it->table, &v->u.set->members);
}

bool engine_set_iter_next(struct engine_set_iter *it, struct rd_slice *ret)
{
    if (it->v->encoding == ENGINE_HASHTABLE) {
        const struct engine_member *m = engine_table_iter_next(&it->table);
        if (m != NULL)
            *ret = engine_member_text(m);
        return m != NULL;
    }
    if (it->index == engine_intset_count(it->v->u.intset))
        return false;
    *ret = intset_text(it->v, it->index++, it->tmp);
    return true;
}

void engine_set_iter_end(struct engine_set_iter *it)
{
    if (it->v->encoding == ENGINE_HASHTABLE)
        engine_table_iter_end(&it->table);
}

/* ---- loading ----
 *
 * While elements arrive, v->len is LOADING and the set that it points to is the first member of
 * this struct. As in servers, a small set of integers then becomes an intset.
 */

enum { LOADING = 1, QUEUE_FROM = 1000 /* members waiting to be added to the table */ };

struct loader {
    struct engine_set set;
    struct engine_value value; /* the set so far; empty before the first member */
    struct engine_pieces pieces;
    uint64_t count; /* the count in the file, or 0 */
    bool begun;
    struct engine_table_queue *queue; /* of the table, or NULL */
};

static struct loader *loader_of(const struct engine_value *v)
{
    return (struct loader *)(void *)v->u.set;
}

static void load_begin(struct engine_value *v, uint64_t count)
{
    struct loader *load = engine_calloc(1, sizeof *load);
    load->count = count != RDB_UNKNOWN ? count : 0;
    load->value.type = ENGINE_SET;
    v->u.set = &load->set;
    v->len = LOADING;
}

static void load_first(struct loader *load, struct rd_slice text,
                       const struct engine_config *config)
{
    int64_t num;
    load->begun = true;
    if (!too_many(load->count, config) && rd_num_get_i64(text, &num)) {
        make_intset(&load->value);
        return;
    }
    make_table(&load->value, load->count);
    if (load->count >= QUEUE_FROM) {
        load->queue = engine_scratch_alloc(sizeof *load->queue);
        *load->queue = (struct engine_table_queue){0};
    }
}

static bool load_duplicate(const struct rdb_event *ev, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "duplicate member in a set");
}

/* False: an earlier member was a duplicate; the caller reports it later. */
static bool queue_add(struct loader *load, struct engine_member *m)
{
    struct engine_member *twice =
        m != NULL ? engine_table_queue_add(&load->value.u.set->members, load->queue, m)
                  : engine_table_queue_end(&load->value.u.set->members, load->queue);
    engine_free(twice);
    return twice == NULL;
}

static bool load_member(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    struct rd_slice text;
    struct loader *load = loader_of(v);
    if (ev->elem.str.total > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "member larger than 4 GiB");
    if (!engine_pieces_take(&load->pieces, &ev->elem.str, &text))
        return true;
    if (!load->begun)
        load_first(load, text, config);
    bool added = load->queue != NULL ? queue_add(load, member_new(text))
                                     : engine_set_add(&load->value, text, config);
    return added || load_duplicate(ev, err);
}

static bool load_listpack(struct engine_value *v, const struct rdb_event *ev,
                          const struct engine_config *config, struct rd_err *err)
{
    uint8_t *lp = engine_lp_from(ev->packed.blob);
    char tmp[RD_NUM_I64_MAX];
    bool good = true;
    for (uint8_t *p = engine_lp_first(lp); good && p != NULL; p = engine_lp_next(p))
        good = engine_set_add(v, engine_lp_item_text(engine_lp_get(p), tmp), config);
    engine_lp_free(lp);
    return good || load_duplicate(ev, err);
}

/* If the integers are out of order, existing members are not found and are added again. */
static bool is_ascending(const uint8_t *is)
{
    size_t n = engine_intset_count(is);
    for (size_t i = 1; i < n; i++)
        if (engine_intset_get(is, i) <= engine_intset_get(is, i - 1))
            return false;
    return true;
}

static bool load_packed(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    if (ev->packed.codec != RDB_INTSET) {
        make_intset(v);
        return load_listpack(v, ev, config, err);
    }
    v->u.intset = engine_intset_from(ev->packed.blob);
    v->encoding = ENGINE_INTSET;
    if (!is_ascending(v->u.intset))
        return rd_err_set(err, RD_ERR_CORRUPT, ev->offset, "intset not in order");
    if (too_many(engine_intset_count(v->u.intset), config))
        become_table(v);
    return true;
}

/* False: a duplicate member. */
static bool load_end(struct engine_value *v)
{
    struct loader *load = loader_of(v);
    bool good = true;
    if (v->len != LOADING) {
        if (v->u.set == NULL)
            make_intset(v);
        return true;
    }
    while (load->queue != NULL && !queue_add(load, NULL))
        good = false;
    if (!load->begun)
        make_intset(&load->value);
    engine_scratch_free(load->queue);
    engine_pieces_done(&load->pieces);
    v->u = load->value.u;
    v->encoding = load->value.encoding;
    v->len = 0;
    engine_free(load);
    return good;
}

static bool is_packed(enum rdb_type_id id)
{
    return id == RDB_TYPE_SET_INTSET || id == RDB_TYPE_SET_LISTPACK;
}

static bool set_load(struct engine_value *v, const struct rdb_event *ev,
                     const struct engine_config *config, struct rd_err *err)
{
    switch ((int)ev->kind) {
    case RDB_VALUE:
        v->type = ENGINE_SET;
        v->encoding = ENGINE_HASHTABLE;
        if (!is_packed(ev->value.type->id))
            load_begin(v, ev->value.count);
        return true;
    case RDB_PACKED:
        return load_packed(v, ev, config, err);
    case RDB_ELEM:
        if (v->len != LOADING)
            load_begin(v, RDB_UNKNOWN);
        return load_member(v, ev, config, err);
    case RDB_VALUE_END:
        return load_end(v) || load_duplicate(ev, err);
    default:
        return true;
    }
}

/* ---- saving ---- */

static bool save_members(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    struct engine_set_iter it;
    struct rd_slice text;
    bool good = true;
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.first = true;
    engine_set_iter_begin(&it, v);
    while (good && engine_set_iter_next(&it, &text)) {
        ev.elem.str.ptr = text.ptr;
        ev.elem.str.len = text.len;
        ev.elem.str.total = text.len;
        good = rdb_writer_put(w, &ev, err);
    }
    engine_set_iter_end(&it);
    return good;
}

static bool save_intset(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev = {.kind = RDB_PACKED, .inner = RD_NO_OFFSET};
    ev.packed.codec = RDB_INTSET;
    ev.packed.blob = rd_slice(v->u.intset, engine_intset_bytes(v->u.intset));
    ev.packed.count = engine_intset_count(v->u.intset);
    return rdb_writer_put(w, &ev, err);
}

static bool set_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    bool packed = v->encoding == ENGINE_INTSET;
    struct rdb_event begin = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    begin.value.type = rdb_type_get(packed ? RDB_TYPE_SET_INTSET : RDB_TYPE_SET);
    begin.value.count = engine_set_count(v);
    begin.value.nodes = RDB_UNKNOWN;
    begin.value.min_expire_ms = RDB_NO_EXPIRE;
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    return rdb_writer_put(w, &begin, err) &&
           (packed ? save_intset(v, w, err) : save_members(v, w, err)) &&
           rdb_writer_put(w, &end, err);
}

/* ---- what every type has ---- */

static void set_free(struct engine_value *v)
{
    if (v->len == LOADING)
        load_end(v);
    if (v->encoding == ENGINE_INTSET) {
        engine_intset_free(v->u.intset);
    } else if (v->u.set != NULL) {
        engine_table_drain(&v->u.set->members, member_free, NULL);
        engine_free(v->u.set);
    }
}

static void copy_member(struct engine_table *to, const void *item)
{
    engine_table_add(to, member_new(engine_member_text(item)));
}

static void set_dup(struct engine_value *ret, const struct engine_value *v)
{
    if (v->encoding == ENGINE_INTSET) {
        ret->u.intset = engine_intset_dup(v->u.intset);
        return;
    }
    struct engine_table_iter it;
    make_table(ret, engine_table_count(&v->u.set->members));
    engine_table_iter_begin(&it, &v->u.set->members);
    for (void *item; (item = engine_table_iter_next(&it)) != NULL;)
        copy_member(&ret->u.set->members, item);
    engine_table_iter_end(&it);
}

static size_t set_effort(const struct engine_value *v)
{
    return v->encoding == ENGINE_INTSET ? 1 : engine_table_count(&v->u.set->members);
}

static void set_digest(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_set_iter it;
    struct rd_slice text;
    engine_set_iter_begin(&it, v);
    while (engine_set_iter_next(&it, &text))
        engine_digest_xor(sum, text);
    engine_set_iter_end(&it);
}

static struct engine_table *set_table(const struct engine_value *v)
{
    return v->encoding == ENGINE_HASHTABLE ? &v->u.set->members : NULL;
}

const struct engine_type_ops engine_set_ops = {
    .free = set_free,
    .dup = set_dup,
    .count = engine_set_count,
    .effort = set_effort,
    .table = set_table,
    .digest = set_digest,
    .load = set_load,
    .save = set_save,
};
