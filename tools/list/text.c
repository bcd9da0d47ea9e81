#include "tools/list/priv.h"

#include <inttypes.h>
#include <stdio.h>

const char *list_state(const struct archive_set *set)
{
    if (set->err.code != RD_ERR_OK || set->missing > 0 || set->marked[ARCHIVE_MARK_DAMAGED])
        return "damaged";
    return set->marked[ARCHIVE_MARK_PINNED] ? "pinned" : "ok";
}

bool list_of_snapshot(const struct archive_manifest *m)
{
    return m->n_files > 0 && m->files[0].role == ARCHIVE_ROLE_RDB;
}

static void print_set(const struct archive_set *set)
{
    const struct archive_manifest *m = &set->m;
    printf("  %s  %-7s  %12s", set->id, list_state(set), cli_bytes(set->bytes).s);
    if (set->err.code == RD_ERR_OK) {
        if (m->n_nodes > 0)
            printf("  %zu master%s,", m->n_nodes, cli_plural(m->n_nodes));
        if (list_of_snapshot(m))
            printf("  %s key%s", cli_count(m->keys).s, cli_plural(m->keys));
        else
            printf("  log");
        if (m->server[0] != '\0')
            printf("  %s", cli_plain(rd_slice_str(m->server)).s);
        printf("%s%s", m->key_id[0] != '\0' ? ", sealed" : "", m->scan ? ", not one moment" : "");
    }
    printf("\n");
}

static void print_details(const struct archive_set *set)
{
    const struct archive_manifest *m = &set->m;
    if (set->err.code != RD_ERR_OK)
        return;
    printf("      source %s, offset %llu of %s\n", cli_plain(rd_slice_str(m->source)).s,
           (unsigned long long)m->offset,
           m->replid[0] != '\0' ? cli_plain(rd_slice_str(m->replid)).s : "no known history");
    for (size_t i = 0; i < m->n_files; i++)
        printf("      %s, %s, plain %s\n", m->files[i].object,
               cli_bytes(m->files[i].stored.bytes).s, cli_bytes(m->files[i].plain.bytes).s);
}

void list_text_set(const struct archive_set *set, bool details)
{
    print_set(set);
    if (details)
        print_details(set);
}

void list_text_chain(const struct list_chain *chain)
{
    const struct archive_segment *segments = chain->stream->segments;
    const struct archive_range *range = &chain->range;
    if (range->bases > 0)
        printf("  any moment from %s to %s, offsets %" PRIu64 " to %" PRIu64 "\n",
               cli_time(range->from_ms).s, cli_time(range->to_ms).s, range->from, range->to);
    else
        printf("  a stream without a set: offsets %" PRIu64 " to %" PRIu64 "\n",
               segments[chain->begin].start, segments[chain->end - 1].end);
}
