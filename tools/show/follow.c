/* follow.c - a source over a file that grows.
 */
#include "base/mem.h"
#include "tools/show/show.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 100 };

struct growing {
    struct show_follow *follow;
    int fd;
};

/* Whether the manifest names an incremental file after this one. */
static bool has_later(const struct show_follow *follow)
{
    struct rd_src *src;
    struct aof_manifest m;
    bool later = false;
    if (follow->seq == 0 || !aof_job_open_manifest(follow->job, &src, NULL))
        return false;
    aof_manifest_init(&m);
    if (aof_manifest_read(&m, src, NULL, NULL, NULL)) {
        const struct aof_file *last = aof_manifest_last_incr(&m);
        later = last != NULL && last->seq > follow->seq;
    }
    aof_manifest_done(&m);
    rd_src_close(src);
    return later;
}

void show_follow_pause(void)
{
    const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000L};
    nanosleep(&wait, NULL);
}

void show_follow_wait(struct show_follow *follow)
{
    follow->later = has_later(follow);
    if (!follow->later)
        show_follow_pause();
}

static enum rd_src_status growing_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                       struct rd_err *err)
{
    struct growing *g = impl;
    ssize_t n;
    do
        n = read(g->fd, buf, cap);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        rd_err_sys(err, errno, "read");
        return RD_SRC_FAIL;
    }
    *ret_len = (size_t)n;
    if (n > 0)
        return RD_SRC_OK;
    return g->follow->later ? RD_SRC_END : RD_SRC_MORE;
}

static void growing_close(void *impl)
{
    struct growing *g = impl;
    close(g->fd);
    rd_free(g);
}

static const struct rd_src_ops growing_ops = {growing_read, NULL, growing_close};

/* A file named by a manifest is opened as rd_src_open_file() opens regular files. */
static bool open_growing(int *ret, const char *path, bool listed, struct rd_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (listed ? O_NOFOLLOW | O_NONBLOCK : 0));
    if (fd < 0)
        return rd_err_sys(err, errno, "open");
    if (listed && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "not a regular file");
    }
    *ret = fd;
    return true;
}

bool show_follow_open(struct show_follow *follow, const char *path, bool listed,
                      struct rd_src **ret, struct rd_err *err)
{
    struct growing *g = rd_alloc(sizeof *g);
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = path);
    if (g == NULL)
        return rd_err_nomem(err, sizeof *g);
    follow->later = false;
    *g = (struct growing){.follow = follow};
    if (!open_growing(&g->fd, path, listed, err)) {
        rd_free(g);
        return false;
    }
    return rd_src_new(ret, &growing_ops, g, &opts, err);
}
