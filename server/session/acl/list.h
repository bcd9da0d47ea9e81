/* list.h - a list of texts with bits: patterns, passwords, first arguments. Private to this folder.
 *
 *     struct acl_list list = {0};
 *     if (acl_list_find(&list, text) == NULL)
 *         acl_list_add(&list, text, bits);
 *     acl_list_clear(&list);
 *
 * The list owns copies of the texts. Its memory is not part of the data set, and allocations never
 * fail (engine/mem.h).
 */
#ifndef SERVER_SESSION_ACL_LIST_H
#define SERVER_SESSION_ACL_LIST_H

#include "base/slice.h"

struct acl_item {
    struct rd_slice text;
    unsigned bits;
};

struct acl_list {
    struct acl_item *items;
    size_t n, cap;
};

struct acl_item *acl_list_find(const struct acl_list *list, struct rd_slice text);
void acl_list_add(struct acl_list *list, struct rd_slice text, unsigned bits);
void acl_list_remove(struct acl_list *list, size_t index);
void acl_list_clear(struct acl_list *list);

/* dst is overwritten. */
void acl_list_copy(struct acl_list *dst, const struct acl_list *src);

/* A copy; acl_text_free() frees it. */
struct rd_slice acl_text_copy(struct rd_slice text);
void acl_text_free(struct rd_slice text);

#endif
