/* report.c - the reports of an archive: events, a progress line, figures for Prometheus, the
 * result.
 */
#include "tools/archive/priv.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- events ---- */

void archive_say(struct archiver *a, const char *event, bool trouble, const char *fmt, ...)
{
    va_list args;
    pthread_mutex_lock(&a->mutex);
    if (a->n_events < ARCHIVE_EVENTS) {
        struct archive_event *e = &a->events[a->n_events++];
        e->name = event;
        e->trouble = trouble;
        va_start(args, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, args);
        va_end(args);
    } else {
        a->n_dropped++;
    }
    pthread_mutex_unlock(&a->mutex);
}

void archive_give_up(struct archiver *a, const struct rd_err *err)
{
    pthread_mutex_lock(&a->mutex);
    if (a->fatal.code == RD_ERR_OK)
        rd_err_adopt(&a->fatal, err);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static void put_event(struct archiver *a, const struct archive_event *e)
{
    struct cli_json *json = &a->cli->out;
    if (a->cli->json) {
        cli_json_obj(json);
        cli_json_put_int(json, "time_ms", cli_now_ms());
        cli_json_put_str(json, "event", e->name);
        cli_json_put_str(json, "target", a->target->name);
        cli_json_put_str(json, "text", e->text);
        cli_json_end(json);
        rd_sink_flush(json->out);
    }
    if (e->trouble)
        cli_warn(a->cli, "%s: %s", a->target->name, e->text);
    else
        cli_note(a->cli, "%s: %s", a->target->name, e->text);
}

/* Prints the messages of the threads. */
static void put_events(struct archiver *a)
{
    struct archive_event events[ARCHIVE_EVENTS];
    pthread_mutex_lock(&a->mutex);
    size_t n = a->n_events;
    uint64_t dropped = a->n_dropped;
    memcpy(events, a->events, n * sizeof *events);
    a->n_events = 0;
    a->n_dropped = 0;
    pthread_mutex_unlock(&a->mutex);
    for (size_t i = 0; i < n; i++)
        put_event(a, &events[i]);
    if (dropped > 0)
        cli_warn(a->cli, "%" PRIu64 " more message%s suppressed", dropped,
                 dropped == 1 ? " was" : "s were");
}

/* ---- figures ---- */

struct figures {
    struct archive_shipped shipped;
    struct archive_bases bases;
    bool up;
    uint64_t received, rpo_ms;
};

/* Without a connection, the state of the master is unknown: the time since the last byte counts. */
static int64_t oldest_us(const struct archiver *a, int64_t now_us)
{
    int64_t oldest = a->shipped.oldest_us;
    if (a->dirty_ms != 0 && a->dirty_us < oldest)
        oldest = a->dirty_us;
    if (a->up || a->heard_ms == 0)
        return oldest;
    int64_t heard_us = now_us - (int64_t)(capture_now_ms() - a->heard_ms) * 1000;
    return heard_us < oldest ? heard_us : oldest;
}

uint64_t archive_rpo_ms(struct archiver *a)
{
    int64_t now_us = capture_now_us();
    pthread_mutex_lock(&a->mutex);
    int64_t oldest = oldest_us(a, now_us);
    pthread_mutex_unlock(&a->mutex);
    return oldest < now_us ? (uint64_t)(now_us - oldest) / 1000 : 0;
}

static struct figures figures_of(struct archiver *a)
{
    struct figures f = {.rpo_ms = archive_rpo_ms(a), .up = a->up};
    if (f.rpo_ms > a->worst_rpo_ms)
        a->worst_rpo_ms = f.rpo_ms;
    struct repl_capture_point point;
    if (a->writer != NULL && repl_capture_writer_point(a->writer, &point))
        f.received = repl_capture_writer_received(a->writer);
    pthread_mutex_lock(&a->mutex);
    f.shipped = a->shipped;
    f.bases = a->bases;
    pthread_mutex_unlock(&a->mutex);
    return f;
}

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

static void put_figures(struct archiver *a, struct rd_sink *out)
{
    const struct figures f = figures_of(a);
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
        {"gaps_total", "counter", "Gaps in the stream in this run.",
         (double)(a->gaps + f.shipped.gaps)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_figure(out, a->target->name, all[i].name, all[i].type, all[i].help, all[i].value);
}

/* A failure is reported once, and does not end the archive. */
static void write_metrics(struct archiver *a)
{
    const char *path = backup_get(a->target, BACKUP_KEY_ARCHIVE_METRICS_FILE);
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .no_sync = true, .mode = 0644);
    struct rd_err err = {0};
    struct rd_sink *out;
    char line[512];
    if (path == NULL)
        return;
    bool ok = rd_sink_open_file(&out, path, &opts, &err);
    if (ok) {
        put_figures(a, out);
        ok = rd_sink_close(out, &err);
    }
    if (!ok && !a->metrics_failed)
        cli_warn(a->cli, "cannot write the metrics: %s", rd_err_render(&err, line, sizeof line));
    a->metrics_failed = !ok;
}

/* ---- progress ---- */

static void draw(struct archiver *a)
{
    const struct figures f = figures_of(a);
    char text[300];
    if (a->cli->progress_when == CLI_WHEN_JSON)
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
    cli_progress_text(a->cli, text);
}

static void note(struct archiver *a)
{
    const struct figures f = figures_of(a);
    cli_note(a->cli, "%s: archived up to offset %" PRIu64 ", RPO %s, worst %s", a->target->name,
             f.shipped.offset, rd_show_duration(f.rpo_ms).s, rd_show_duration(a->worst_rpo_ms).s);
}

void archive_report_begin(struct archiver *a)
{
    a->report_ms = capture_now_ms() + CAPTURE_REPORT_MS;
    a->note_ms = capture_now_ms() + ARCHIVE_NOTE_MS;
    cli_progress_begin(a->cli, a->target->name, RD_NO_OFFSET);
    if (!a->cli->json)
        return;
    cli_json_key(&a->cli->out, "events");
    cli_json_array(&a->cli->out);
}

void archive_report_tick(struct archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms)
{
    put_events(a);
    if (now_ms >= a->report_ms) {
        a->report_ms = now_ms + CAPTURE_REPORT_MS;
        write_metrics(a);
        if (cli_progress_wanted(a->cli))
            draw(a);
        else
            figures_of(a); /* for the worst RPO */
    }
    if (now_ms >= a->note_ms) {
        a->note_ms = now_ms + ARCHIVE_NOTE_MS;
        note(a);
    }
    capture_sooner(ret_wait_ms, a->report_ms - now_ms);
}

/* ---- the result ---- */

bool archive_is_covered(const struct archiver *a)
{
    return a->bases.covers && !a->want_base;
}

void archive_report_end(struct archiver *a)
{
    struct cli_json *json = &a->cli->out;
    put_events(a);
    cli_progress_end(a->cli);
    write_metrics(a);
    const struct figures f = figures_of(a);
    if (!a->cli->json) {
        if (!a->cli->quiet)
            printf("%s: %s segment%s, %s of stream up to offset %" PRIu64
                   ", %s base%s, worst RPO %s\n",
                   a->target->name, rd_show_count(f.shipped.segments).s,
                   rd_show_plural(f.shipped.segments), rd_show_bytes(f.shipped.stream_bytes).s,
                   f.shipped.offset, rd_show_count(f.bases.n).s, rd_show_plural(f.bases.n),
                   rd_show_duration(a->worst_rpo_ms).s);
        return;
    }
    cli_json_end(json);
    cli_json_put_str(json, "target", a->target->name);
    cli_json_put_str(json, "run", a->run);
    cli_json_put_uint(json, "segments", f.shipped.segments);
    cli_json_put_uint(json, "stream_bytes", f.shipped.stream_bytes);
    cli_json_put_uint(json, "offset", f.shipped.offset);
    if (f.shipped.spool_failing)
        cli_json_put_str(json, "waiting", NULL);
    else
        cli_json_put_uint(json, "waiting", f.shipped.n_waiting);
    cli_json_put_uint(json, "bases", f.bases.n);
    cli_json_put_bool(json, "restorable", archive_is_covered(a));
    cli_json_put_uint(json, "gaps", a->gaps + f.shipped.gaps);
    cli_json_put_uint(json, "rpo_ms", f.rpo_ms);
    cli_json_put_uint(json, "worst_rpo_ms", a->worst_rpo_ms);
}
