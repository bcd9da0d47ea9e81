/* html.c - the totals as a page. Rows are arrays; page.js has the same order of columns. */
#include "base/api.h"
#include "base/mem.h"
#include "tools/page/page.h"
#include "tools/show/show.h"

#include "tools/show_page.h"

#include <stdlib.h>

/* Bytes of the page for lines of commands and for each table, and the columns of a series. */
enum { LINE_BYTES = 640000, TABLE_BYTES = 90000, COLUMNS = 120 };

static size_t spans_of_column(const struct show_stats *stats)
{
    return (stats->n_spans + COLUMNS - 1) / COLUMNS;
}

/* A series in as many columns as the page has. */
static void put_series(struct json_write *json, const struct show_stats *stats,
                       const uint32_t *spans)
{
    size_t width = spans_of_column(stats);
    json_array(json);
    for (size_t i = 0; i < stats->n_spans; i += width) {
        uint64_t sum = 0;
        for (size_t k = i; k < stats->n_spans && k < i + width; k++)
            sum += spans[k];
        json_uint(json, sum);
    }
    json_end(json);
}

static int by_bytes(const void *va, const void *vb)
{
    const struct show_row *const *a = va, *const *b = vb;
    if ((*a)->bytes != (*b)->bytes)
        return (*a)->bytes < (*b)->bytes ? 1 : -1;
    return (*a > *b) - (*a < *b);
}

/* The rows with the most bytes, then the sum of the others. */
static bool put_table(struct json_write *json, const char *name, const struct show_stats *stats,
                      const struct show_table *table, const uint32_t *series, struct rd_err *err)
{
    const struct show_row **list = rd_calloc(table->n + 1, sizeof *list);
    struct show_row others = table->others;
    uint64_t spent = 0;
    if (list == NULL)
        return rd_err_nomem(err, table->n * sizeof *list);
    for (size_t i = 0; i < table->n; i++)
        list[i] = &table->rows[i];
    qsort(list, table->n, sizeof *list, by_bytes);
    json_key(json, name);
    json_array(json);
    for (size_t i = 0; i < table->n; i++) {
        size_t at = (size_t)(list[i] - table->rows);
        if (spent >= TABLE_BYTES) {
            others.commands += list[i]->commands;
            others.keys += list[i]->keys;
            others.bytes += list[i]->bytes;
            continue;
        }
        uint64_t from = rd_sink_offset(json->out);
        struct rd_slice text = rd_slice(list[i]->name, list[i]->len);
        json_array(json);
        json_bytes(json, text);
        json_uint(json, list[i]->commands);
        json_uint(json, list[i]->keys);
        json_uint(json, list[i]->bytes);
        if (at < SHOW_SERIES)
            put_series(json, stats, series + at * SHOW_SPANS);
        json_end(json);
        spent += rd_sink_offset(json->out) - from + page_cost(text) - text.len;
    }
    if (others.commands > 0) {
        json_array(json);
        json_null(json);
        json_uint(json, others.commands);
        json_uint(json, others.keys);
        json_uint(json, others.bytes);
        json_end(json);
    }
    json_end(json);
    rd_free(list);
    return true;
}

/* Decides how many lines of each span are on the page: as many for each as there is room for. */
static void choose_lines(const struct show_stats *stats, uint8_t *ret)
{
    uint64_t spent = 0;
    for (size_t k = 0; k < SHOW_SAMPLES; k++) {
        for (size_t i = 0; i < stats->n_spans; i++) {
            const struct show_sample *sample = &stats->timeline->samples[i];
            if (k >= sample->n)
                continue;
            spent += page_cost(rd_slice_str(sample->lines[k])) + 3;
            if (spent > LINE_BYTES)
                return;
            ret[i]++;
        }
    }
}

/* The spans with commands: number, commands, bytes, lines. */
static bool put_spans(struct json_write *json, const struct show_stats *stats, struct rd_err *err)
{
    uint8_t *n_lines = rd_calloc(SHOW_SPANS, 1);
    if (n_lines == NULL)
        return rd_err_nomem(err, SHOW_SPANS);
    choose_lines(stats, n_lines);
    json_key(json, "spans");
    json_array(json);
    for (size_t i = 0; i < stats->n_spans; i++) {
        const struct show_span *span = &stats->spans[i];
        if (span->commands == 0)
            continue;
        json_array(json);
        json_uint(json, i);
        json_uint(json, span->commands);
        json_uint(json, span->bytes);
        for (size_t k = 0; k < n_lines[i]; k++)
            json_bytes(json, rd_slice_str(stats->timeline->samples[i].lines[k]));
        json_end(json);
    }
    json_end(json);
    rd_free(n_lines);
    return true;
}

static bool put_all(struct json_write *json, const struct show_stats *stats, const char *path,
                    struct rd_err *err)
{
    json_key(json, "file");
    json_bytes(json, rd_slice_str(path));
    json_put_str(json, "made_at", rd_show_time(cli_now_ms() / 1000 * 1000).s);
    json_put_str(json, "made_by", redoubt_version_string());
    json_put_uint(json, "commands", stats->all.commands);
    json_put_uint(json, "keys", stats->all.keys);
    json_put_uint(json, "bytes", stats->all.bytes);
    json_put_uint(json, "different_keys", show_stats_keys(stats));
    json_put_uint(json, "timed", stats->timed);
    json_put_int(json, "first_ms", stats->first_us / 1000);
    json_put_int(json, "last_ms", stats->last_us / 1000);
    json_put_int(json, "start_s", stats->start_s);
    json_put_int(json, "width_s", stats->width_s);
    json_put_uint(json, "n_spans", stats->n_spans);
    json_put_uint(json, "column", stats->n_spans > 0 ? spans_of_column(stats) : 1);
    json_put_uint(json, "samples", SHOW_SAMPLES);
    return put_table(json, "by_command", stats, &stats->commands, stats->timeline->series[0],
                     err) &&
           put_table(json, "by_prefix", stats, &stats->prefixes, stats->timeline->series[1], err) &&
           put_spans(json, stats, err);
}

bool show_html_write(struct rd_sink *out, const struct show_stats *stats, const char *path,
                     struct rd_err *err)
{
    struct rd_buf data = {0};
    struct rd_sink *sink;
    struct json_write json;
    if (stats->timeline->nomem)
        return rd_err_nomem(err, SHOW_SAMPLE_MAX);
    if (!rd_sink_open_buf(&sink, &data, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    bool ok = put_all(&json, stats, path, err);
    json_end(&json);
    ok = rd_sink_close(sink, err) && ok &&
         page_write(out, rd_slice(show_page, sizeof show_page), rd_buf_slice(&data), err);
    rd_buf_done(&data);
    return ok;
}
