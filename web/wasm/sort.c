/* sort.c - qsort_r(), which the C library does not have: heapsort. */
#include "web/wasm/compat.h"

#include <stdint.h>

struct sorting {
    uint8_t *base;
    size_t size;
    int (*compare)(const void *, const void *, void *);
    void *ctx;
};

static uint8_t *at(const struct sorting *s, size_t i)
{
    return s->base + i * s->size;
}

static void exchange(const struct sorting *s, size_t i, size_t j)
{
    uint8_t *a = at(s, i), *b = at(s, j);
    for (size_t k = 0; k < s->size; k++) {
        uint8_t c = a[k];
        a[k] = b[k];
        b[k] = c;
    }
}

/* Moves element i down, among the first n, until none below it is larger. */
static void sink(const struct sorting *s, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && s->compare(at(s, child), at(s, child + 1), s->ctx) < 0)
            child++;
        if (s->compare(at(s, i), at(s, child), s->ctx) >= 0)
            return;
        exchange(s, i, child);
    }
}

void qsort_r(void *base, size_t n, size_t size, int (*compare)(const void *, const void *, void *),
             void *ctx)
{
    const struct sorting s = {.base = base, .size = size, .compare = compare, .ctx = ctx};
    for (size_t i = n / 2; i-- > 0;)
        sink(&s, i, n);
    for (size_t i = n; i-- > 1;) {
        exchange(&s, 0, i);
        sink(&s, 0, i);
    }
}
