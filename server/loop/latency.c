#include "server/loop/latency.h"

#include "engine/mem.h"

#include <time.h>

struct latency {
    struct latency_event *events[LATENCY_EVENTS];
    size_t n;
};

struct latency *latency_new(void)
{
    struct latency *latency = engine_scratch_alloc(sizeof *latency);
    *latency = (struct latency){0};
    return latency;
}

void latency_free(struct latency *latency)
{
    if (latency == NULL)
        return;
    for (size_t i = 0; i < latency->n; i++)
        engine_scratch_free(latency->events[i]);
    engine_scratch_free(latency);
}

size_t latency_count(const struct latency *latency)
{
    return latency->n;
}

const struct latency_event *latency_event(const struct latency *latency, size_t i)
{
    return latency->events[i];
}

struct latency_event *latency_find(const struct latency *latency, struct rd_slice name)
{
    for (size_t i = 0; i < latency->n; i++)
        if (rd_slice_is(name, latency->events[i]->name))
            return latency->events[i];
    return NULL;
}

static struct latency_event *make(struct latency *latency, const char *name)
{
    if (latency->n == LATENCY_EVENTS || strlen(name) >= LATENCY_NAME)
        return NULL;
    struct latency_event *event = engine_scratch_alloc(sizeof *event);
    memset(event, 0, sizeof *event);
    memcpy(event->name, name, strlen(name) + 1);
    latency->events[latency->n++] = event;
    return event;
}

void latency_add(struct loop *loop, const char *name, int64_t ms)
{
    int64_t threshold = loop->settings.latency_monitor_threshold;
    if (threshold == 0 || ms < threshold)
        return;
    struct latency_event *event = latency_find(loop->latency, rd_slice_str(name));
    if (event == NULL && (event = make(loop->latency, name)) == NULL)
        return;
    int64_t now_s = loop->now_us / 1000000;
    if (ms > event->max_ms)
        event->max_ms = ms;
    if (event->n > 0) {
        size_t last = (event->first + event->n - 1) % LATENCY_SAMPLES;
        if (event->samples[last].at_s == now_s) {
            if (ms > event->samples[last].ms)
                event->samples[last].ms = ms;
            return;
        }
    }
    if (event->n == LATENCY_SAMPLES)
        event->first = (event->first + 1) % LATENCY_SAMPLES;
    else
        event->n++;
    size_t at = (event->first + event->n - 1) % LATENCY_SAMPLES;
    event->samples[at] = (struct latency_sample){.at_s = now_s, .ms = ms};
}

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t latency_begin(const struct loop *loop)
{
    return loop->settings.latency_monitor_threshold > 0 ? monotonic_us() : 0;
}

void latency_end(struct loop *loop, const char *event, int64_t from_us)
{
    if (from_us > 0)
        latency_add(loop, event, (monotonic_us() - from_us) / 1000);
}

void latency_drop(struct latency *latency, size_t i)
{
    engine_scratch_free(latency->events[i]);
    memmove(&latency->events[i], &latency->events[i + 1],
            (latency->n - i - 1) * sizeof latency->events[0]);
    latency->n--;
}
