#include "backup/spool_file.h"

#include "base/mem.h"

struct file {
    const struct rd_fs *spool;
    int fd;
};

static enum rd_src_status file_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    const struct file *file = impl;
    ssize_t n = file->spool->read(file->spool->ctx, file->fd, buf, cap);
    *ret_len = n > 0 ? (size_t)n : 0;
    if (n < 0)
        rd_err_sys(err, (int)-n, "cannot read");
    return n < 0 ? RD_SRC_FAIL : n == 0 ? RD_SRC_END : RD_SRC_OK;
}

static void file_close(void *impl)
{
    struct file *file = impl;
    file->spool->close(file->spool->ctx, file->fd);
    rd_free(file);
}

bool backup_spool_file_open(struct rd_src **ret, const struct rd_fs *spool, const char *name,
                            const char *origin, struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = file_read, .close = file_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = origin);
    int fd = spool->open(spool->ctx, name, RD_FS_READ);
    if (fd < 0) {
        rd_err_sys(err, -fd, "cannot open");
        rd_err_origin(err, origin);
        return false;
    }
    struct file *file = rd_calloc(1, sizeof *file);
    if (file == NULL) {
        spool->close(spool->ctx, fd);
        return rd_err_nomem(err, sizeof *file);
    }
    *file = (struct file){.spool = spool, .fd = fd};
    return rd_src_new(ret, &ops, file, &opts, err);
}
