#include "tests/sim/timeline.h"

#include <string.h>

#include "base/mem.h"

static bool before(const struct timeline_event *a, const struct timeline_event *b)
{
    return a->ms != b->ms ? a->ms < b->ms : a->order < b->order;
}

static void swap(struct timeline_event *a, struct timeline_event *b)
{
    struct timeline_event x = *a;
    *a = *b;
    *b = x;
}

void timeline_put(struct timeline *t, const struct timeline_event *event, struct rd_slice bytes)
{
    size_t i = t->n++;
    if (i == t->cap) {
        t->cap = t->cap * 2 + 256;
        t->events = rd_realloc(t->events, t->cap * sizeof *t->events);
    }
    t->events[i] = *event;
    t->events[i].order = t->order++;
    t->events[i].bytes = bytes.len > 0 ? rd_alloc(bytes.len) : NULL;
    t->events[i].len = bytes.len;
    if (bytes.len > 0)
        memcpy(t->events[i].bytes, bytes.ptr, bytes.len);
    for (; i > 0 && before(&t->events[i], &t->events[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&t->events[i], &t->events[(i - 1) / 2]);
}

static void remove_first(struct timeline *t)
{
    t->events[0] = t->events[--t->n];
    for (size_t i = 0;;) {
        size_t k = 2 * i + 1;
        if (k + 1 < t->n && before(&t->events[k + 1], &t->events[k]))
            k++;
        if (k >= t->n || !before(&t->events[k], &t->events[i]))
            return;
        swap(&t->events[k], &t->events[i]);
        i = k;
    }
}

bool timeline_take(struct timeline *t, int64_t until_ms, struct timeline_event *ret)
{
    if (t->n == 0 || t->events[0].ms > until_ms)
        return false;
    *ret = t->events[0];
    remove_first(t);
    return true;
}

void timeline_event_done(struct timeline_event *event)
{
    rd_free(event->bytes);
    event->bytes = NULL;
}

void timeline_done(struct timeline *t)
{
    for (size_t i = 0; i < t->n; i++)
        timeline_event_done(&t->events[i]);
    rd_free(t->events);
    *t = (struct timeline){.n = 0};
}
