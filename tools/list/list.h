/* list.h - shared by the parts of `redoubt list`; private to tools/list/.
 *
 *     list.c   options, and which sets and streams are listed
 *     text.c   as text
 *     json.c   as JSON
 *     html.c   as a page, whose data is the JSON
 */
#ifndef TOOLS_LIST_LIST_H
#define TOOLS_LIST_LIST_H

#include "archive/moments.h"
#include "archive/pause.h"
#include "tools/vault/vault.h"

/* Segments that follow each other: begin to end - 1. */
struct list_chain {
    const struct archive_repo *repo;
    const struct archive_stream *stream;
    size_t begin, end;
    struct archive_range range;     /* bases == 0: no moment of it can be restored */
    struct archive_moments moments; /* of the range */
    struct archive_outages outages; /* in the range */
    uint64_t lost;                  /* segments that are missing before the chain */
};

/* "ok", "pinned", "unsealed" or "damaged". */
const char *list_state(const struct archive_set *set);
/* Whether the files of a set are snapshots. */
bool list_of_snapshot(const struct archive_manifest *m);

/* What a set takes: what it added to the repository, what it needs of it, and what its removal
 * would give back. */
struct list_sizes {
    uint64_t added, needed, freed;
};

/* The names of the columns. */
void list_text_header(void);
/* sizes: NULL, or with --sizes. */
void list_text_set(const struct archive_set *set, const struct list_sizes *sizes, int64_t now_ms,
                   bool details);
void list_text_chain(const struct list_chain *chain);
void list_text_pause(const struct archive_pause *pause);

void list_json_set(struct json_write *json, const struct archive_repo *repo,
                   const struct archive_set *set, const struct list_sizes *sizes);
void list_json_chain(struct json_write *json, const struct list_chain *chain);
void list_json_pause(struct json_write *json, const struct archive_repo *repo,
                     const struct archive_pause *pause);

/* Writes the page; json is the object with the members "now_ms", "sets",
 * "streams", "paused" and "errors". */
bool list_html_write(struct rd_sink *out, struct rd_slice json, struct rd_err *err);

#endif
