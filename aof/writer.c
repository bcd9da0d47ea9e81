#include "aof/writer.h"

#include <errno.h>
#include <stdio.h>

#include "aof/write/writer_impl.h"
#include "base/mem.h"

static const char default_name[] = "appendonly.aof";

/* ---- opening ---- */

static bool file_size(const struct aof_writer *w, const char *name, uint64_t *ret,
                      struct rd_err *err)
{
    int result = w->fs.size(w->fs.ctx, name, ret);
    return result == 0 || aof_folder_err(err, result, "cannot find", name);
}

static bool measure(struct aof_writer *w, struct rd_err *err)
{
    for (size_t i = 0; i < aof_manifest_count(&w->manifest); i++) {
        const struct aof_file *file = aof_manifest_file(&w->manifest, i);
        uint64_t size;
        if (file->type == AOF_HISTORY)
            continue;
        if (!file_size(w, file->name, &size, err))
            return false;
        w->size_before += size;
        if (file->type == AOF_BASE)
            w->size_rewritten = size;
    }
    return true;
}

/* Truncates the torn end of the last file. A base without a file after it will get one soon, so it
 * is made durable. */
static bool settle_last(struct aof_writer *w, const struct aof_writer_opts *opts,
                        struct rd_err *err)
{
    const struct aof_file *incr = aof_manifest_last_incr(&w->manifest);
    const struct aof_file *last = incr != NULL ? incr : aof_manifest_base(&w->manifest);
    uint64_t size;
    if (last == NULL)
        return true;
    if (!file_size(w, last->name, &size, err))
        return false;
    if (opts->cut && size < opts->cut_to) {
        rd_err_set(err, RD_ERR_CORRUPT, size, "the file ends before byte %llu",
                   (unsigned long long)opts->cut_to);
        rd_err_origin(err, last->name);
        return false;
    }
    bool cut = opts->cut && size > opts->cut_to;
    return (!cut && last == incr) ||
           aof_folder_sync_file(&w->fs, last->name, cut, opts->cut_to, err);
}

/* Redis 8 records where a file ended at a regular shutdown; that becomes outdated soon. */
static bool reset_end(struct aof_writer *w, struct rd_err *err)
{
    for (size_t i = aof_manifest_count(&w->manifest); i-- > 0;) {
        struct aof_file *file = aof_manifest_file(&w->manifest, i);
        if (file->type != AOF_INCR)
            continue;
        if (file->end_offset < 0)
            return true;
        file->end_offset = -1;
        return aof_folder_store(&w->fs, w->name, &w->manifest, err) == AOF_STORED;
    }
    return true;
}

static bool continue_last(struct aof_writer *w, struct rd_err *err)
{
    const struct aof_file *last = aof_manifest_last_incr(&w->manifest);
    if (last == NULL)
        return aof_rewrite_next_file(w, err) &&
               (!w->sync_failed || (rd_err_adopt(err, &w->err), false));
    if (!file_size(w, last->name, &w->shift, err))
        return false;
    w->fd = w->fs.open(w->fs.ctx, last->name, RD_FS_APPEND);
    if (w->fd < 0)
        return aof_folder_err(err, w->fd, "cannot open", last->name);
    w->size_before -= w->shift;
    return reset_end(w, err);
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = rd_alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

static bool take_over(struct aof_writer *w, const struct aof_writer_opts *opts, struct rd_err *err)
{
    if (!aof_folder_load(&w->fs, w->name, &w->manifest, err))
        return false;
    /* A writer that was killed may have left names that are not durable yet. */
    if (!aof_folder_settle(w, err))
        return false;
    if (w->begin != AOF_WRITER_CONTINUE)
        return true;
    if (!settle_last(w, opts, err) || !measure(w, err) || !continue_last(w, err))
        return false;
    aof_writer_delete_history(w, NULL);
    return true;
}

bool aof_writer_open(struct aof_writer **ret, const struct rd_fs *fs,
                     const struct aof_writer_opts *opts, struct rd_err *err)
{
    struct aof_writer *w = rd_alloc(sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    *w = (struct aof_writer){
        .fs = *fs,
        .name = copy_text(opts->name != NULL ? opts->name : default_name),
        .fsync = opts->fsync,
        .begin = opts->begin,
        .timestamps = opts->timestamps,
        .fd = -1,
        .said = {.db = AOF_DB_NONE, .time_s = AOF_NO_TIME},
    };
    aof_manifest_init(&w->manifest);
    bool ok = w->name != NULL ? take_over(w, opts, err)
                              : rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory for a log");
    if (!ok) {
        aof_writer_abort(w);
        return false;
    }
    *ret = w;
    return true;
}

/* ---- a log from before 7.0 ---- */

static bool upgrade_manifest(const struct rd_fs *fs, const char *name, struct rd_err *err)
{
    struct aof_manifest m;
    aof_manifest_init(&m);
    char *copy = copy_text(name);
    struct aof_file base = {
        .name = copy, .seq = 1, .type = AOF_BASE, .start_offset = -1, .end_offset = -1};
    bool ok = copy != NULL && aof_manifest_add(&m, &base) != NULL;
    ok = ok ? aof_folder_store(fs, name, &m, err) == AOF_STORED
            : rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory for the manifest");
    rd_free(copy);
    aof_manifest_done(&m);
    return ok;
}

/* A log in the folder can only be the result of an incomplete upgrade. */
static bool upgrade_due(const struct rd_fs *fs, const char *name, bool *ret, bool *ret_begun,
                        struct rd_err *err)
{
    struct aof_manifest m;
    uint64_t size;
    *ret = *ret_begun = false;
    if (!aof_folder_load(fs, name, &m, err)) {
        aof_manifest_done(&m);
        return false;
    }
    int found = fs->size(fs->ctx, name, &size);
    *ret_begun = aof_manifest_count(&m) == 1 && aof_manifest_file(&m, 0)->type == AOF_BASE &&
                 strcmp(aof_manifest_file(&m, 0)->name, name) == 0 && found == -ENOENT;
    *ret = aof_manifest_count(&m) == 0 || *ret_begun;
    aof_manifest_done(&m);
    return true;
}

static int adopt(const struct rd_fs *fs, const char *name)
{
    int result = fs->adopt(fs->ctx, name);
    if (result == 0)
        result = fs->sync_folder(fs->ctx, false);
    return result == 0 ? fs->sync_folder(fs->ctx, true) : result;
}

bool aof_writer_upgrade(const struct rd_fs *fs, const char *name, struct rd_err *err)
{
    bool due, begun;
    if (name == NULL)
        name = default_name;
    int found = fs->outside != NULL ? fs->outside(fs->ctx, name) : 0;
    if (found < 0 && found != -ELOOP)
        return aof_folder_err(err, found, "cannot look for", name);
    if (found == 0)
        return true;
    if (!upgrade_due(fs, name, &due, &begun, err))
        return false;
    if (!due)
        return true;
    if (found == -ELOOP)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                          "\"%s\" is a symbolic link; only regular files are moved", name);
    if (!begun && !upgrade_manifest(fs, name, err))
        return false;
    int result = adopt(fs, name);
    return result == 0 || aof_folder_err(err, result, "cannot move into the folder", name);
}

/* ---- other functions ---- */

bool aof_writer_close(struct aof_writer *w, struct rd_err *err)
{
    aof_writer_multi_drop(w);
    if (w->begin != AOF_WRITER_CONTINUE) {
        aof_writer_rewrite_abort(w, NULL);
        aof_writer_abort(w);
        return true;
    }
    bool ok = aof_writer_flush(w, err) && aof_writer_sync(w, err);
    aof_writer_abort(w);
    return ok;
}

void aof_writer_abort(struct aof_writer *w)
{
    if (w == NULL)
        return;
    if (w->fd >= 0)
        w->fs.close(w->fs.ctx, w->fd);
    aof_manifest_done(&w->manifest);
    rd_buf_done(&w->buf);
    rd_free(w->name);
    rd_free(w);
}

uint64_t aof_writer_appended(const struct aof_writer *w)
{
    return aof_flush_end(w);
}

uint64_t aof_writer_written(const struct aof_writer *w)
{
    return w->whole;
}

uint64_t aof_writer_durable(const struct aof_writer *w)
{
    return w->durable;
}

size_t aof_writer_kept(const struct aof_writer *w)
{
    return w->buf.len;
}

enum aof_writer_state aof_writer_state(const struct aof_writer *w)
{
    if (w->dead)
        return AOF_WRITER_DEAD;
    if (w->sync_failed)
        return AOF_WRITER_SYNC_FAILED;
    if (w->written != w->whole)
        return AOF_WRITER_TORN;
    return w->write_failed ? AOF_WRITER_WRITE_FAILED : AOF_WRITER_OK;
}

const struct rd_err *aof_writer_err(const struct aof_writer *w)
{
    return &w->err;
}

void aof_writer_set_fsync(struct aof_writer *w, enum aof_fsync fsync)
{
    w->fsync = fsync;
}

void aof_writer_set_timestamps(struct aof_writer *w, bool timestamps)
{
    w->timestamps = timestamps;
}

uint64_t aof_writer_size(const struct aof_writer *w)
{
    return w->size_before + w->written + w->shift;
}

uint64_t aof_writer_size_rewritten(const struct aof_writer *w)
{
    return w->size_rewritten;
}

const struct aof_manifest *aof_writer_manifest(const struct aof_writer *w)
{
    return &w->manifest;
}
