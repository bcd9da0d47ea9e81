#include <errno.h>

#include "repl/capture/folder.h"
#include "repl/capture/writer_impl.h"
#include "repl/monitor.h"

bool repl_capture_unlink(struct repl_capture_writer *w, const char *name)
{
    int result = w->fs.unlink(w->fs.ctx, name);
    return result == -ENOENT || repl_capture_sys(w, result, name, "cannot delete");
}

bool repl_capture_keep(struct repl_capture_writer *w)
{
    struct capture_kept kept = {w->seg.number, w->seg.start,
                                w->at + w->snapshot_size + w->beside_size};
    if (!rd_buf_add(&w->kept, &kept, sizeof kept))
        return rd_err_nomem(&w->err, w->kept.len + sizeof kept);
    w->kept_size += kept.size;
    w->snapshot_size = w->beside_size = 0;
    return true;
}

static void clean_keys_of(struct repl_capture_writer *w, const char *ending, uint64_t first)
{
    struct capture_folder folder;
    char name[REPL_CAPTURE_NAME];
    if (!repl_capture_folder_list(&folder, &w->fs, ending, NULL))
        return;
    for (size_t i = 0; i < folder.n && folder.name[i].number < first; i++) {
        repl_capture_name_put(name, folder.name[i].number, folder.name[i].start, ending);
        w->fs.unlink(w->fs.ctx, name);
    }
    repl_capture_folder_done(&folder);
}

void repl_capture_clean_keys(struct repl_capture_writer *w, uint64_t first)
{
    clean_keys_of(w, ".seg" REPL_CAPTURE_KEYS, first);
    clean_keys_of(w, ".rdb" REPL_CAPTURE_KEYS, first);
}

/* Recordings of MONITOR of this segment and of older ones. */
static bool delete_monitors(struct repl_capture_writer *w, uint64_t number)
{
    struct capture_folder folder;
    char name[REPL_CAPTURE_NAME];
    bool ok = true;
    if (!repl_capture_folder_list(&folder, &w->fs, REPL_MONITOR_ENDING, &w->err))
        return false;
    for (size_t i = 0; ok && i < folder.n && folder.name[i].number <= number; i++) {
        repl_capture_name_put(name, folder.name[i].number, folder.name[i].start,
                              REPL_MONITOR_ENDING);
        ok = repl_capture_unlink(w, name);
    }
    repl_capture_folder_done(&folder);
    return ok;
}

static bool delete_oldest(struct repl_capture_writer *w, const struct capture_kept *kept)
{
    char name[REPL_CAPTURE_NAME];
    /* Readers ignore a snapshot without its segment; opening the capture deletes it. */
    repl_capture_name_put(name, kept->number, kept->start, ".seg");
    if (!repl_capture_unlink(w, name))
        return false;
    repl_capture_name_put(name, kept->number, kept->start, ".rdb");
    return repl_capture_unlink(w, name) && delete_monitors(w, kept->number);
}

bool repl_capture_keep_within(struct repl_capture_writer *w)
{
    size_t n = 0;
    const struct capture_kept *kept = (const struct capture_kept *)(const void *)w->kept.ptr;
    size_t n_kept = w->kept.len / sizeof *kept;
    bool ok = true;
    if (w->opts.max_size == 0)
        return true;
    while (ok && n < n_kept && repl_capture_writer_size(w) > w->opts.max_size) {
        ok = delete_oldest(w, &kept[n]);
        if (ok)
            w->kept_size -= kept[n++].size;
        /* Deletes the oldest first, one by one, so that a power failure leaves no gap. */
        ok = ok &&
             repl_capture_sys(w, w->fs.sync_folder(w->fs.ctx, false), "", "cannot sync the folder");
    }
    if (n > 0) {
        repl_capture_clean_keys(w, kept[n - 1].number + 1);
        w->kept.len -= n * sizeof *kept;
        memmove(w->kept.ptr, w->kept.ptr + n * sizeof *kept, w->kept.len);
    }
    return ok;
}
