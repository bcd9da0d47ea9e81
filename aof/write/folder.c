/* The files of a log by name, and the manifest that lists them. */
#include <errno.h>
#include <stdio.h>

#include "aof/write/writer_impl.h"
#include "base/mem.h"

enum { NAME_SIZE = AOF_NAME_MAX + 1 };

bool aof_folder_err(struct rd_err *err, int result, const char *what, const char *name)
{
    char quoted[RD_ERR_TEXT_MAX / 2];
    return rd_err_sys(err, -result, "%s %s", what,
                      rd_err_quote(quoted, sizeof quoted, rd_slice_str(name)));
}

/* ---- a file of the folder as a source ---- */

struct file_src {
    struct rd_fs fs;
    int fd;
};

static enum rd_src_status file_src_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                        struct rd_err *err)
{
    struct file_src *file = impl;
    ssize_t n = file->fs.read(file->fs.ctx, file->fd, buf, cap);
    *ret_len = n > 0 ? (size_t)n : 0;
    if (n < 0)
        rd_err_sys(err, (int)-n, "cannot read");
    return n > 0 ? RD_SRC_OK : n == 0 ? RD_SRC_END : RD_SRC_FAIL;
}

static void file_src_close(void *impl)
{
    struct file_src *file = impl;
    file->fs.close(file->fs.ctx, file->fd);
    rd_free(file);
}

static bool open_src(struct rd_src **ret, const struct rd_fs *fs, int fd, const char *name,
                     struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = file_src_read, .close = file_src_close};
    struct file_src *file = rd_alloc(sizeof *file);
    if (file == NULL) {
        fs->close(fs->ctx, fd);
        return rd_err_nomem(err, sizeof *file);
    }
    *file = (struct file_src){.fs = *fs, .fd = fd};
    return rd_src_new(ret, &ops, file, &RD_SRC_OPTS(.origin = name), err);
}

/* ---- the manifest ---- */

static bool manifest_name(char *dst, const char *before, const char *name, struct rd_err *err)
{
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the name of the log is empty or a path");
    int len = snprintf(dst, NAME_SIZE, "%s%s.manifest", before, name);
    if (len > 0 && len < NAME_SIZE)
        return true;
    return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of the log is too long");
}

bool aof_folder_temp_incr(const struct aof_writer *w, char *dst, struct rd_err *err)
{
    int len = snprintf(dst, NAME_SIZE, "temp-%s.incr", w->name);
    if (len > 0 && len < NAME_SIZE)
        return true;
    return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of the log is too long");
}

bool aof_folder_load(const struct rd_fs *fs, const char *name, struct aof_manifest *ret,
                     struct rd_err *err)
{
    char file[NAME_SIZE];
    aof_manifest_init(ret);
    if (!manifest_name(file, "", name, err))
        return false;
    int fd = fs->open(fs->ctx, file, RD_FS_READ);
    if (fd == -ENOENT)
        return true;
    if (fd < 0)
        return aof_folder_err(err, fd, "cannot open", file);
    struct rd_src *src;
    if (!open_src(&src, fs, fd, file, err))
        return false;
    bool ok = aof_manifest_read(ret, src, NULL, NULL, err);
    if (!ok)
        rd_err_origin(err, file);
    rd_src_close(src);
    return ok;
}

static bool manifest_text(const struct aof_manifest *m, struct rd_buf *text, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!rd_sink_open_buf(&sink, text, NULL, err))
        return false;
    if (!aof_manifest_write(m, sink)) {
        rd_err_adopt(err, rd_sink_err(sink));
        rd_sink_abort(sink);
        return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "no memory for the manifest");
    }
    return rd_sink_close(sink, err);
}

static int write_all(const struct rd_fs *fs, int fd, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = fs->write(fs->ctx, fd, bytes.ptr, bytes.len);
        if (n <= 0)
            return n == 0 ? -EIO : (int)n;
        bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
    }
    return fs->sync(fs->ctx, fd);
}

/* A complete file that is durable except for its name. */
static int write_file(const struct rd_fs *fs, const char *name, struct rd_slice bytes)
{
    int fd = fs->open(fs->ctx, name, RD_FS_CREATE);
    if (fd < 0)
        return fd;
    int result = write_all(fs, fd, bytes);
    int closed = fs->close(fs->ctx, fd);
    return result < 0 ? result : closed;
}

static enum aof_stored store_text(const struct rd_fs *fs, const char *temp, const char *file,
                                  struct rd_slice text, struct rd_err *err)
{
    int result = write_file(fs, temp, text);
    if (result == 0)
        result = fs->rename(fs->ctx, temp, file);
    if (result < 0) {
        fs->unlink(fs->ctx, temp);
        aof_folder_err(err, result, "cannot write", file);
        return AOF_STORED_NOT;
    }
    result = fs->sync_folder(fs->ctx, false);
    if (result == 0)
        return AOF_STORED;
    aof_folder_err(err, result, "cannot sync", file);
    return AOF_STORED_UNSURE;
}

enum aof_stored aof_folder_store(const struct rd_fs *fs, const char *name,
                                 const struct aof_manifest *m, struct rd_err *err)
{
    char file[NAME_SIZE], temp[NAME_SIZE];
    struct rd_buf text = {0};
    enum aof_stored stored = AOF_STORED_NOT;
    if (manifest_name(file, "", name, err) && manifest_name(temp, "temp-", name, err) &&
        manifest_text(m, &text, err))
        stored = store_text(fs, temp, file, rd_buf_slice(&text), err);
    rd_buf_done(&text);
    return stored;
}

/* ---- files ---- */

bool aof_folder_sync_file(const struct rd_fs *fs, const char *name, bool cut, uint64_t cut_to,
                          struct rd_err *err)
{
    int fd = fs->open(fs->ctx, name, RD_FS_APPEND);
    if (fd < 0)
        return aof_folder_err(err, fd, "cannot open", name);
    int result = cut ? fs->truncate(fs->ctx, fd, cut_to) : 0;
    if (result == 0)
        result = fs->sync(fs->ctx, fd);
    fs->close(fs->ctx, fd);
    return result == 0 || aof_folder_err(err, result, "cannot sync", name);
}

bool aof_folder_settle(struct aof_writer *w, struct rd_err *err)
{
    int result = w->fs.sync_folder(w->fs.ctx, false);
    if (result < 0)
        return aof_folder_err(err, result, "cannot sync the folder of", w->name);
    w->folder_pending = w->file_pending = false;
    return true;
}

/* The type of a file before it became history. */
static enum aof_type former_type(const struct aof_file *file, const char *prefix)
{
    uint64_t seq;
    enum aof_type type;
    bool snapshot;
    if (file->type == AOF_HISTORY &&
        aof_file_name_parse(file->name, prefix, &seq, &type, &snapshot))
        return type;
    return file->type;
}

bool aof_folder_next(const struct aof_writer *w, enum aof_type type, bool snapshot, char *dst,
                     struct aof_file *ret, struct rd_err *err)
{
    uint64_t seq = 0;
    for (size_t i = 0; i < aof_manifest_count(&w->manifest); i++) {
        const struct aof_file *file = aof_manifest_file(&w->manifest, i);
        if (former_type(file, w->name) == type && file->seq > seq)
            seq = file->seq;
    }
    if (seq >= INT64_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "no sequence number is left");
    *ret = (struct aof_file){
        .name = dst, .seq = seq + 1, .type = type, .start_offset = -1, .end_offset = -1};
    return aof_file_name(dst, NAME_SIZE, w->name, seq + 1, type, snapshot) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of the log is too long");
}
