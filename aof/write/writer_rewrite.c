/* Replaces one set of files with the next.
 *
 * Each step changes the folder so that the old set or the new one is whole, whatever of it outlives
 * a crash: contents are durable before names, names before the manifest that uses them.
 */
#include <errno.h>

#include "aof/write/writer_impl.h"

enum { NAME_SIZE = AOF_NAME_MAX + 1 };

static bool copy_type(struct aof_manifest *to, const struct aof_manifest *from, enum aof_type type)
{
    for (size_t i = 0; i < aof_manifest_count(from); i++)
        if (aof_manifest_file(from, i)->type == type &&
            aof_manifest_add(to, aof_manifest_file(from, i)) == NULL)
            return false;
    return true;
}

static bool no_memory(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory for the manifest");
}

/* Replaces the manifest with *next; always takes ownership of it. */
static enum aof_stored take_manifest(struct aof_writer *w, struct aof_manifest *next,
                                     struct rd_err *err)
{
    enum aof_stored stored = aof_folder_store(&w->fs, w->name, next, err);
    if (stored == AOF_STORED_NOT) {
        aof_manifest_done(next);
        return stored;
    }
    aof_manifest_done(&w->manifest);
    w->manifest = *next;
    w->folder_pending = stored == AOF_STORED_UNSURE;
    if (stored == AOF_STORED)
        w->file_pending = false;
    return stored;
}

/* ---- the next incremental file ---- */

static bool with_file(const struct aof_manifest *m, const struct aof_file *file,
                      struct aof_manifest *ret, struct rd_err *err)
{
    aof_manifest_init(ret);
    if (copy_type(ret, m, AOF_BASE) && copy_type(ret, m, AOF_HISTORY) &&
        copy_type(ret, m, AOF_INCR) && aof_manifest_add(ret, file) != NULL)
        return true;
    aof_manifest_done(ret);
    return no_memory(err);
}

static int create(const struct aof_writer *w, const char *name, struct rd_err *err)
{
    int fd = w->fs.open(w->fs.ctx, name, RD_FS_CREATE);
    if (fd < 0) {
        aof_folder_err(err, fd, "cannot create", name);
        return fd;
    }
    int result = w->fs.sync_folder(w->fs.ctx, false);
    if (result == 0)
        return fd;
    aof_folder_err(err, result, "cannot sync", name);
    w->fs.close(w->fs.ctx, fd);
    w->fs.unlink(w->fs.ctx, name);
    return result;
}

static void switch_to(struct aof_writer *w, int fd)
{
    if (w->fd >= 0) {
        w->size_before += w->written + w->shift;
        w->fs.close(w->fs.ctx, w->fd);
    }
    w->fd = fd;
    w->shift = 0 - w->written;
    w->said = (struct aof_said){.db = AOF_DB_NONE, .time_s = AOF_NO_TIME};
}

bool aof_rewrite_next_file(struct aof_writer *w, struct rd_err *err)
{
    char name[NAME_SIZE];
    struct aof_file file;
    struct aof_manifest next;
    if (!aof_folder_next(w, AOF_INCR, false, name, &file, err) ||
        !with_file(&w->manifest, &file, &next, err))
        return false;
    int fd = create(w, name, err);
    if (fd < 0) {
        aof_manifest_done(&next);
        return false;
    }
    struct rd_err why = {0};
    enum aof_stored stored = take_manifest(w, &next, &why);
    if (stored == AOF_STORED_NOT) {
        w->fs.close(w->fs.ctx, fd);
        w->fs.unlink(w->fs.ctx, name);
        rd_err_adopt(err, &why);
        return false;
    }
    switch_to(w, fd);
    if (stored == AOF_STORED_UNSURE) {
        w->file_pending = true;
        aof_flush_sync_failed(w, &why);
    }
    return true;
}

/* ---- a log that is not valid yet ---- */

/* Drops the commands accepted so far: the base will contain their effects. */
static void forget_all(struct aof_writer *w)
{
    uint64_t end = aof_flush_end(w);
    rd_buf_done(&w->buf);
    w->kept = w->whole = w->written = w->durable = end;
    w->shift = 0 - end;
    w->said = (struct aof_said){.db = AOF_DB_NONE, .time_s = AOF_NO_TIME};
    w->doubt = w->sync_failed = w->write_failed = w->dead = false;
    rd_err_reset(&w->err);
}

static void drop_temp_incr(struct aof_writer *w)
{
    char temp[NAME_SIZE];
    if (w->fd < 0)
        return;
    w->fs.close(w->fs.ctx, w->fd);
    w->fd = -1;
    if (aof_folder_temp_incr(w, temp, NULL))
        w->fs.unlink(w->fs.ctx, temp);
    aof_writer_multi_drop(w);
    forget_all(w);
}

static bool begin_fresh(struct aof_writer *w, struct rd_err *err)
{
    char temp[NAME_SIZE];
    drop_temp_incr(w);
    if (w->begin == AOF_WRITER_FRESH) {
        if (!aof_folder_temp_incr(w, temp, err))
            return false;
        int fd = w->fs.open(w->fs.ctx, temp, RD_FS_CREATE);
        if (fd < 0)
            return aof_folder_err(err, fd, "cannot create", temp);
        w->fd = fd;
    }
    forget_all(w);
    w->rewriting = true;
    w->rewrite_seq = UINT64_MAX; /* all previous files become history */
    return true;
}

/* Gives the file of commands its final name and adds it to *next. The name becomes durable with
 * that of the base. */
static bool name_temp_incr(struct aof_writer *w, char *name, struct aof_manifest *next,
                           struct rd_err *err)
{
    char temp[NAME_SIZE];
    struct aof_file file;
    if (!aof_folder_next(w, AOF_INCR, false, name, &file, err) ||
        !aof_folder_temp_incr(w, temp, err))
        return false;
    if (aof_manifest_add(next, &file) == NULL)
        return no_memory(err);
    int result = w->fs.rename(w->fs.ctx, temp, name);
    return result == 0 || aof_folder_err(err, result, "cannot name the file of commands", name);
}

bool aof_writer_rewrite_begin(struct aof_writer *w, struct rd_err *err)
{
    if (w->rewriting || w->in_multi)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a rewrite cannot begin inside %s",
                          w->rewriting ? "another" : "a transaction");
    if (w->syncing)
        return rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "an fsync of the log is running");
    if (w->begin != AOF_WRITER_CONTINUE)
        return begin_fresh(w, err);
    /* A file that is followed by another must be whole even after a crash. */
    if (!aof_writer_flush(w, err) || !aof_writer_sync(w, err) || !aof_rewrite_next_file(w, err))
        return false;
    w->rewriting = true;
    w->rewrite_seq = aof_manifest_last_incr(&w->manifest)->seq;
    return true;
}

/* ---- the new base ---- */

static bool add_as_history(struct aof_manifest *to, const struct aof_file *file)
{
    struct aof_file copy = *file;
    copy.type = AOF_HISTORY;
    return aof_manifest_add(to, &copy) != NULL;
}

/* Old incremental files become history, those of the rewrite stay. */
static bool add_incrs(const struct aof_writer *w, bool old, struct aof_manifest *to)
{
    bool ok = true;
    for (size_t i = 0; ok && i < aof_manifest_count(&w->manifest); i++) {
        const struct aof_file *file = aof_manifest_file(&w->manifest, i);
        if (file->type == AOF_INCR && (file->seq < w->rewrite_seq) == old)
            ok = old ? add_as_history(to, file) : aof_manifest_add(to, file) != NULL;
    }
    return ok;
}

/* As in servers, the newest history comes first. */
static bool with_base(const struct aof_writer *w, const struct aof_file *base,
                      struct aof_manifest *ret, struct rd_err *err)
{
    const struct aof_file *old = aof_manifest_base(&w->manifest);
    aof_manifest_init(ret);
    if (aof_manifest_add(ret, base) != NULL && add_incrs(w, true, ret) &&
        (old == NULL || add_as_history(ret, old)) && copy_type(ret, &w->manifest, AOF_HISTORY) &&
        add_incrs(w, false, ret))
        return true;
    aof_manifest_done(ret);
    return no_memory(err);
}

/* Gives the file `temp` its final name and makes it durable. On failure neither name exists. */
static bool name_base(struct aof_writer *w, const char *temp, const char *name, uint64_t *ret_size,
                      struct rd_err *err)
{
    int result = 0;
    bool ok = aof_folder_sync_file(&w->fs, temp, false, 0, err);
    if (ok)
        ok = (result = w->fs.size(w->fs.ctx, temp, ret_size)) == 0 &&
             (result = w->fs.rename(w->fs.ctx, temp, name)) == 0;
    if (!ok) {
        w->fs.unlink(w->fs.ctx, temp);
        return result == 0 ? false : aof_folder_err(err, result, "cannot name the base", name);
    }
    result = w->fs.sync_folder(w->fs.ctx, false);
    if (result == 0)
        return true;
    w->fs.unlink(w->fs.ctx, name);
    return aof_folder_err(err, result, "cannot sync", name);
}

static void drop_named_incr(const struct aof_writer *w, const char *incr)
{
    if (incr[0] != '\0')
        w->fs.unlink(w->fs.ctx, incr);
}

static bool commit(struct aof_writer *w, const char *temp, bool snapshot, struct rd_err *err)
{
    char name[NAME_SIZE], incr[NAME_SIZE] = "";
    struct aof_file base;
    struct aof_manifest next;
    uint64_t size;
    if (!aof_folder_next(w, AOF_BASE, snapshot, name, &base, err) ||
        !with_base(w, &base, &next, err)) {
        w->fs.unlink(w->fs.ctx, temp);
        return false;
    }
    bool fresh = w->begin == AOF_WRITER_FRESH;
    if ((fresh && !name_temp_incr(w, incr, &next, err)) || !name_base(w, temp, name, &size, err)) {
        w->fs.unlink(w->fs.ctx, temp);
        drop_named_incr(w, incr);
        aof_manifest_done(&next);
        return false;
    }
    struct rd_err why = {0};
    enum aof_stored stored = take_manifest(w, &next, &why);
    if (stored == AOF_STORED_NOT) {
        w->fs.unlink(w->fs.ctx, name);
        drop_named_incr(w, incr);
        rd_err_adopt(err, &why);
        return false;
    }
    /* After a crash the previous log may be valid, which has none of the new commands. */
    if (fresh && stored == AOF_STORED_UNSURE) {
        w->file_pending = true;
        aof_flush_sync_failed(w, &why);
    }
    w->size_before = size;
    return true;
}

bool aof_writer_rewrite_commit(struct aof_writer *w, const char *temp, bool snapshot,
                               struct rd_err *err)
{
    if (!w->rewriting)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no rewrite was begun");
    w->rewriting = false;
    if (!commit(w, temp, snapshot, err)) {
        if (w->begin != AOF_WRITER_CONTINUE)
            drop_temp_incr(w);
        return false;
    }
    if (w->begin == AOF_WRITER_FRESH)
        w->begin = AOF_WRITER_CONTINUE;
    w->size_rewritten = aof_writer_size(w);
    aof_writer_delete_history(w, NULL);
    return true;
}

void aof_writer_rewrite_abort(struct aof_writer *w, const char *temp)
{
    w->rewriting = false;
    if (w->begin != AOF_WRITER_CONTINUE)
        drop_temp_incr(w);
    if (temp != NULL)
        w->fs.unlink(w->fs.ctx, temp);
}

bool aof_writer_rewriting(const struct aof_writer *w)
{
    return w->rewriting;
}

/* ---- history ---- */

/* Files that still exist are added to *ret, and *err has the reason. */
static void unlink_history(struct aof_writer *w, struct aof_manifest *ret, struct rd_err *err)
{
    for (size_t i = 0; i < aof_manifest_count(&w->manifest); i++) {
        const struct aof_file *file = aof_manifest_file(&w->manifest, i);
        int result = file->type == AOF_HISTORY ? w->fs.unlink(w->fs.ctx, file->name) : 0;
        if (result == 0 || result == -ENOENT)
            continue;
        aof_folder_err(err, result, "cannot delete", file->name);
        if (aof_manifest_add(ret, file) == NULL) {
            rd_err_reset(err);
            no_memory(err);
            return;
        }
    }
}

static bool has_history(const struct aof_manifest *m)
{
    for (size_t i = 0; i < aof_manifest_count(m); i++)
        if (aof_manifest_file(m, i)->type == AOF_HISTORY)
            return true;
    return false;
}

bool aof_writer_delete_history(struct aof_writer *w, struct rd_err *err)
{
    if (!has_history(&w->manifest))
        return true;
    if (w->folder_pending && !aof_folder_settle(w, err))
        return false;
    struct aof_manifest next;
    struct rd_err why = {0};
    aof_manifest_init(&next);
    if (copy_type(&next, &w->manifest, AOF_BASE))
        unlink_history(w, &next, &why);
    else
        no_memory(&why);
    bool known =
        why.code != RD_ERR_MEMORY && (copy_type(&next, &w->manifest, AOF_INCR) || no_memory(&why));
    /* A name that reappears after a crash must still be in the manifest. */
    if (known && aof_folder_settle(w, &why))
        take_manifest(w, &next, &why);
    else
        aof_manifest_done(&next);
    rd_err_adopt(err, &why);
    return why.code == RD_ERR_OK;
}
