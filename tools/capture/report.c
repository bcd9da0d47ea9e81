/* report.c - events, metrics and progress of a capture.
 */
#include "tools/capture/priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>

static const char *shown_folder(const struct capture_link *link)
{
    return link->folder[0] != '\0' ? link->folder : ".";
}

/* ---- numbers of a link ---- */

struct figures {
    uint64_t received, written, synced, acked;
    uint64_t lag_bytes; /* received and not acknowledged */
    uint64_t lag_ms;    /* age of these bytes; without a connection, time since the last byte */
    bool up;
};

static uint64_t unread(const struct capture_link *link)
{
    int n = 0;
    if (link->peer == NULL || client_peer_fd(link->peer) < 0 ||
        ioctl(client_peer_fd(link->peer), FIONREAD, &n) != 0 || n < 0)
        return 0;
    return (uint64_t)n;
}

static struct figures figures_of(const struct capture_link *link, uint64_t now_ms)
{
    const struct repl_capture_writer *w = link->store.writer;
    struct figures f = {.up = link->stream_ms != 0};
    if (w == NULL)
        return f;
    f.received = repl_capture_writer_received(w);
    f.written = repl_capture_writer_written(w);
    f.synced = repl_capture_writer_synced(w);
    f.acked = capture_store_acked(&link->store);
    f.lag_bytes = f.received - f.acked + (f.up ? unread(link) : 0);
    if (link->gone)
        return f;
    if (!f.up && link->heard_ms != 0)
        f.lag_ms = now_ms - link->heard_ms;
    else if (f.up && f.received > f.acked)
        f.lag_ms = now_ms - link->mark_ms;
    return f;
}

/* ---- events ---- */

static void json_event(struct capture *c, const struct capture_link *link, const char *event,
                       const char *text)
{
    struct cli_json *json = &c->cli->out;
    cli_json_obj(json);
    cli_json_put_int(json, "time_ms", cli_now_ms());
    cli_json_put_str(json, "event", event);
    cli_json_put_str(json, "target", link->target.name);
    cli_json_put_str(json, "folder", shown_folder(link));
    if (link->store.writer != NULL)
        cli_json_put_uint(json, "offset", repl_capture_writer_received(link->store.writer));
    cli_json_put_str(json, "text", text);
    cli_json_end(json);
    rd_sink_flush(json->out); /* readers of a pipe see it now */
}

void capture_event(struct capture *c, const struct capture_link *link, const char *event,
                   bool trouble, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->cli->json)
        json_event(c, link, event, text);
    if (trouble)
        cli_warn(c->cli, "%s: %s", link->target.name, text);
    else
        cli_note(c->cli, "%s: %s", link->target.name, text);
}

void capture_hint(struct capture *c, const struct rd_err *err)
{
    struct rd_err said = *err;
    if (said.code == RD_ERR_UNSUPPORTED)
        said.code = RD_ERR_PROTOCOL;
    peer_hint(c->cli, &said);
}

void capture_report_begin(struct capture *c)
{
    c->report.next_ms = capture_now_ms() + CAPTURE_REPORT_MS;
    c->report.bytes_ms = capture_now_ms();
    cli_progress_begin(c->cli, c->out, RD_NO_OFFSET);
    if (!c->cli->json)
        return;
    cli_json_key(&c->cli->out, "events");
    cli_json_array(&c->cli->out);
}

/* ---- the file for Prometheus ---- */

enum metric_type { GAUGE, COUNTER };

static double metric_value(const struct capture_link *link, const struct figures *f, int metric)
{
    switch (metric) {
    case 0:
        return f->up;
    case 1:
        return (double)link->n_bytes;
    case 2:
        return (double)link->n_snapshot;
    case 3:
        return (double)link->store.commands;
    case 4:
        return (double)f->received;
    case 5:
        return (double)f->written;
    case 6:
        return (double)f->synced;
    case 7:
        return (double)f->lag_bytes;
    case 8:
        return (double)f->lag_ms / 1000;
    case 9:
        return (double)link->n_full;
    case 10:
        return (double)link->n_partial;
    case 11:
        return (double)link->n_lost;
    default:
        return link->store.writer != NULL ? (double)repl_capture_writer_size(link->store.writer)
                                          : 0;
    }
}

static const struct {
    const char *name;
    const char *help;
    enum metric_type type;
} metrics[] = {
    {"up", "Whether the replication stream is connected.", GAUGE},
    {"stream_bytes_total", "Bytes of the stream received in this run.", COUNTER},
    {"snapshot_bytes_total", "Bytes of snapshots received in this run.", COUNTER},
    {"commands_total", "Commands received in this run.", COUNTER},
    {"received_offset", "Offset after the last received byte.", GAUGE},
    {"written_offset", "Offset after the last command written to the file.", GAUGE},
    {"synced_offset", "Offset after the last command synced to disk.", GAUGE},
    {"lag_bytes", "Bytes received but not acknowledged.", GAUGE},
    {"lag_seconds", "Age of the oldest unacknowledged byte; when down, of the last byte.", GAUGE},
    {"full_syncs_total", "Full synchronizations in this run.", COUNTER},
    {"partial_syncs_total", "Partial synchronizations in this run.", COUNTER},
    {"lost_total", "Connections lost in this run.", COUNTER},
    {"disk_bytes", "Bytes of all files of the capture.", GAUGE},
};

/* A label's value: backslash, quotation mark and newline are escaped. */
static void put_label(struct rd_sink *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"')
            rd_sink_byte(out, '\\');
        rd_sink_byte(out, (uint8_t)(*text == '\n' ? ' ' : *text));
    }
}

static void put_metric(struct rd_sink *out, const struct capture *c, size_t i, uint64_t now_ms)
{
    char text[300];
    int n =
        snprintf(text, sizeof text, "# HELP redoubt_capture_%s %s\n# TYPE redoubt_capture_%s %s\n",
                 metrics[i].name, metrics[i].help, metrics[i].name,
                 metrics[i].type == GAUGE ? "gauge" : "counter");
    rd_sink_write(out, text, (size_t)n);
    for (size_t k = 0; k < c->n_links; k++) {
        const struct capture_link *link = c->links[k];
        struct figures f = figures_of(link, now_ms);
        n = snprintf(text, sizeof text, "redoubt_capture_%s{target=\"", metrics[i].name);
        rd_sink_write(out, text, (size_t)n);
        put_label(out, link->target.name);
        rd_sink_write(out, "\",folder=\"", 10);
        put_label(out, shown_folder(link));
        double value = metric_value(link, &f, (int)i);
        n = snprintf(text, sizeof text, "\"} %.*f\n", value == (double)(uint64_t)value ? 0 : 3,
                     value);
        rd_sink_write(out, text, (size_t)n);
    }
}

/* A write error is reported once, and does not end the capture. */
static void write_metrics(struct capture *c, uint64_t now_ms)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .no_sync = true, .buffer = 8192);
    struct rd_err err = {0};
    struct rd_sink *out;
    char line[512];
    bool ok = rd_sink_open_file(&out, c->report.metrics, &opts, &err);
    for (size_t i = 0; ok && i < sizeof metrics / sizeof *metrics; i++)
        put_metric(out, c, i, now_ms);
    ok = ok && rd_sink_close(out, &err);
    if (!ok && !c->report.metrics_failed)
        cli_warn(c->cli, "cannot write the metrics: %s", rd_err_render(&err, line, sizeof line));
    c->report.metrics_failed = !ok;
}

/* ---- the line of progress ---- */

/* The sums of all links, and the longest lag. */
static void draw(struct capture *c, uint64_t now_ms)
{
    struct capture_report *r = &c->report;
    uint64_t bytes = 0, lag = 0, lag_ms = 0, disk = 0;
    size_t n = 0, up = 0;
    for (size_t i = 0; i < c->n_links; i++) {
        const struct capture_link *link = c->links[i];
        struct figures f = figures_of(link, now_ms);
        n += !link->gone;
        bytes += link->n_bytes + link->n_snapshot;
        disk += (uint64_t)metric_value(link, &f, -1);
        lag += f.lag_bytes;
        lag_ms = f.lag_ms > lag_ms ? f.lag_ms : lag_ms;
        up += f.up;
    }
    uint64_t elapsed = now_ms > r->bytes_ms ? now_ms - r->bytes_ms : 1;
    uint64_t rate = (bytes - r->bytes) * 1000 / elapsed;
    r->bytes = bytes;
    r->bytes_ms = now_ms;
    char text[300];
    if (c->cli->progress_when == CLI_WHEN_JSON)
        snprintf(text, sizeof text,
                 "{\"progress\":{\"bytes\":%" PRIu64 ",\"total\":null,\"rate\":%" PRIu64
                 ",\"lag_bytes\":%" PRIu64 ",\"lag_ms\":%" PRIu64 ",\"disk_bytes\":%" PRIu64
                 ",\"links\":%zu,\"up\":%zu}}",
                 bytes, rate, lag, lag_ms, disk, n, up);
    else
        snprintf(text, sizeof text, "%s  %s/s  lag %s, %" PRIu64 ".%" PRIu64 " s  %s on disk%s",
                 rd_show_bytes(bytes).s, rd_show_bytes(rate).s, rd_show_bytes(lag).s, lag_ms / 1000,
                 lag_ms % 1000 / 100, rd_show_bytes(disk).s, up < n ? "  NOT CONNECTED" : "");
    cli_progress_text(c->cli, text);
}

void capture_report_tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    struct capture_report *r = &c->report;
    bool draws = cli_progress_wanted(c->cli);
    if (!draws && r->metrics == NULL)
        return;
    if (now_ms >= r->next_ms) {
        r->next_ms = now_ms + CAPTURE_REPORT_MS;
        if (draws)
            draw(c, now_ms);
        if (r->metrics != NULL)
            write_metrics(c, now_ms);
    }
    capture_sooner(ret_wait_ms, r->next_ms - now_ms);
}

/* ---- the end ---- */

static void json_link(struct capture *c, const struct capture_link *link)
{
    struct cli_json *json = &c->cli->out;
    struct repl_capture_point at = {.chapter = 0};
    struct figures f = figures_of(link, capture_now_ms());
    bool has = link->store.writer != NULL && repl_capture_writer_point(link->store.writer, &at);
    cli_json_obj(json);
    cli_json_put_str(json, "target", link->target.name);
    cli_json_put_str(json, "folder", shown_folder(link));
    cli_json_put_str(json, "replid", has ? at.replid.hex : NULL);
    cli_json_put_uint(json, "chapter", at.chapter);
    cli_json_put_uint(json, "received", f.received);
    cli_json_put_uint(json, "written", f.written);
    cli_json_put_uint(json, "synced", f.synced);
    cli_json_put_uint(json, "stream_bytes", link->n_bytes);
    cli_json_put_uint(json, "snapshot_bytes", link->n_snapshot);
    cli_json_put_uint(json, "commands", link->store.commands);
    cli_json_put_uint(json, "full_syncs", link->n_full);
    cli_json_put_uint(json, "partial_syncs", link->n_partial);
    cli_json_put_uint(json, "lost", link->n_lost);
    cli_json_put_uint(json, "disk_bytes", (uint64_t)metric_value(link, &f, -1));
    cli_json_end(json);
}

static void print_link(const struct capture *c, const struct capture_link *link)
{
    struct figures f = figures_of(link, capture_now_ms());
    const char *slash = link->folder[0] != '\0' ? "/" : "";
    printf("%s%s%s: %s, %s command%s and %s of stream, now at offset %" PRIu64 "\n", c->out, slash,
           link->folder, link->target.name, rd_show_count(link->store.commands).s,
           rd_show_plural(link->store.commands), rd_show_bytes(link->n_bytes).s, f.written);
}

void capture_report_end(struct capture *c)
{
    cli_progress_end(c->cli);
    if (c->report.metrics != NULL)
        write_metrics(c, capture_now_ms());
    if (!c->cli->json) {
        for (size_t i = 0; i < c->n_links && !c->cli->quiet; i++)
            if (c->links[i]->accepted)
                print_link(c, c->links[i]);
        return;
    }
    cli_json_end(&c->cli->out);
    cli_json_key(&c->cli->out, "targets");
    cli_json_array(&c->cli->out);
    for (size_t i = 0; i < c->n_links; i++)
        json_link(c, c->links[i]);
    cli_json_end(&c->cli->out);
}
