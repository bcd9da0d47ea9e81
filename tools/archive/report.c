#include "tools/archive/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "capture/clock.h"

enum { REPORT_MS = 1000, NOTE_MS = 60000 /* between two of each */ };

/* ---- events ---- */

static void put_event(const struct archive_report *r, const struct backup_event *e)
{
    struct json_write *json = &r->cli->out;
    if (r->cli->json) {
        json_obj(json);
        json_put_int(json, "time_ms", cli_now_ms());
        json_put_str(json, "event", e->name);
        json_put_str(json, "target", r->a->target->name);
        json_put_str(json, "text", e->text);
        json_end(json);
        rd_sink_flush(json->out);
    }
    if (e->trouble)
        cli_warn(r->cli, "%s: %s", r->a->target->name, e->text);
    else
        cli_note(r->cli, "%s: %s", r->a->target->name, e->text);
}

/* Prints the messages of the threads. */
static void put_events(const struct archive_report *r)
{
    struct backup_event events[BACKUP_ARCHIVER_EVENTS];
    uint64_t dropped;
    size_t n = backup_archiver_events(r->a, events, &dropped);
    for (size_t i = 0; i < n; i++)
        put_event(r, &events[i]);
    if (dropped > 0)
        cli_warn(r->cli, "%" PRIu64 " more message%s suppressed", dropped,
                 dropped == 1 ? " was" : "s were");
}

/* ---- figures ---- */

static void put_figure(struct rd_sink *out, const char *target, const char *name, const char *type,
                       const char *help, double value)
{
    char text[700];
    int len = snprintf(text, sizeof text,
                       "# HELP redoubt_archive_%s %s\n# TYPE redoubt_archive_%s %s\n"
                       "redoubt_archive_%s{target=\"%s\"} %.*f\n",
                       name, help, name, type, name, target,
                       value == (double)(uint64_t)value ? 0 : 3, value);
    rd_sink_write(out, text, (size_t)len);
}

static void put_figures(void *ctx, struct rd_sink *out)
{
    const struct archive_report *r = ctx;
    const struct backup_figures f = backup_archiver_figures(r->a);
    const struct {
        const char *name, *type, *help;
        double value;
    } all[] = {
        {"up", "gauge", "Whether the source sends its stream.", f.up},
        {"repository_up", "gauge", "Whether all repositories accept segments.", !f.shipped.failing},
        {"rpo_seconds", "gauge", "Age of the oldest byte that is not in all repositories.",
         (double)f.rpo_ms / 1000},
        {"received_offset", "gauge", "Offset after the last received byte.", (double)f.received},
        {"shipped_offset", "gauge", "Offset up to which all repositories have the stream.",
         (double)f.shipped.offset},
        {"waiting_segments", "gauge", "Closed segments that are not in all repositories.",
         (double)f.shipped.n_waiting},
        {"segments_total", "counter", "Segments shipped in this run.", (double)f.shipped.segments},
        {"stream_bytes_total", "counter", "Bytes of the stream shipped in this run.",
         (double)f.shipped.stream_bytes},
        {"last_ship_timestamp_seconds", "gauge", "Time of the last shipped segment.",
         (double)f.shipped.last_ms / 1000},
        {"bases_total", "counter", "Base sets taken in this run.", (double)f.bases.n},
        {"last_base_timestamp_seconds", "gauge", "Time of the newest base set.",
         (double)f.bases.last_ms / 1000},
        {"base_failing", "gauge", "Whether the last attempt to take a base set failed.",
         f.bases.failing},
        {"merged_segments_total", "counter", "Segments of which larger ones were made in this run.",
         (double)f.merged.n_parts},
        {"merge_failing", "gauge", "Whether the last attempt to merge segments failed.",
         f.merged.failing},
        {"gaps_total", "counter", "Gaps in the stream in this run.", (double)f.gaps},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_figure(out, r->a->target->name, all[i].name, all[i].type, all[i].help, all[i].value);
    if (r->a->restore_ms != 0)
        put_figure(out, r->a->target->name, "replay_seconds", "gauge",
                   "Estimate of the time to replay the stream after the newest base.",
                   (double)f.bases.replay_ms / 1000);
}

static void write_metrics(struct archive_report *r)
{
    metrics_write(&r->metrics, put_figures, r);
}

/* ---- progress ---- */

static void draw(struct archive_report *r)
{
    const struct backup_figures f = backup_archiver_figures(r->a);
    char text[300];
    if (r->cli->progress_when == CLI_WHEN_JSON)
        snprintf(text, sizeof text,
                 "{\"progress\":{\"bytes\":%" PRIu64 ",\"total\":null,\"rpo_ms\":%" PRIu64
                 ",\"segments\":%" PRIu64 ",\"waiting\":%" PRIu64 ",\"up\":%s}}",
                 f.shipped.stream_bytes, f.rpo_ms, f.shipped.segments, f.shipped.n_waiting,
                 f.up ? "true" : "false");
    else
        snprintf(text, sizeof text, "%s in %s segment%s  RPO %" PRIu64 ".%" PRIu64 " s%s%s",
                 rd_show_bytes(f.shipped.stream_bytes).s, rd_show_count(f.shipped.segments).s,
                 rd_show_plural(f.shipped.segments), f.rpo_ms / 1000, f.rpo_ms % 1000 / 100,
                 f.up ? "" : "  NOT CONNECTED", f.shipped.failing ? "  NO REPOSITORY" : "");
    cli_progress_text(r->cli, text);
}

static void note(struct archive_report *r)
{
    const struct backup_figures f = backup_archiver_figures(r->a);
    cli_note(r->cli, "%s: archived up to offset %" PRIu64 ", RPO %s, worst %s", r->a->target->name,
             f.shipped.offset, rd_show_duration(f.rpo_ms).s, rd_show_duration(f.worst_rpo_ms).s);
}

bool archive_report_open(struct archive_report *r, struct rd_err *err)
{
    const struct backup_target *target = r->a->target;
    r->metrics = (struct metrics){.cli = r->cli,
                                  .file = backup_get(target, BACKUP_KEY_ARCHIVE_METRICS_FILE),
                                  .address = backup_get(target, BACKUP_KEY_METRICS_LISTEN),
                                  .mode = 0644};
    return metrics_begin(&r->metrics, err);
}

void archive_report_close(struct archive_report *r)
{
    metrics_end(&r->metrics);
}

void archive_report_begin(struct archive_report *r)
{
    write_metrics(r);
    r->report_ms = capture_now_ms() + REPORT_MS;
    r->note_ms = capture_now_ms() + NOTE_MS;
    cli_progress_begin(r->cli, r->a->target->name, RD_NO_OFFSET);
    if (!r->cli->json)
        return;
    json_key(&r->cli->out, "events");
    json_array(&r->cli->out);
}

void archive_report_tick(struct archive_report *r, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    put_events(r);
    if (now_ms >= r->report_ms) {
        r->report_ms = now_ms + REPORT_MS;
        write_metrics(r);
        if (cli_progress_wanted(r->cli))
            draw(r);
        else
            backup_archiver_figures(r->a); /* for the worst RPO */
    }
    if (now_ms >= r->note_ms) {
        r->note_ms = now_ms + NOTE_MS;
        note(r);
    }
    capture_sooner(ret_wait_ms, r->report_ms - now_ms);
}

/* ---- the result ---- */

void archive_report_end(struct archive_report *r)
{
    struct json_write *json = &r->cli->out;
    put_events(r);
    cli_progress_end(r->cli);
    write_metrics(r);
    const struct backup_figures f = backup_archiver_figures(r->a);
    if (!r->cli->json) {
        if (!r->cli->quiet)
            printf("%s: %s segment%s, %s of stream up to offset %" PRIu64
                   ", %s base%s, worst RPO %s\n",
                   r->a->target->name, rd_show_count(f.shipped.segments).s,
                   rd_show_plural(f.shipped.segments), rd_show_bytes(f.shipped.stream_bytes).s,
                   f.shipped.offset, rd_show_count(f.bases.n).s, rd_show_plural(f.bases.n),
                   rd_show_duration(f.worst_rpo_ms).s);
        return;
    }
    json_end(json);
    json_put_str(json, "target", r->a->target->name);
    json_put_str(json, "run", r->a->run);
    json_put_uint(json, "segments", f.shipped.segments);
    json_put_uint(json, "stream_bytes", f.shipped.stream_bytes);
    json_put_uint(json, "offset", f.shipped.offset);
    if (f.shipped.spool_failing)
        json_put_str(json, "waiting", NULL);
    else
        json_put_uint(json, "waiting", f.shipped.n_waiting);
    json_put_uint(json, "bases", f.bases.n);
    json_put_bool(json, "restorable", backup_archiver_is_covered(r->a));
    json_put_uint(json, "gaps", f.gaps);
    json_put_uint(json, "rpo_ms", f.rpo_ms);
    json_put_uint(json, "worst_rpo_ms", f.worst_rpo_ms);
}
