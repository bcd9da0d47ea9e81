/* report.c - messages, progress and the result. */
#include "tools/migrate/migrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "capture/clock.h"

enum { PROGRESS_MS = 1000 };

void migrate_say(struct migrate *m, bool trouble, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (trouble)
        cli_warn(m->cli, "%s", text);
    else
        cli_note(m->cli, "%s", text);
}

void migrate_report_events(struct migrate *m)
{
    struct migrate_event events[MIGRATE_EVENTS];
    size_t n = migrate_source_events(&m->source, events);
    for (size_t i = 0; i < n; i++)
        migrate_say(m, events[i].trouble, "%s", events[i].text);
}

/* ---- progress ---- */

/* Bytes that were received and not applied, and the age of the last command that was applied if
 * there are any. */
static uint64_t lag_bytes(const struct migrate *m, uint64_t *ret_ms)
{
    uint64_t bytes = 0;
    int64_t oldest_us = INT64_MAX;
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct migrate_stream *s = m->streams[i];
        uint64_t n = s->received > s->safe.offset ? s->received - s->safe.offset : 0;
        bytes += n;
        if (n > 0 && s->time_us != 0 && s->time_us < oldest_us)
            oldest_us = s->time_us;
    }
    int64_t now_us = capture_now_us();
    *ret_ms = oldest_us < now_us ? (uint64_t)(now_us - oldest_us) / 1000 : 0;
    return bytes;
}

void migrate_report_progress(struct migrate *m)
{
    uint64_t now_ms = capture_now_ms(), ms, lag = lag_bytes(m, &ms);
    char text[300];
    if (!cli_progress_wanted(m->cli) || now_ms < m->progress_ms)
        return;
    m->progress_ms = now_ms + PROGRESS_MS;
    if (m->cli->progress_when == CLI_WHEN_JSON)
        snprintf(text, sizeof text,
                 "{\"progress\":{\"keys\":%" PRIu64 ",\"commands\":%" PRIu64 ",\"bytes\":%" PRIu64
                 ",\"lag_bytes\":%" PRIu64 ",\"lag_ms\":%" PRIu64 ",\"connected\":%s}}",
                 m->result.keys, m->result.commands, m->result.bytes, lag, ms,
                 m->attached ? "true" : "false");
    else
        snprintf(text, sizeof text, "%s keys  %s commands  lag %s, %" PRIu64 ".%" PRIu64 " s%s",
                 rd_show_count(m->result.keys).s, rd_show_count(m->result.commands).s,
                 rd_show_bytes(lag).s, ms / 1000, ms % 1000 / 100,
                 m->attached ? "" : "  NOT CONNECTED");
    cli_progress_text(m->cli, text);
}

/* ---- the result ---- */

static void put_stream(struct json_write *json, const struct migrate_stream *s)
{
    json_obj(json);
    json_put_str(json, "source", s->name);
    json_put_str(json, "folder", s->folder[0] != '\0' ? s->folder : ".");
    json_put_str(json, "replid", repl_replid_is_set(&s->replid) ? s->replid.hex : NULL);
    json_put_uint(json, "received", s->received);
    json_put_uint(json, "applied", s->safe.offset);
    json_end(json);
}

static void put_refusals(struct json_write *json, const struct migrate_result *r)
{
    size_t n = r->n_refused < MIGRATE_ERRORS ? (size_t)r->n_refused : MIGRATE_ERRORS;
    json_put_uint(json, "refused", r->n_refused);
    json_key(json, "refusals");
    json_array(json);
    for (size_t i = 0; i < n; i++) {
        json_obj(json);
        json_put_str(json, "command", r->refused[i].name);
        json_put_uint(json, "offset", r->refused[i].offset);
        json_put_str(json, "text", r->refused[i].text);
        json_end(json);
    }
    json_end(json);
}

static void put_verdict(struct json_write *json, const struct migrate_verdict *v)
{
    json_key(json, "verdict");
    json_obj(json);
    json_put_bool(json, "same", v->same);
    json_put_uint(json, "source_keys", v->keys[0]);
    json_put_uint(json, "target_keys", v->keys[1]);
    json_put_uint(json, "due", v->due);
    json_put_uint(json, "slots_differ", v->n_differ);
    json_put_bool(json, "functions_differ", v->functions_differ);
    json_end(json);
}

static void print_verdict(const struct migrate *m)
{
    const struct migrate_verdict *v = &m->verdict;
    if (v->same)
        printf("the target has the same data as the source: %s key%s; the writes of the source "
               "stay paused for the rest of %s\n",
               rd_show_count(v->keys[0]).s, rd_show_plural(v->keys[0]),
               rd_show_duration(m->pause_ms).s);
    else
        printf("the target DIFFERS from the source in %s of 16384 slots%s (%s and %s keys); the "
               "source accepts writes again\n",
               rd_show_count(v->n_differ).s, v->functions_differ ? ", and in its functions" : "",
               rd_show_count(v->keys[0]).s, rd_show_count(v->keys[1]).s);
    if (v->due > 0)
        printf("%s key%s that expire within the pause were not compared\n", rd_show_count(v->due).s,
               rd_show_plural(v->due));
}

void migrate_report(struct migrate *m)
{
    const struct migrate_result *r = &m->result;
    struct json_write *json = &m->cli->out;
    if (!m->cli->json) {
        if (m->cli->quiet)
            return;
        printf("%s: %s key%s copied, %s command%s applied", m->target.first.name,
               rd_show_count(r->keys).s, rd_show_plural(r->keys), rd_show_count(r->commands).s,
               rd_show_plural(r->commands));
        if (r->n_refused > 0)
            printf(", %s refused", rd_show_count(r->n_refused).s);
        printf("\n");
        if (m->verdict.done)
            print_verdict(m);
        return;
    }
    json_put_str(json, "target", m->target.first.name);
    json_put_uint(json, "snapshots", r->copies);
    json_put_uint(json, "keys", r->keys);
    json_put_uint(json, "commands", r->commands);
    json_put_uint(json, "bytes", r->bytes);
    json_put_uint(json, "transactions", r->transactions);
    json_put_uint(json, "divided", r->divided);
    json_put_uint(json, "not_copied", r->filtered);
    json_put_uint(json, "connections", r->attaches);
    put_refusals(json, r);
    if (m->verdict.done)
        put_verdict(json, &m->verdict);
    json_key(json, "sources");
    json_array(json);
    for (size_t i = 0; i < m->n_streams; i++)
        put_stream(json, m->streams[i]);
    json_end(json);
}
