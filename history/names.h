/* names.h - a set of names of keys, which keeps copies.
 *
 *     struct history_names names = {0};
 *     if (!history_names_add(&names, name, &added, &err))
 *         ...
 *     if (history_names_has(&names, name))
 *         ...
 *     history_names_done(&names);
 *
 * A zeroed struct is an empty set. Cost: constant time on average. Threads: one at a time.
 */
#ifndef HISTORY_NAMES_H
#define HISTORY_NAMES_H

#include "base/err.h"

struct history_names {
    struct rd_slice *list; /* in the order in which they were added */
    size_t n, cap;
    uint32_t *slots; /* number of a name + 1; 0: free */
    size_t n_slots;  /* a power of two, or 0 */
};

/* *ret_added: it was not there; may be NULL. False: RD_ERR_MEMORY. */
bool history_names_add(struct history_names *names, struct rd_slice name, bool *ret_added,
                       struct rd_err *err);
bool history_names_has(const struct history_names *names, struct rd_slice name);
/* The number of a name in the list; SIZE_MAX: it is not there. */
size_t history_names_find(const struct history_names *names, struct rd_slice name);
void history_names_done(struct history_names *names);

#endif
