#include "aof/manifest_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_name(const void *a, const void *b)
{
    const struct aof_file *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

bool aof_manifest_names_init(struct aof_manifest_names *names, const struct aof_manifest *m,
                             struct rd_err *err)
{
    *names = (struct aof_manifest_names){0};
    if (aof_manifest_count(m) == 0)
        return true;
    names->sorted = rd_calloc(aof_manifest_count(m), sizeof *names->sorted);
    if (names->sorted == NULL)
        return rd_err_nomem(err, aof_manifest_count(m) * sizeof *names->sorted);
    names->n = aof_manifest_count(m);
    for (size_t i = 0; i < names->n; i++)
        names->sorted[i] = aof_manifest_file(m, i);
    qsort(names->sorted, names->n, sizeof *names->sorted, by_name);
    return true;
}

void aof_manifest_names_done(struct aof_manifest_names *names)
{
    rd_free(names->sorted);
    *names = (struct aof_manifest_names){0};
}

const struct aof_file *aof_manifest_names_find(const struct aof_manifest_names *names,
                                               const char *name)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(names->sorted[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->n && strcmp(names->sorted[low]->name, name) == 0 ? names->sorted[low]
                                                                         : NULL;
}
