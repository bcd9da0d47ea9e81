#include "history/names.h"

#include "base/mem.h"
#include "base/xxh3.h"

static size_t slot_of(const struct history_names *names, struct rd_slice name)
{
    size_t mask = names->n_slots - 1;
    size_t slot = (size_t)rd_xxh3_64(name) & mask;
    while (names->slots[slot] != 0 && !rd_slice_eq(names->list[names->slots[slot] - 1], name))
        slot = (slot + 1) & mask;
    return slot;
}

size_t history_names_find(const struct history_names *names, struct rd_slice name)
{
    if (names->n == 0)
        return SIZE_MAX;
    uint32_t number = names->slots[slot_of(names, name)];
    return number == 0 ? SIZE_MAX : number - 1;
}

bool history_names_has(const struct history_names *names, struct rd_slice name)
{
    return history_names_find(names, name) != SIZE_MAX;
}

static bool grow_slots(struct history_names *names)
{
    enum { FIRST = 16 };
    size_t n = names->n_slots == 0 ? FIRST : names->n_slots * 2;
    uint32_t *slots = rd_calloc(n, sizeof *slots);
    if (slots == NULL)
        return false;
    rd_free(names->slots);
    names->slots = slots;
    names->n_slots = n;
    for (size_t i = 0; i < names->n; i++)
        names->slots[slot_of(names, names->list[i])] = (uint32_t)i + 1;
    return true;
}

static bool grow_list(struct history_names *names)
{
    size_t cap = names->cap == 0 ? 8 : names->cap * 2;
    struct rd_slice *list = rd_realloc(names->list, cap * sizeof *list);
    if (list == NULL)
        return false;
    names->list = list;
    names->cap = cap;
    return true;
}

bool history_names_add(struct history_names *names, struct rd_slice name, bool *ret_added,
                       struct rd_err *err)
{
    bool added = !history_names_has(names, name);
    if (ret_added != NULL)
        *ret_added = added;
    if (!added)
        return true;
    if ((names->n + 1) * 2 > names->n_slots && !grow_slots(names))
        return rd_err_nomem(err, names->n_slots);
    if (names->n == names->cap && !grow_list(names))
        return rd_err_nomem(err, names->cap);
    uint8_t *copy = rd_alloc(name.len + 1);
    if (copy == NULL)
        return rd_err_nomem(err, name.len);
    if (name.len > 0)
        memcpy(copy, name.ptr, name.len);
    names->list[names->n] = rd_slice(copy, name.len);
    names->slots[slot_of(names, name)] = (uint32_t)++names->n;
    return true;
}

void history_names_done(struct history_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        rd_free((void *)(uintptr_t)names->list[i].ptr);
    rd_free(names->list);
    rd_free(names->slots);
    *names = (struct history_names){0};
}
