#include "server/loop/latency.h"

#include "engine/mem.h"
#include "server/surface/cmd/commands.h"
#include "server/surface/cmd/subcommand.h"

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

static struct latency_event *find(const struct latency *latency, struct rd_slice name)
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

void latency_add(struct server *srv, const char *name, int64_t ms)
{
    int64_t threshold = srv->settings.latency_monitor_threshold;
    if (threshold == 0 || ms < threshold)
        return;
    struct latency_event *event = find(srv->latency, rd_slice_str(name));
    if (event == NULL && (event = make(srv->latency, name)) == NULL)
        return;
    int64_t now_s = srv->now_us / 1000000;
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

int64_t latency_begin(const struct server *srv)
{
    return srv->settings.latency_monitor_threshold > 0 ? monotonic_us() : 0;
}

void latency_end(struct server *srv, const char *event, int64_t from_us)
{
    if (from_us > 0)
        latency_add(srv, event, (monotonic_us() - from_us) / 1000);
}

/* ---- LATENCY ---- */

static void sub_latest(struct dispatch_call *call)
{
    const struct latency *latency = call->srv->latency;
    engine_reply_array(call->reply, latency->n);
    for (size_t i = 0; i < latency->n; i++) {
        const struct latency_event *event = latency->events[i];
        struct latency_sample last = latency_sample(event, event->n - 1);
        engine_reply_array(call->reply, 4);
        engine_reply_str(call->reply, event->name);
        engine_reply_int(call->reply, last.at_s);
        engine_reply_int(call->reply, last.ms);
        engine_reply_int(call->reply, event->max_ms);
    }
}

static void sub_history(struct dispatch_call *call)
{
    const struct latency_event *event = find(call->srv->latency, call->argv[2]);
    size_t n = event != NULL ? event->n : 0;
    engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n; i++) {
        struct latency_sample sample = latency_sample(event, i);
        engine_reply_array(call->reply, 2);
        engine_reply_int(call->reply, sample.at_s);
        engine_reply_int(call->reply, sample.ms);
    }
}

static void drop(struct latency *latency, size_t i)
{
    engine_scratch_free(latency->events[i]);
    memmove(&latency->events[i], &latency->events[i + 1],
            (latency->n - i - 1) * sizeof latency->events[0]);
    latency->n--;
}

static bool named(const struct dispatch_call *call, const char *name)
{
    for (size_t i = 2; i < call->argc; i++)
        if (rd_slice_is(call->argv[i], name))
            return true;
    return call->argc == 2;
}

static void sub_reset(struct dispatch_call *call)
{
    struct latency *latency = call->srv->latency;
    int64_t n = 0;
    for (size_t i = latency->n; i-- > 0;) {
        if (named(call, latency->events[i]->name)) {
            drop(latency, i);
            n++;
        }
    }
    engine_reply_int(call->reply, n);
}

static void reply_text(struct dispatch_call *call, struct rd_buf *text)
{
    engine_reply_verbatim(call->reply, rd_buf_slice(text), "txt");
    rd_buf_done(text);
}

static void sub_graph(struct dispatch_call *call)
{
    const struct latency_event *event = find(call->srv->latency, call->argv[2]);
    if (event == NULL) {
        struct rd_slice name = call->argv[2];
        engine_reply_errorf(call->reply, "ERR No samples available for event '%.*s'",
                            (int)(name.len < 128 ? name.len : 128), (const char *)name.ptr);
        return;
    }
    struct rd_buf text = {0};
    latency_graph(event, call->srv->now_us / 1000000, &text);
    reply_text(call, &text);
}

static void sub_doctor(struct dispatch_call *call)
{
    struct rd_buf text = {0};
    latency_doctor(call->srv, &text);
    reply_text(call, &text);
}

/* One command: its name, and a map of its calls and latencies. False: it never ran. */
static bool reply_histogram(struct dispatch_call *call, const struct engine_command *command)
{
    const struct stats_histogram *h = call->srv->stats.by_command[command->id].latency;
    if (h == NULL)
        return false;
    struct stats_level levels[STATS_LEVELS];
    size_t n = stats_latency_levels(h, levels, STATS_LEVELS);
    engine_reply_str(call->reply, command->name);
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "calls");
    engine_reply_int(call->reply, (int64_t)stats_latency_calls(h));
    engine_reply_str(call->reply, "histogram_usec");
    engine_reply_map(call->reply, n);
    for (size_t i = 0; i < n; i++) {
        engine_reply_int(call->reply, (int64_t)levels[i].us);
        engine_reply_int(call->reply, (int64_t)levels[i].count);
    }
    return true;
}

static void sub_histogram(struct dispatch_call *call)
{
    size_t mark = engine_reply_mark(call->reply);
    uint64_t n = 0;
    const struct engine_command *command = NULL;
    if (call->argc == 2)
        while ((command = engine_command_next(command)) != NULL)
            n += reply_histogram(call, command);
    for (size_t i = 2; i < call->argc; i++) {
        command = dispatch_find_path(call->argv[i]);
        if (command == NULL)
            continue;
        n += reply_histogram(call, command);
        for (unsigned k = 0; k < command->n_subcommands; k++)
            n += reply_histogram(call, &command->subcommands[k]);
    }
    engine_reply_mark_map(call->reply, mark, n);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Explain the spikes and their possible causes.",
        "GRAPH <event>",
        "    Draw the spikes of an event with characters.",
        "HISTORY <event>",
        "    List the spikes of an event: Unix time and milliseconds.",
        "LATEST",
        "    List each event with the Unix time and duration of its last spike, and the longest.",
        "RESET [<event> ...]",
        "    Delete these events, or all of them; return how many.",
        "HISTOGRAM [COMMAND ...]",
        "    Show the cumulative latency distribution of commands, in microseconds.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"latest", sub_latest}, {"history", sub_history}, {"reset", sub_reset},
    {"graph", sub_graph},   {"doctor", sub_doctor},   {"histogram", sub_histogram},
    {"help", sub_help},
};

void server_cmd_latency(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
