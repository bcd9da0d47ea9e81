#include "stat/top.h"

#include "base/mem.h"

#include <stdlib.h>

bool stat_top_init(struct stat_top *top, size_t max, struct rd_err *err)
{
    *top = (struct stat_top){.max = max};
    top->rows = rd_calloc(max + 1, sizeof *top->rows);
    return top->rows != NULL || rd_err_nomem(err, (max + 1) * sizeof *top->rows);
}

void stat_top_done(struct stat_top *top)
{
    for (size_t i = 0; i < top->n; i++)
        rd_free(top->rows[i].name);
    rd_free(top->rows);
    *top = (struct stat_top){0};
}

static void swap(struct stat_top_row *a, struct stat_top_row *b)
{
    struct stat_top_row tmp = *a;
    *a = *b;
    *b = tmp;
}

static void sift_up(struct stat_top *top, size_t i)
{
    for (; i > 0 && top->rows[i].figure < top->rows[(i - 1) / 2].figure; i = (i - 1) / 2)
        swap(&top->rows[i], &top->rows[(i - 1) / 2]);
}

static void sift_down(struct stat_top *top)
{
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < top->n; child++)
            if (top->rows[child].figure < top->rows[least].figure)
                least = child;
        if (least == i)
            return;
        swap(&top->rows[i], &top->rows[least]);
        i = least;
    }
}

static uint8_t *copy_name(struct stat_top *top, struct rd_slice name)
{
    size_t len = name.len < STAT_TOP_NAME_MAX ? name.len : STAT_TOP_NAME_MAX;
    uint8_t *copy = rd_alloc(len + 1);
    if (copy == NULL)
        top->nomem = true;
    else if (len > 0)
        memcpy(copy, name.ptr, len);
    return copy;
}

void stat_top_put(struct stat_top *top, uint64_t figure, const struct stat_key *key)
{
    struct stat_top_row row = {figure, *key, copy_name(top, key->name)};
    if (row.name == NULL)
        return;
    row.key.name.ptr = NULL;
    if (top->n < top->max) {
        top->rows[top->n++] = row;
        sift_up(top, top->n - 1);
        return;
    }
    rd_free(top->rows[0].name);
    top->rows[0] = row;
    sift_down(top);
}

static int by_figure(const void *va, const void *vb)
{
    const struct stat_top_row *a = va, *b = vb;
    if (a->figure != b->figure)
        return a->figure < b->figure ? 1 : -1;
    if (a->key.db != b->key.db)
        return a->key.db > b->key.db ? 1 : -1;
    return rd_slice_cmp(stat_top_name(a), stat_top_name(b));
}

void stat_top_sort(struct stat_top *top)
{
    qsort(top->rows, top->n, sizeof *top->rows, by_figure);
}
