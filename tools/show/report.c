/* report.c - prints the sums as text and JSON. */
#include "tools/show/show.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_commands(const void *a, const void *b)
{
    const struct show_row *x = a, *y = b;
    if (x->commands != y->commands)
        return x->commands < y->commands ? 1 : -1;
    if (x->keys != y->keys)
        return x->keys < y->keys ? 1 : -1;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->name, y->name, len);
    return order != 0 ? order : (int)x->len - (int)y->len;
}

/* Rows are no longer looked up by name. */
static void sort(struct show_table *table)
{
    qsort(table->rows, table->n, sizeof *table->rows, by_commands);
}

static double seconds(const struct show_stats *stats)
{
    return stats->timed < 2 ? 0 : ((double)stats->last_us - (double)stats->first_us) / 1e6;
}

static double share(uint64_t n, uint64_t all)
{
    return all == 0 ? 0 : 100.0 * (double)n / (double)all;
}

/* ---- text ---- */

static void print_rate(double n, double s)
{
    if (s > 0)
        printf(" %10.1f", n / s);
    else
        printf(" %10s", "-");
}

static void print_row(const struct show_stats *stats, const char *name, const struct show_row *row)
{
    double s = seconds(stats);
    printf("%-24s %10s %6.1f%%", name, rd_show_count(row->commands).s,
           share(row->commands, stats->all.commands));
    print_rate((double)row->commands, s);
    printf(" %10s %12s", rd_show_count(row->keys).s, rd_show_bytes(row->bytes).s);
    print_rate((double)row->bytes, s);
    printf("\n");
}

static void print_table(const struct show_stats *stats, const char *title,
                        const struct show_table *table, size_t top)
{
    printf("\n%-24s %10s %7s %10s %10s %12s %10s\n", title, "commands", "share", "per s", "keys",
           "bytes", "per s");
    for (size_t i = 0; i < table->n && i < top; i++) {
        const struct show_row *row = &table->rows[i];
        print_row(stats, row->len > 0 ? rd_show_plain(rd_slice(row->name, row->len)).s : "(none)",
                  row);
    }
    struct show_row rest = table->others;
    for (size_t i = top; i < table->n; i++) {
        rest.commands += table->rows[i].commands;
        rest.keys += table->rows[i].keys;
        rest.bytes += table->rows[i].bytes;
    }
    if (rest.commands > 0 || rest.keys > 0)
        print_row(stats, "(all others)", &rest);
}

/* The span with the most commands among the remaining ones; false: none. */
static bool busiest(const struct show_stats *stats, const struct show_span *after, size_t at,
                    size_t *ret)
{
    const struct show_span *best = NULL;
    for (size_t i = 0; i < stats->n_spans; i++) {
        const struct show_span *span = &stats->spans[i];
        bool taken = after != NULL && (span->commands > after->commands ||
                                       (span->commands == after->commands && i <= at));
        if (!taken && span->commands > 0 && (best == NULL || span->commands > best->commands)) {
            best = span;
            *ret = i;
        }
    }
    return best != NULL;
}

static void print_spans(const struct show_stats *stats, size_t top)
{
    const struct show_span *last = NULL;
    size_t i = 0;
    char title[40] = "busiest seconds";
    if (stats->width_s > 1)
        snprintf(title, sizeof title, "busiest %" PRId64 " s", stats->width_s);
    printf("\n%-24s %10s %10s %12s\n", title, "commands", "keys", "bytes");
    for (; top > 0 && busiest(stats, last, i, &i); top--) {
        last = &stats->spans[i];
        printf("%-24s %10s %10s %12s\n",
               rd_show_time((stats->start_s + (int64_t)i * stats->width_s) * 1000).s,
               rd_show_count(last->commands).s, rd_show_count(last->keys).s,
               rd_show_bytes(last->bytes).s);
    }
}

void show_report_text(struct show_stats *stats, size_t top)
{
    double s = seconds(stats);
    sort(&stats->commands);
    sort(&stats->prefixes);
    printf("%s command%s, %s", rd_show_count(stats->all.commands).s,
           rd_show_plural(stats->all.commands), rd_show_bytes(stats->all.bytes).s);
    if (s > 0)
        printf(", in %s: %.1f commands and %s per second",
               rd_show_duration(((uint64_t)stats->last_us - (uint64_t)stats->first_us) / 1000).s,
               (double)stats->all.commands / s,
               rd_show_bytes((uint64_t)((double)stats->all.bytes / s)).s);
    printf("\n%s key%s in these commands, about %s distinct\n", rd_show_count(stats->all.keys).s,
           rd_show_plural(stats->all.keys), rd_show_count(show_stats_keys(stats)).s);
    print_table(stats, "command", &stats->commands, top);
    print_table(stats, "key prefix", &stats->prefixes, top);
    if (stats->timed > 0)
        print_spans(stats, top);
}

/* ---- JSON ---- */

static void put_sums(struct json_write *json, uint64_t commands, uint64_t keys, uint64_t bytes)
{
    json_put_uint(json, "commands", commands);
    json_put_uint(json, "keys", keys);
    json_put_uint(json, "bytes", bytes);
}

static void put_table(struct json_write *json, const char *key, const char *name,
                      const struct show_table *table, size_t top)
{
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; i < table->n && i < top; i++) {
        const struct show_row *row = &table->rows[i];
        json_obj(json);
        json_key(json, name);
        json_bytes(json, rd_slice(row->name, row->len));
        put_sums(json, row->commands, row->keys, row->bytes);
        json_end(json);
    }
    json_end(json);
}

static void put_spans(struct json_write *json, const struct show_stats *stats)
{
    json_put_int(json, "span_s", stats->width_s);
    json_key(json, "spans");
    json_array(json);
    for (size_t i = 0; i < stats->n_spans; i++) {
        const struct show_span *span = &stats->spans[i];
        if (span->commands == 0)
            continue;
        json_obj(json);
        json_put_int(json, "time_s", stats->start_s + (int64_t)i * stats->width_s);
        put_sums(json, span->commands, span->keys, span->bytes);
        json_end(json);
    }
    json_end(json);
}

void show_report_json(struct show_stats *stats, struct json_write *json, size_t top)
{
    sort(&stats->commands);
    sort(&stats->prefixes);
    json_key(json, "stats");
    json_obj(json);
    put_sums(json, stats->all.commands, stats->all.keys, stats->all.bytes);
    json_put_uint(json, "different_keys", show_stats_keys(stats));
    if (stats->timed > 0) {
        json_put_int(json, "first_us", stats->first_us);
        json_put_int(json, "last_us", stats->last_us);
    }
    put_table(json, "by_command", "command", &stats->commands, top);
    put_table(json, "by_prefix", "prefix", &stats->prefixes, top);
    put_spans(json, stats);
    json_end(json);
}
