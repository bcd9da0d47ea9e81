/* LATENCY GRAPH and DOCTOR: spikes as a drawing and as advice. */
#include "server/surface/observe/latency_report.h"

#include "server/session/client/client.h"

#include <stdio.h>

/* ---- the drawing ---- */

enum { COLUMNS = 80, ROWS = 4, LABEL_MAX = 24 };

struct graph {
    size_t n;
    int64_t values[COLUMNS];
    char labels[COLUMNS][LABEL_MAX];
    int64_t low, high;
};

/* The age, in the largest unit that fits. */
static void put_age(char *dst, size_t size, int64_t seconds)
{
    if (seconds < 60)
        snprintf(dst, size, "%llds", (long long)seconds);
    else if (seconds < 3600)
        snprintf(dst, size, "%lldm", (long long)(seconds / 60));
    else if (seconds < 86400)
        snprintf(dst, size, "%lldh", (long long)(seconds / 3600));
    else
        snprintf(dst, size, "%lldd", (long long)(seconds / 86400));
}

static void graph_fill(struct graph *graph, const struct latency_event *event, int64_t now_s)
{
    graph->n = event->n < COLUMNS ? event->n : COLUMNS;
    for (size_t i = 0; i < graph->n; i++) {
        struct latency_sample sample = latency_sample(event, event->n - graph->n + i);
        graph->values[i] = sample.ms;
        put_age(graph->labels[i], LABEL_MAX, now_s - sample.at_s);
        if (i == 0 || sample.ms < graph->low)
            graph->low = sample.ms;
        if (i == 0 || sample.ms > graph->high)
            graph->high = sample.ms;
    }
}

/* The character of a column in a row (0 is the highest): blank, one of three heights, or a part of
 * the pole below. */
static char graph_cell(const struct graph *graph, size_t column, int row)
{
    static const char heights[] = "_o#";
    const int n_heights = (int)sizeof heights - 1;
    int64_t range = graph->high > graph->low ? graph->high - graph->low : 1;
    int64_t step = (graph->values[column] - graph->low) * ROWS * n_heights / range;
    if (step >= ROWS * n_heights)
        step = ROWS * n_heights - 1;
    int64_t height = step - (int64_t)(ROWS - 1 - row) * n_heights;
    if (height < 0)
        return ' ';
    return height < n_heights ? heights[height] : '|';
}

/* The labels are below their columns, read downwards. */
static void graph_labels(const struct graph *graph, struct rd_buf *out)
{
    for (size_t line = 0;; line++) {
        bool any = false;
        for (size_t i = 0; i < graph->n; i++)
            any |= strlen(graph->labels[i]) > line;
        if (!any)
            return;
        for (size_t i = 0; i < graph->n; i++)
            rd_buf_add_byte(out, strlen(graph->labels[i]) > line ? (uint8_t)graph->labels[i][line]
                                                                 : ' ');
        rd_buf_add_byte(out, '\n');
    }
}

void latency_graph(const struct latency_event *event, int64_t now_s, struct rd_buf *out)
{
    struct graph graph = {0};
    graph_fill(&graph, event, now_s);
    rd_buf_printf(out, "%s - high %lld ms, low %lld ms (all time high %lld ms)\n", event->name,
                  (long long)graph.high, (long long)graph.low, (long long)event->max_ms);
    for (int i = 0; i < COLUMNS; i++)
        rd_buf_add_byte(out, '-');
    rd_buf_add_byte(out, '\n');
    for (int row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < graph.n; i++)
            rd_buf_add_byte(out, (uint8_t)graph_cell(&graph, i, row));
        rd_buf_add_byte(out, '\n');
    }
    for (size_t i = 0; i < graph.n; i++)
        rd_buf_add_byte(out, ' ');
    rd_buf_add_byte(out, '\n');
    graph_labels(&graph, out);
}

/* ---- the doctor ---- */

enum advice {
    ADVICE_SLOWLOG = 1 << 0,
    ADVICE_BIG_KEYS = 1 << 1,
    ADVICE_FORK = 1 << 2,
    ADVICE_DISK = 1 << 3,
    ADVICE_FSYNC = 1 << 4,
    ADVICE_EXPIRE = 1 << 5,
    ADVICE_EVICT = 1 << 6
};

static const struct {
    const char *event;
    unsigned advice;
} about[] = {
    {"command", ADVICE_SLOWLOG | ADVICE_BIG_KEYS},
    {"fast-command", ADVICE_DISK},
    {"fork", ADVICE_FORK},
    {"aof-write-pending-fsync", ADVICE_DISK | ADVICE_FSYNC},
    {"aof-write-active-child", ADVICE_DISK},
    {"aof-write-alone", ADVICE_DISK},
    {"aof-fsync-always", ADVICE_DISK | ADVICE_FSYNC},
    {"aof-fstat", ADVICE_DISK},
    {"rdb-unlink-temp-file", ADVICE_DISK},
    {"aof-rename", ADVICE_DISK},
    {"expire-cycle", ADVICE_EXPIRE | ADVICE_BIG_KEYS},
    {"expire-del", ADVICE_BIG_KEYS},
    {"eviction-cycle", ADVICE_EVICT | ADVICE_BIG_KEYS},
    {"eviction-del", ADVICE_BIG_KEYS},
};

static const struct {
    unsigned advice;
    const char *text;
} texts[] = {
    {ADVICE_SLOWLOG, "Check SLOWLOG GET for slow commands, and set slowlog-log-slower-than no "
                     "higher than latency-monitor-threshold."},
    {ADVICE_BIG_KEYS, "Deleting, expiring or evicting a large key takes time in proportion to it: "
                      "use UNLINK and the lazyfree settings, or smaller keys."},
    {ADVICE_FORK, "fork() copies the page tables: save and rewrite less often, and keep "
                  "transparent huge pages off."},
    {ADVICE_DISK, "The disk is slow or shared: check which other programs write to it."},
    {ADVICE_FSYNC, "With appendfsync everysec or no-appendfsync-on-rewrite yes, the server waits "
                   "for the disk less often; both can lose more data if the machine fails."},
    {ADVICE_EXPIRE, "Many keys expire at the same time: spread their expiry times."},
    {ADVICE_EVICT, "Memory usage is always at maxmemory: raise the limit, or write less."},
};

struct doctor {
    int64_t sum_ms, first_s, last_s;
    double deviation;
};

static struct doctor examine(const struct latency_event *event)
{
    struct doctor d = {0};
    for (size_t i = 0; i < event->n; i++)
        d.sum_ms += latency_sample(event, i).ms;
    double mean = (double)d.sum_ms / (double)event->n;
    for (size_t i = 0; i < event->n; i++) {
        double off = (double)latency_sample(event, i).ms - mean;
        d.deviation += off < 0 ? -off : off;
    }
    d.deviation /= (double)event->n;
    d.first_s = latency_sample(event, 0).at_s;
    d.last_s = latency_sample(event, event->n - 1).at_s;
    return d;
}

static unsigned advice_for(const char *event)
{
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
        if (strcmp(about[i].event, event) == 0)
            return about[i].advice;
    return 0;
}

void latency_doctor(struct server *srv, struct rd_buf *out)
{
    unsigned advice = 0;
    size_t n = latency_count(srv->loop.latency);
    if (srv->loop.settings.latency_monitor_threshold == 0 && n == 0) {
        rd_buf_printf(out, "Latency is not monitored. CONFIG SET latency-monitor-threshold "
                           "<milliseconds> turns it on.\n");
        return;
    }
    if (n == 0) {
        rd_buf_printf(out, "No latency spikes recorded.\n");
        return;
    }
    rd_buf_printf(out, "Latency spikes recorded:\n\n");
    for (size_t i = 0; i < n; i++) {
        const struct latency_event *event = latency_event(srv->loop.latency, i);
        struct doctor d = examine(event);
        rd_buf_printf(out,
                      "%zu. %s: %zu latency spikes (average %lldms, mean deviation %.0fms, period "
                      "%.2f sec). Worst all time event %lldms.\n",
                      i + 1, event->name, event->n, (long long)(d.sum_ms / (int64_t)event->n),
                      d.deviation, (double)(d.last_s - d.first_s) / (double)event->n,
                      (long long)event->max_ms);
        advice |= advice_for(event->name);
    }
    rd_buf_printf(out, "\nSuggestions:\n\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (advice & texts[i].advice)
            rd_buf_printf(out, "- %s\n", texts[i].text);
}
