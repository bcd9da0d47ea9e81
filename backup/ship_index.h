/* ship_index.h - the indexes of keys of the segments that ship.c uploads; private to ship*.c.
 *
 *     struct ship_index index = {.a = a, .key = key, .on = true};
 *     backup_ship_index_begin(&index, &in);
 *     for each event of the segment:   backup_ship_index_add(&index, &ev);
 *     backup_ship_index_end(&index, &in);
 *     for each repository that has the segment now:
 *         backup_ship_index_put(&index, i, &repo, &segment, is_new);
 *     backup_ship_index_drop(&index);
 *
 * An index that cannot be made or stored is left out: readers make it of the segment. The first
 * failure of a run is an event. After one, a repository gets no index for a minute, and longer each
 * time that it fails again, so that the stream does not wait.
 */
#ifndef BACKUP_SHIP_INDEX_H
#define BACKUP_SHIP_INDEX_H

#include "archive/key_index.h"
#include "backup/archiver_impl.h"
#include "backup/key_index.h"

struct ship_index {
    struct backup_archiver *a;
    const struct rd_seal_key *key;
    bool on;
    bool said;
    bool ready; /* made is the index of the segment */
    struct backup_key_index made;
    uint64_t next_ms[BACKUP_STORES];  /* no try before */
    uint64_t pause_ms[BACKUP_STORES]; /* after the next failure */
};

void backup_ship_index_begin(struct ship_index *index, const struct segment_in *in);
void backup_ship_index_add(struct ship_index *index, const struct repl_capture_event *ev);
void backup_ship_index_end(struct ship_index *index, const struct segment_in *in);
/* is_new: the segment was uploaded in this run. Otherwise the index may be there. */
void backup_ship_index_put(struct ship_index *index, size_t i, struct archive_repo *repo,
                           const struct archive_segment *segment, bool is_new);
void backup_ship_index_drop(struct ship_index *index);

#endif
