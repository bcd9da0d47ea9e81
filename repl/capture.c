#include "repl/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "repl/capture/file.h"
#include "repl/capture/folder.h"

/* ---- the folder ---- */

struct collect {
    struct capture_folder *folder;
    const char *ending;
    bool failed;
};

static void collect_name(void *arg, const char *name)
{
    struct collect *c = arg;
    struct capture_name found;
    if (!repl_capture_name_get(name, c->ending, &found.number, &found.start))
        return;
    c->failed |= !rd_buf_add(&c->folder->names, &found, sizeof found);
}

static int by_number(const void *a, const void *b)
{
    const struct capture_name *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

bool repl_capture_folder_list(struct capture_folder *ret, const struct rd_fs *fs,
                              const char *ending, struct rd_err *err)
{
    struct capture_folder folder = {0};
    struct collect c = {.folder = &folder, .ending = ending};
    int result = fs->list(fs->ctx, collect_name, &c);
    if (result < 0 || c.failed) {
        rd_buf_done(&folder.names);
        return c.failed ? rd_err_nomem(err, folder.names.len)
                        : rd_err_sys(err, -result, "cannot list the folder of the capture");
    }
    folder.n = folder.names.len / sizeof(struct capture_name);
    folder.name = (const struct capture_name *)(const void *)folder.names.ptr;
    if (folder.n > 1)
        qsort(folder.names.ptr, folder.n, sizeof(struct capture_name), by_number);
    *ret = folder;
    return true;
}

void repl_capture_folder_done(struct capture_folder *folder)
{
    rd_buf_done(&folder->names);
}

/* ---- segments ---- */

static bool add_segment(struct repl_capture_list *list, const struct rd_fs *fs,
                        const struct capture_name *name, bool last, struct rd_err *err)
{
    struct capture_file f;
    char text[REPL_CAPTURE_NAME];
    repl_capture_name_put(text, name->number, name->start, ".seg");
    switch (repl_capture_file_open_at(&f, fs, text, err)) {
    case CAPTURE_OPEN_OK:
        list->segments[list->n++] = f.seg;
        repl_capture_file_close(&f);
        return true;
    case CAPTURE_OPEN_GONE: /* deleted since the folder was listed */
        return true;
    case CAPTURE_OPEN_TORN:
        if (last)
            return true;
        rd_err_set(err, RD_ERR_CORRUPT, 0, "incomplete header, although another segment follows");
        rd_err_origin(err, text);
        return false;
    default:
        return false;
    }
}

bool repl_capture_list(struct repl_capture_list *ret, const struct rd_fs *fs, struct rd_err *err)
{
    struct capture_folder folder;
    struct repl_capture_list list = {0};
    if (!repl_capture_folder_list(&folder, fs, ".seg", err))
        return false;
    bool ok = true;
    if (folder.n > 0) {
        list.segments = rd_calloc(folder.n, sizeof *list.segments);
        ok = list.segments != NULL || rd_err_nomem(err, folder.n * sizeof *list.segments);
    }
    for (size_t i = 0; ok && i < folder.n; i++)
        ok = add_segment(&list, fs, &folder.name[i], i + 1 == folder.n, err);
    repl_capture_folder_done(&folder);
    if (ok)
        *ret = list;
    else
        repl_capture_list_done(&list);
    return ok;
}

void repl_capture_list_done(struct repl_capture_list *list)
{
    rd_free(list->segments);
    *list = (struct repl_capture_list){0};
}

static bool same_history(const struct repl_capture_segment *segment,
                         const struct repl_capture_segment *next)
{
    if (next->begins)
        return next->chapter == segment->chapter + 1 &&
               repl_replid_eq(&next->replid2, &segment->replid);
    return next->chapter == segment->chapter && repl_replid_eq(&next->replid, &segment->replid);
}

static void missing_segments(const struct repl_capture_segment *segment, uint64_t end,
                             const struct repl_capture_segment *next, struct rd_err *why)
{
    uint64_t first = repl_capture_last(segment) + 1, last = next->number - 1;
    char names[80];
    if (first == last)
        snprintf(names, sizeof names, "segment %" PRIu64, first);
    else
        snprintf(names, sizeof names, "segments %" PRIu64 " to %" PRIu64, first, last);
    if (next->continues && next->start > end && next->chapter_start <= end)
        rd_err_set(why, RD_ERR_CORRUPT, RD_NO_OFFSET,
                   "a gap: offsets %" PRIu64 " to %" PRIu64 " are missing (%s)", end,
                   next->start - 1, names);
    else
        rd_err_set(why, RD_ERR_CORRUPT, RD_NO_OFFSET,
                   "a gap: everything from offset %" PRIu64 " is missing (%s)", end, names);
}

bool repl_capture_follows(const struct repl_capture_segment *segment, uint64_t end,
                          const struct repl_capture_segment *next, struct rd_err *err)
{
    struct rd_err why = {0};
    if (next->number > repl_capture_last(segment) + 1) {
        missing_segments(segment, end, next, &why);
    } else if (next->number <= repl_capture_last(segment)) {
        rd_err_set(&why, RD_ERR_CORRUPT, 16, "there are two segments %" PRIu64, next->number);
    } else if (next->continues && next->start > end) {
        rd_err_set(&why, RD_ERR_CORRUPT, RD_NO_OFFSET,
                   "a gap: offsets %" PRIu64 " to %" PRIu64 " are missing", end, next->start - 1);
    } else if (next->continues && next->start < end) {
        rd_err_set(&why, RD_ERR_CORRUPT, 24,
                   "offsets %" PRIu64 " to %" PRIu64 " are in two segments", next->start, end - 1);
    } else if (next->continues && !same_history(segment, next)) {
        rd_err_set(&why, RD_ERR_CORRUPT, 48, "its history differs from that of segment %" PRIu64,
                   segment->number);
    }
    if (why.code == RD_ERR_OK)
        return true;
    rd_err_origin(&why, next->name);
    rd_err_adopt(err, &why);
    return false;
}

void repl_capture_snapshot_name(const struct repl_capture_segment *segment,
                                char ret[REPL_CAPTURE_NAME])
{
    repl_capture_name_put(ret, segment->number, segment->start, ".rdb");
}

void repl_capture_unlink_keys(const struct rd_fs *fs, const char *name)
{
    char keys[REPL_CAPTURE_NAME + sizeof REPL_CAPTURE_KEYS];
    snprintf(keys, sizeof keys, "%s" REPL_CAPTURE_KEYS, name);
    fs->unlink(fs->ctx, keys);
}

bool repl_capture_base(const struct repl_capture_list *list, size_t i, size_t *ret)
{
    for (const struct repl_capture_segment *s = list->segments; !s[i].has_snapshot; i--)
        if (i == 0 || !s[i].continues || !s[i - 1].closed ||
            !repl_capture_follows(&s[i - 1], s[i - 1].end, &s[i], NULL))
            return false;
    *ret = i;
    return true;
}

bool repl_capture_mark_is_there(const struct repl_capture_mark *mark,
                                const struct repl_capture_segment *segment, const struct rd_fs *fs)
{
    struct capture_file f;
    struct capture_block block;
    if (repl_capture_file_open_at(&f, fs, segment->name, NULL) != CAPTURE_OPEN_OK)
        return false;
    bool found = f.seed == mark->seed && repl_capture_file_head(&f, mark->at, &block) &&
                 block.offset == mark->offset && block.crc == mark->crc;
    repl_capture_file_close(&f);
    return found;
}

/* ---- interruptions ---- */

bool repl_capture_until(const struct repl_capture_segment *segment, const struct rd_fs *fs,
                        int64_t *ret_us, struct rd_err *err)
{
    struct capture_file f;
    struct capture_cursor c;
    struct capture_block block;
    struct rd_err why = {0};
    int64_t until_us = segment->until_us;
    if (segment->closed || !segment->interrupted) {
        *ret_us = until_us;
        return true;
    }
    enum capture_open open = repl_capture_file_open_at(&f, fs, segment->name, err);
    if (open == CAPTURE_OPEN_FAIL)
        return false;
    if (open != CAPTURE_OPEN_OK) {
        *ret_us = REPL_CAPTURE_NEVER;
        return true;
    }
    if (f.seg.closed)
        until_us = f.seg.until_us;
    repl_capture_cursor_init(&c, &f);
    while (until_us == REPL_CAPTURE_NEVER && repl_capture_cursor_hop(&c, &block, &why))
        if ((block.flags & CAPTURE_IN_TIME) != 0)
            until_us = block.first_us;
    repl_capture_file_close(&f);
    rd_err_adopt(err, &why);
    *ret_us = until_us;
    return why.code == RD_ERR_OK;
}
