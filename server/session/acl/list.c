#include "server/session/acl/list.h"

#include "engine/mem.h"

struct rd_slice acl_text_copy(struct rd_slice text)
{
    uint8_t *copy = engine_scratch_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return rd_slice(copy, text.len);
}

void acl_text_free(struct rd_slice text)
{
    engine_scratch_free((void *)(uintptr_t)text.ptr);
}

struct acl_item *acl_list_find(const struct acl_list *list, struct rd_slice text)
{
    for (size_t i = 0; i < list->n; i++)
        if (rd_slice_eq(list->items[i].text, text))
            return &list->items[i];
    return NULL;
}

void acl_list_add(struct acl_list *list, struct rd_slice text, unsigned bits)
{
    if (list->n == list->cap) {
        list->cap = list->cap * 2 + 4;
        list->items = engine_scratch_realloc(list->items, list->cap * sizeof *list->items);
    }
    list->items[list->n++] = (struct acl_item){acl_text_copy(text), bits};
}

void acl_list_remove(struct acl_list *list, size_t index)
{
    acl_text_free(list->items[index].text);
    list->n--;
    memmove(&list->items[index], &list->items[index + 1], (list->n - index) * sizeof *list->items);
}

void acl_list_clear(struct acl_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        acl_text_free(list->items[i].text);
    engine_scratch_free(list->items);
    *list = (struct acl_list){0};
}

void acl_list_copy(struct acl_list *dst, const struct acl_list *src)
{
    *dst = (struct acl_list){0};
    for (size_t i = 0; i < src->n; i++)
        acl_list_add(dst, src->items[i].text, src->items[i].bits);
}
