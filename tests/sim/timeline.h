/* timeline.h - what will happen in a simulation, in the order of time.
 *
 *     struct timeline timeline = {0};
 *     timeline_put(&timeline, &(struct timeline_event){.ms = 40, .what = TICK}, bytes);
 *     while (timeline_take(&timeline, until_ms, &ev)) {
 *         ...
 *         timeline_event_done(&ev);
 *     }
 *     timeline_done(&timeline);
 *
 * Events of the same millisecond happen in the order in which they were put. What `what`, `who`,
 * `conn` and `use` mean is up to the caller.
 */
#ifndef TESTS_SIM_TIMELINE_H
#define TESTS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct timeline_event {
    int64_t ms;
    int what, who;
    size_t conn;
    unsigned use;

    /* Set when it is put: */
    uint64_t order;
    uint8_t *bytes; /* NULL: none */
    size_t len;
};

struct timeline {
    struct timeline_event *events; /* a heap */
    size_t n, cap;
    uint64_t order;
};

/* Copies the bytes. */
void timeline_put(struct timeline *timeline, const struct timeline_event *event,
                  struct rd_slice bytes);
/* The next event up to then. False: there is none. */
bool timeline_take(struct timeline *timeline, int64_t until_ms, struct timeline_event *ret);
void timeline_event_done(struct timeline_event *event);
void timeline_done(struct timeline *timeline);

#endif
