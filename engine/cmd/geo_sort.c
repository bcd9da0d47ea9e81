#include "engine/cmd/geo_sort.h"

#include <stdlib.h>

struct sorting {
    struct engine_geo_point *list;
    bool descending;
};

static int cmp(const struct sorting *sorting, const struct engine_geo_point *a,
               const struct engine_geo_point *b)
{
    int order = (a->distance > b->distance) - (a->distance < b->distance);
    return sorting->descending ? -order : order;
}

static int by_distance(const void *a, const void *b, void *ctx)
{
    const struct engine_geo_point *one = a, *two = b;
    int order = cmp(ctx, one, two);
    return order != 0 ? order : (one->index > two->index) - (one->index < two->index);
}

static void swap(struct engine_geo_point *a, struct engine_geo_point *b)
{
    struct engine_geo_point tmp = *a;
    *a = *b;
    *b = tmp;
}

static void swap_runs(struct engine_geo_point *a, struct engine_geo_point *b, size_t n)
{
    for (; n > 0; n--)
        swap(a++, b++);
}

static void sort_few(const struct sorting *sorting, struct engine_geo_point *list, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && cmp(sorting, &list[j - 1], &list[j]) > 0; j--)
            swap(&list[j], &list[j - 1]);
}

static struct engine_geo_point *median(const struct sorting *sorting, struct engine_geo_point *a,
                                       struct engine_geo_point *b, struct engine_geo_point *c)
{
    if (cmp(sorting, a, b) < 0)
        return cmp(sorting, b, c) < 0 ? b : cmp(sorting, a, c) < 0 ? c : a;
    return cmp(sorting, b, c) > 0 ? b : cmp(sorting, a, c) < 0 ? a : c;
}

static struct engine_geo_point *choose_pivot(const struct sorting *sorting,
                                             struct engine_geo_point *list, size_t n)
{
    struct engine_geo_point *low = list, *middle = list + n / 2, *high = list + n - 1;
    if (n == 7)
        return middle;
    if (n > 40) {
        size_t d = n / 8;
        low = median(sorting, low, low + d, low + 2 * d);
        middle = median(sorting, middle - d, middle, middle + d);
        high = median(sorting, high - 2 * d, high - d, high);
    }
    return median(sorting, low, middle, high);
}

/* Three parts: less than the pivot, equal, greater. During partitioning, equal items are kept at
 * both ends. */
static void split(const struct sorting *sorting, struct engine_geo_point *list, size_t n,
                  size_t *ret_below, size_t *ret_above)
{
    struct engine_geo_point *end = list + n;
    struct engine_geo_point *a = list + 1, *b = a, *c = end - 1, *d = c;
    int order;
    swap(list, choose_pivot(sorting, list, n));
    for (;;) {
        for (; b <= c && (order = cmp(sorting, b, list)) <= 0; b++)
            if (order == 0)
                swap(a++, b);
        for (; b <= c && (order = cmp(sorting, c, list)) >= 0; c--)
            if (order == 0)
                swap(c, d--);
        if (b > c)
            break;
        swap(b++, c--);
    }
    *ret_below = (size_t)(b - a);
    *ret_above = (size_t)(d - c);
    size_t left = (size_t)(a - list), right = (size_t)(end - d - 1);
    left = left < *ret_below ? left : *ret_below;
    right = *ret_above < right ? *ret_above : right;
    swap_runs(list, b - left, left);
    swap_runs(b, end - right, right);
}

/* Recursion sorts the smaller part and the loop continues with the larger one, so the depth is
 * logarithmic. */
static void sort_first(const struct sorting *sorting, size_t from, size_t n, size_t wanted)
{
    while (n >= 7) {
        struct engine_geo_point *list = sorting->list + from;
        size_t below, above;
        split(sorting, list, n, &below, &above);
        size_t after = from + n - above;
        if (after >= wanted)
            above = 0;
        if (below < above) {
            sort_first(sorting, from, below, wanted);
            from = after;
            n = above;
        } else {
            sort_first(sorting, after, above, wanted);
            n = below;
        }
    }
    sort_few(sorting, sorting->list + from, n);
}

void engine_geo_sort(struct engine_geo_points *points, bool descending, size_t wanted)
{
    struct sorting sorting = {.list = points->list, .descending = descending};
    if (points->n == 0)
        return;
    if (wanted == points->n)
        qsort_r(points->list, points->n, sizeof *points->list, by_distance, &sorting);
    else
        sort_first(&sorting, 0, points->n, wanted);
}
