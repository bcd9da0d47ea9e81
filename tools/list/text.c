#include "tools/list/list.h"

#include <inttypes.h>
#include <stdio.h>

const char *list_state(const struct archive_set *set)
{
    if (set->err != NULL || set->missing > 0 || set->marked[ARCHIVE_MARK_DAMAGED])
        return "damaged";
    if (set->refused)
        return "unsealed";
    return set->marked[ARCHIVE_MARK_PINNED] ? "pinned" : "ok";
}

bool list_of_snapshot(const struct archive_manifest *m)
{
    return m->n_files > 0 && m->files[0].role == ARCHIVE_ROLE_RDB;
}

void list_text_header(void)
{
    printf("%-16s  %6s  %9s  %9s  %-25s  state\n", "date (UTC)", "age", "size", "keys", "set");
}

/* "3 d", the largest unit only. */
static struct rd_shown age(int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};
    struct rd_shown text = {"0 s"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms < units[i].ms)
            continue;
        snprintf(text.s, sizeof text.s, "%" PRId64 " %s", ms / units[i].ms, units[i].name);
        break;
    }
    return text;
}

static void print_set(const struct archive_set *set, int64_t now_ms)
{
    const struct archive_manifest *m = &set->m;
    const struct rd_shown time = rd_show_time(set->time_ms);
    const char *keys = set->err != NULL ? "-" : "log";
    struct rd_shown count = rd_show_count(m->keys);
    if (set->err == NULL && list_of_snapshot(m))
        keys = count.s;
    printf("%.10s %.5s  %6s  %9s  %9s  %-25s  %s", time.s, time.s + 11,
           age(now_ms - set->time_ms).s, rd_show_bytes(set->bytes).s, keys, set->id,
           list_state(set));
    if (set->err == NULL) {
        printf("%s%s", m->key_id[0] != '\0' ? ", sealed" : "", m->scan ? ", not one moment" : "");
        if (m->n_nodes > 0)
            printf(", %zu master%s", m->n_nodes, rd_show_plural(m->n_nodes));
        for (size_t i = 0; i < m->n_tags; i++)
            printf(", %s%s%s", m->tags[i].name, m->tags[i].value[0] != '\0' ? "=" : "",
                   m->tags[i].value);
    }
    printf("\n");
}

static void print_details(const struct archive_set *set)
{
    const struct archive_manifest *m = &set->m;
    if (set->err != NULL)
        return;
    if (m->server[0] != '\0')
        printf("      written by %s\n", rd_show_plain(rd_slice_str(m->server)).s);
    printf("      source %s, offset %llu of %s\n", rd_show_plain(rd_slice_str(m->source)).s,
           (unsigned long long)m->offset,
           m->replid[0] != '\0' ? rd_show_plain(rd_slice_str(m->replid)).s : "no known history");
    for (size_t i = 0; i < m->n_files; i++)
        printf("      %s, %s, plain %s\n", m->files[i].object,
               rd_show_bytes(archive_file_bytes(&m->files[i])).s,
               rd_show_bytes(m->files[i].plain.bytes).s);
}

void list_text_set(const struct archive_set *set, const struct list_sizes *sizes, int64_t now_ms,
                   bool details)
{
    print_set(set, now_ms);
    if (sizes != NULL)
        printf("      added %s, needs %s, its removal would free %s\n",
               rd_show_bytes(sizes->added).s, rd_show_bytes(sizes->needed).s,
               rd_show_bytes(sizes->freed).s);
    if (details)
        print_details(set);
}

static void print_outages(const struct list_chain *chain)
{
    const struct archive_moments *m = &chain->moments;
    int64_t from_ms = m->list[0].from_ms, to_ms = m->list[m->n - 1].to_ms;
    for (size_t i = 0; i < chain->outages.n; i++) {
        const struct archive_outage *o = &chain->outages.list[i];
        if (o->until_ms > from_ms && o->since_ms < to_ms)
            printf("    except between %s and %s: %s\n", rd_show_time(o->since_ms).s,
                   rd_show_time(o->until_ms).s,
                   o->clock ? "the clock was set back" : "the archive was interrupted");
    }
}

/* Segments of older versions, in which interruptions are not known. */
static bool is_recorded(const struct list_chain *chain)
{
    for (size_t i = chain->begin; i < chain->end; i++)
        if (!chain->stream->segments[i].recorded)
            return false;
    return true;
}

void list_text_chain(const struct list_chain *chain)
{
    const struct archive_segment *segments = chain->stream->segments;
    const struct archive_range *range = &chain->range;
    const struct archive_moments *m = &chain->moments;
    if (range->bases == 0) {
        printf("  a stream without a set: offsets %" PRIu64 " to %" PRIu64 "\n",
               segments[chain->begin].start, segments[chain->end - 1].end);
        return;
    }
    if (m->n == 0) {
        printf("  no time yet, offsets %" PRIu64 " to %" PRIu64 "\n", range->from, range->to);
        return;
    }
    printf("  any moment from %s to %s, offsets %" PRIu64 " to %" PRIu64 "\n",
           rd_show_time(m->list[0].from_ms).s, rd_show_time(m->list[m->n - 1].to_ms).s, range->from,
           range->to);
    print_outages(chain);
    if (!is_recorded(chain))
        printf("    except in interruptions that an older version did not record\n");
}

void list_text_pause(const struct archive_pause *pause)
{
    printf("  backups are paused since %s", rd_show_time(pause->since_ms).s);
    if (pause->host[0] != '\0')
        printf(", by %s", rd_show_plain(rd_slice_str(pause->host)).s);
    if (pause->reason[0] != '\0')
        printf(": %s", rd_show_plain(rd_slice_str(pause->reason)).s);
    printf("\n");
}
