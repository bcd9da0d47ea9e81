/* LATENCY. */
#include "server/surface/cmd/commands.h"

#include "server/loop/latency.h"
#include "server/session/dispatch/subcommand.h"
#include "server/surface/observe/latency_report.h"

static void sub_latest(struct dispatch_call *call)
{
    const struct latency *latency = call->sessions->loop->latency;
    engine_reply_array(call->reply, latency_count(latency));
    for (size_t i = 0; i < latency_count(latency); i++) {
        const struct latency_event *event = latency_event(latency, i);
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
    const struct latency_event *event = latency_find(call->sessions->loop->latency, call->argv[2]);
    size_t n = event != NULL ? event->n : 0;
    engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n; i++) {
        struct latency_sample sample = latency_sample(event, i);
        engine_reply_array(call->reply, 2);
        engine_reply_int(call->reply, sample.at_s);
        engine_reply_int(call->reply, sample.ms);
    }
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
    struct latency *latency = call->sessions->loop->latency;
    int64_t n = 0;
    for (size_t i = latency_count(latency); i-- > 0;) {
        if (named(call, latency_event(latency, i)->name)) {
            latency_drop(latency, i);
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
    const struct latency_event *event = latency_find(call->sessions->loop->latency, call->argv[2]);
    if (event == NULL) {
        struct rd_slice name = call->argv[2];
        engine_reply_errorf(call->reply, "ERR No samples available for event '%.*s'",
                            (int)(name.len < 128 ? name.len : 128), (const char *)name.ptr);
        return;
    }
    struct rd_buf text = {0};
    latency_graph(event, call->sessions->loop->now_us / 1000000, &text);
    reply_text(call, &text);
}

static void sub_doctor(struct dispatch_call *call)
{
    struct rd_buf text = {0};
    latency_doctor(server_of(call->sessions), &text);
    reply_text(call, &text);
}

/* One command: its name, and a map of its calls and latencies. False: it never ran. */
static bool reply_histogram(struct dispatch_call *call, const struct engine_command *command)
{
    const struct stats_histogram *h = call->sessions->loop->stats.by_command[command->id].latency;
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
        command = dispatch_find_path(call->sessions, call->argv[i]);
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
