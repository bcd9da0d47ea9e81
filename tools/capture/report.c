#include "tools/capture/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "capture/figures.h"
#include "tools/cli/peer_options.h"

static const char *shown_folder(const struct capture_link *link)
{
    return link->folder[0] != '\0' ? link->folder : ".";
}

/* ---- events ---- */

static void put_event(struct cli *cli, const struct capture_link *link, const char *event,
                      const char *text)
{
    struct json_write *json = &cli->out;
    json_obj(json);
    json_put_int(json, "time_ms", cli_now_ms());
    json_put_str(json, "event", event);
    json_put_str(json, "target", link->target.name);
    json_put_str(json, "folder", shown_folder(link));
    if (link->store.writer != NULL)
        json_put_uint(json, "offset", repl_capture_writer_received(link->store.writer));
    json_put_str(json, "text", text);
    json_end(json);
    rd_sink_flush(json->out); /* readers of a pipe see it now */
}

void capture_report_event(struct cli *cli, const struct capture_link *link, const char *event,
                          bool trouble, const char *text)
{
    if (cli->json)
        put_event(cli, link, event, text);
    if (trouble)
        cli_warn(cli, "%s: %s", link->target.name, text);
    else
        cli_note(cli, "%s: %s", link->target.name, text);
}

void capture_report_hint(struct cli *cli, const struct rd_err *err)
{
    struct rd_err said = *err;
    if (said.code == RD_ERR_UNSUPPORTED)
        said.code = RD_ERR_PROTOCOL;
    peer_hint(cli, &said);
}

void capture_report_begin(struct capture_report *r, const struct capture *c)
{
    r->next_ms = capture_now_ms() + CAPTURE_REPORT_MS;
    r->bytes_ms = capture_now_ms();
    cli_progress_begin(r->cli, c->out, RD_NO_OFFSET);
    if (!r->cli->json)
        return;
    json_key(&r->cli->out, "events");
    json_array(&r->cli->out);
}

/* ---- the file for Prometheus ---- */

enum metric_type { GAUGE, COUNTER };

static double metric_value(const struct capture_link *link, const struct capture_figures *f,
                           int metric)
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
        return (double)capture_disk_bytes(link);
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
        const struct capture_figures f = capture_figures(link, now_ms);
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

struct moment {
    const struct capture *c;
    uint64_t now_ms;
};

static void put_metrics(void *ctx, struct rd_sink *out)
{
    const struct moment *moment = ctx;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        put_metric(out, moment->c, i, moment->now_ms);
}

static void write_metrics(struct capture_report *r, const struct capture *c, uint64_t now_ms)
{
    struct moment moment = {c, now_ms};
    metrics_write(&r->metrics, put_metrics, &moment);
}

/* ---- the line of progress ---- */

/* The sums of all links, and the longest lag. */
static void draw(struct capture_report *r, const struct capture *c, uint64_t now_ms)
{
    uint64_t bytes = 0, lag = 0, lag_ms = 0, disk = 0;
    size_t n = 0, up = 0;
    for (size_t i = 0; i < c->n_links; i++) {
        const struct capture_link *link = c->links[i];
        const struct capture_figures f = capture_figures(link, now_ms);
        n += !link->gone;
        bytes += link->n_bytes + link->n_snapshot;
        disk += capture_disk_bytes(link);
        lag += f.lag_bytes;
        lag_ms = f.lag_ms > lag_ms ? f.lag_ms : lag_ms;
        up += f.up;
    }
    uint64_t elapsed = now_ms > r->bytes_ms ? now_ms - r->bytes_ms : 1;
    uint64_t rate = (bytes - r->bytes) * 1000 / elapsed;
    r->bytes = bytes;
    r->bytes_ms = now_ms;
    char text[300];
    if (r->cli->progress_when == CLI_WHEN_JSON)
        snprintf(text, sizeof text,
                 "{\"progress\":{\"bytes\":%" PRIu64 ",\"total\":null,\"rate\":%" PRIu64
                 ",\"lag_bytes\":%" PRIu64 ",\"lag_ms\":%" PRIu64 ",\"disk_bytes\":%" PRIu64
                 ",\"links\":%zu,\"up\":%zu}}",
                 bytes, rate, lag, lag_ms, disk, n, up);
    else
        snprintf(text, sizeof text, "%s  %s/s  lag %s, %" PRIu64 ".%" PRIu64 " s  %s on disk%s",
                 rd_show_bytes(bytes).s, rd_show_bytes(rate).s, rd_show_bytes(lag).s, lag_ms / 1000,
                 lag_ms % 1000 / 100, rd_show_bytes(disk).s, up < n ? "  NOT CONNECTED" : "");
    cli_progress_text(r->cli, text);
}

void capture_report_tick(struct capture_report *r, const struct capture *c, uint64_t now_ms,
                         uint64_t *ret_wait_ms)
{
    bool draws = cli_progress_wanted(r->cli);
    if (!draws && !metrics_wanted(&r->metrics))
        return;
    if (now_ms >= r->next_ms) {
        r->next_ms = now_ms + CAPTURE_REPORT_MS;
        if (draws)
            draw(r, c, now_ms);
        write_metrics(r, c, now_ms);
    }
    capture_sooner(ret_wait_ms, r->next_ms - now_ms);
}

/* ---- the end ---- */

static void put_link(struct json_write *json, const struct capture_link *link)
{
    struct repl_capture_point at = {.chapter = 0};
    const struct capture_figures f = capture_figures(link, capture_now_ms());
    bool has = link->store.writer != NULL && repl_capture_writer_point(link->store.writer, &at);
    json_obj(json);
    json_put_str(json, "target", link->target.name);
    json_put_str(json, "folder", shown_folder(link));
    json_put_str(json, "replid", has ? at.replid.hex : NULL);
    json_put_uint(json, "chapter", at.chapter);
    json_put_uint(json, "received", f.received);
    json_put_uint(json, "written", f.written);
    json_put_uint(json, "synced", f.synced);
    json_put_uint(json, "stream_bytes", link->n_bytes);
    json_put_uint(json, "snapshot_bytes", link->n_snapshot);
    json_put_uint(json, "commands", link->store.commands);
    json_put_uint(json, "full_syncs", link->n_full);
    json_put_uint(json, "partial_syncs", link->n_partial);
    json_put_uint(json, "lost", link->n_lost);
    json_put_uint(json, "disk_bytes", capture_disk_bytes(link));
    json_end(json);
}

static void print_link(const struct capture *c, const struct capture_link *link)
{
    const struct capture_figures f = capture_figures(link, capture_now_ms());
    const char *slash = link->folder[0] != '\0' ? "/" : "";
    printf("%s%s%s: %s, %s command%s and %s of stream, now at offset %" PRIu64 "\n", c->out, slash,
           link->folder, link->target.name, rd_show_count(link->store.commands).s,
           rd_show_plural(link->store.commands), rd_show_bytes(link->n_bytes).s, f.written);
}

void capture_report_end(struct capture_report *r, const struct capture *c)
{
    cli_progress_end(r->cli);
    write_metrics(r, c, capture_now_ms());
    if (!r->cli->json) {
        for (size_t i = 0; i < c->n_links && !r->cli->quiet; i++)
            if (c->links[i]->accepted)
                print_link(c, c->links[i]);
        return;
    }
    json_end(&r->cli->out);
    json_key(&r->cli->out, "targets");
    json_array(&r->cli->out);
    for (size_t i = 0; i < c->n_links; i++)
        put_link(&r->cli->out, c->links[i]);
    json_end(&r->cli->out);
}
