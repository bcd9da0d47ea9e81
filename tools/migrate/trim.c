/* trim.c - removes the oldest segments of the spool that the target has.
 *
 * A server of the target that fails can lose its last writes, and its position with them: the spool
 * keeps what may be needed again. */
#include "tools/migrate/migrate.h"

static uint64_t size_of(const struct repl_capture_segment *segment)
{
    return segment->size + (segment->has_snapshot ? segment->snapshot_size : 0);
}

static bool is_applied(const struct migrate *m, const struct migrate_stream *stream,
                       const struct repl_capture_segment *segment)
{
    for (size_t g = 0; g < m->target.n_groups; g++) {
        const struct migrate_place *at = &stream->applied[g];
        if (at->chapter < segment->chapter ||
            (at->chapter == segment->chapter && at->offset < segment->end))
            return false;
    }
    return segment->closed;
}

static void remove_segment(const struct rd_fs *fs, const struct repl_capture_segment *segment)
{
    char name[REPL_CAPTURE_NAME];
    if (segment->has_snapshot) {
        repl_capture_snapshot_name(segment, name);
        fs->unlink(fs->ctx, name);
        repl_capture_unlink_keys(fs, name);
    }
    fs->unlink(fs->ctx, segment->name);
    repl_capture_unlink_keys(fs, segment->name);
}

bool migrate_trim(struct migrate *m, struct migrate_stream *stream, struct rd_err *err)
{
    struct repl_capture_list list;
    uint64_t size = 0;
    if (!repl_capture_list(&list, &stream->in.fs, err)) {
        rd_err_origin(err, stream->path);
        return false;
    }
    for (size_t i = 0; i < list.n; i++)
        size += size_of(&list.segments[i]);
    for (size_t i = 0; i + 1 < list.n && size > m->spool_size / m->n_streams &&
                       is_applied(m, stream, &list.segments[i]);
         i++) {
        size -= size_of(&list.segments[i]);
        remove_segment(&stream->in.fs, &list.segments[i]);
    }
    repl_capture_list_done(&list);
    return true;
}
