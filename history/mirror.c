#include "base/mem.h"
#include "base/xxh3.h"
#include "history/mirror_impl.h"

/* ---- the mirrors ---- */

static size_t slot_of(const struct history_mirrors *mirrors, unsigned db, struct rd_slice name)
{
    size_t mask = mirrors->n_slots - 1;
    size_t slot = (size_t)(rd_xxh3_64(name) + db * UINT64_C(0x9e3779b97f4a7c15)) & mask;
    while (mirrors->slots[slot] != NULL &&
           (mirrors->slots[slot]->db != db || !rd_slice_eq(mirrors->slots[slot]->name, name)))
        slot = (slot + 1) & mask;
    return slot;
}

struct history_mirror *history_mirrors_find(const struct history_mirrors *mirrors, unsigned db,
                                            struct rd_slice name)
{
    return mirrors->n == 0 ? NULL : mirrors->slots[slot_of(mirrors, db, name)];
}

bool history_mirrors_fill_slots(struct history_mirrors *mirrors, size_t n_slots)
{
    struct history_mirror **slots = rd_calloc(n_slots, sizeof *slots);
    if (slots == NULL)
        return false;
    rd_free(mirrors->slots);
    mirrors->slots = slots;
    mirrors->n_slots = n_slots;
    for (size_t i = 0; i < mirrors->n; i++)
        slots[slot_of(mirrors, mirrors->list[i]->db, mirrors->list[i]->name)] = mirrors->list[i];
    return true;
}

struct history_mirror *history_mirrors_get(struct history_mirrors *mirrors, unsigned db,
                                           struct rd_slice name, struct rd_err *err)
{
    struct history_mirror *m = history_mirrors_find(mirrors, db, name);
    if (m != NULL)
        return m;
    if (mirrors->n == mirrors->cap) {
        size_t cap = mirrors->cap == 0 ? 8 : mirrors->cap * 2;
        struct history_mirror **list = rd_realloc(mirrors->list, cap * sizeof *list);
        if (list == NULL) {
            rd_err_nomem(err, cap * sizeof *list);
            return NULL;
        }
        mirrors->list = list;
        mirrors->cap = cap;
    }
    if ((mirrors->n + 1) * 2 > mirrors->n_slots &&
        !history_mirrors_fill_slots(mirrors, mirrors->n_slots == 0 ? 16 : mirrors->n_slots * 2)) {
        rd_err_nomem(err, mirrors->n_slots * sizeof *mirrors->slots);
        return NULL;
    }
    m = rd_calloc(1, sizeof *m + name.len);
    if (m == NULL) {
        rd_err_nomem(err, sizeof *m);
        return NULL;
    }
    uint8_t *copy = (uint8_t *)(m + 1);
    if (name.len > 0)
        memcpy(copy, name.ptr, name.len);
    m->db = db;
    m->name = rd_slice(copy, name.len);
    m->expire_ms = ENGINE_NO_EXPIRE;
    mirrors->slots[slot_of(mirrors, db, name)] = m;
    mirrors->list[mirrors->n++] = m;
    return m;
}

void history_mirror_empty(struct history_mirror *m)
{
    history_map_done(&m->map);
    history_map_done(&m->beside);
    history_seq_done(&m->seq);
    rd_buf_done(&m->bytes);
    rd_free(m->runs);
    m->runs = NULL;
    m->n_runs = m->cap_runs = 0;
    m->state = HISTORY_ABSENT;
    m->expire_ms = ENGINE_NO_EXPIRE;
}

void history_mirrors_reset(struct history_mirrors *mirrors)
{
    for (size_t i = 0; i < mirrors->n; i++) {
        history_mirror_empty(mirrors->list[i]);
        rd_free(mirrors->list[i]);
    }
    mirrors->n = mirrors->n_writers = 0;
    rd_free(mirrors->slots);
    mirrors->slots = NULL;
    mirrors->n_slots = 0;
}

void history_mirrors_done(struct history_mirrors *mirrors)
{
    history_mirrors_reset(mirrors);
    rd_free(mirrors->list);
    rd_free(mirrors->writers);
    mirrors->list = NULL;
    mirrors->writers = NULL;
    mirrors->cap = mirrors->cap_writers = 0;
}

/* ---- one mirror alone ---- */

struct history_mirror *history_mirror_make(unsigned db, struct rd_slice name, struct rd_err *err)
{
    struct history_mirrors one = {0};
    struct history_mirror *m = history_mirrors_get(&one, db, name, err);
    rd_free(one.list);
    rd_free(one.slots);
    return m;
}

void history_mirror_free(struct history_mirror *m)
{
    if (m == NULL)
        return;
    history_mirror_empty(m);
    rd_free(m);
}

static bool copy_map(const struct history_map *from, struct history_map *to, struct rd_err *err)
{
    size_t at = 0;
    for (struct history_element *e; (e = history_map_next(from, &at)) != NULL;)
        if (!history_map_put(to, history_element_name(e), history_element_content(e), 0, err))
            return false;
    return true;
}

static bool copy_seq(const struct history_seq *from, struct history_seq *to, struct rd_err *err)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct history_element *e = history_seq_at(from, i);
        if (!history_seq_insert(to, i, history_element_name(e), history_element_content(e), 0, err))
            return false;
    }
    return true;
}

struct history_mirror *history_mirror_copy(const struct history_mirror *m, struct rd_err *err)
{
    struct history_mirror *copy = history_mirror_make(m->db, m->name, err);
    if (copy == NULL)
        return NULL;
    copy->state = m->state;
    copy->type = m->type;
    copy->expire_ms = m->expire_ms;
    if (copy_map(&m->map, &copy->map, err) && copy_map(&m->beside, &copy->beside, err) &&
        copy_seq(&m->seq, &copy->seq, err) &&
        (rd_buf_add(&copy->bytes, m->bytes.ptr, m->bytes.len) || rd_err_nomem(err, m->bytes.len)))
        return copy;
    history_mirror_free(copy);
    return NULL;
}

bool history_mirrors_add_writer(struct history_mirrors *mirrors, const struct history_visit *visit,
                                uint32_t *ret, struct rd_err *err)
{
    if (mirrors->n_writers == mirrors->cap_writers) {
        size_t cap = mirrors->cap_writers == 0 ? 64 : mirrors->cap_writers * 2;
        struct history_writer *writers = rd_realloc(mirrors->writers, cap * sizeof *writers);
        if (writers == NULL)
            return rd_err_nomem(err, cap * sizeof *writers);
        mirrors->writers = writers;
        mirrors->cap_writers = cap;
    }
    *ret = (uint32_t)mirrors->n_writers++;
    mirrors->writers[*ret] = (struct history_writer){
        visit->place, visit->time_us, visit->line == NULL ? NULL : visit->line->command,
        visit->moment == HISTORY_LOADED};
    return true;
}
