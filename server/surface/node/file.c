/* nodes.conf. The file under its name is complete at any time, and locked: the next version is
 * locked before it gets the name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/loop/log.h"
#include "server/surface/node/node_impl.h"

enum { PATH_LEN = 4096, FILE_MODE = 0644 };

static const char *path_of(const struct node *n)
{
    return n->srv->loop.settings.cluster_config_file;
}

static bool say(struct rd_buf *why, const struct node *n, const char *what, int error)
{
    rd_buf_printf(why, "Can't %s the cluster config file %s: %s", what, path_of(n),
                  strerror(error));
    return false;
}

/* The folder is kept open: CONFIG SET dir moves the server elsewhere. */
static int open_folder(const struct node *n)
{
    char folder[PATH_LEN];
    snprintf(folder, sizeof folder, "%s", path_of(n));
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = 0;
    else if (slash != NULL)
        *slash = 0;
    return open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static const char *name_of(const struct node *n)
{
    const char *slash = strrchr(path_of(n), '/');
    return slash != NULL ? slash + 1 : path_of(n);
}

static bool lock(struct node *n, struct rd_buf *why)
{
    if (flock(n->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno == EWOULDBLOCK)
        rd_buf_printf(why,
                      "Sorry, the cluster configuration file %s is already used by a different "
                      "Redis Cluster node. Please make sure that different nodes use different "
                      "cluster configuration files.",
                      path_of(n));
    else
        say(why, n, "lock", errno);
    return false;
}

static bool read_all(const struct node *n, struct rd_buf *text, struct rd_buf *why)
{
    for (;;) {
        if (!rd_buf_reserve(text, PATH_LEN))
            log_panic("out of memory");
        ssize_t len = read(n->lock_fd, text->ptr + text->len, PATH_LEN);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return say(why, n, "read", errno);
        if (len == 0)
            return true;
        text->len += (size_t)len;
        if (text->len > CLUSTER_CONF_MAX)
            return say(why, n, "read", EFBIG);
    }
}

static bool load(struct node *n, struct rd_slice text, struct rd_buf *why)
{
    struct rd_err err = {0};
    if (text.len == 0) {
        log_notice("No cluster configuration found");
        return true;
    }
    if (cluster_load(n->cluster, text, loop_now_ms(&n->srv->loop), &err)) {
        log_notice("Node configuration loaded, I'm %s", cluster_myself(n->cluster)->id.s);
        return true;
    }
    rd_buf_printf(why,
                  "Unrecoverable error: corrupted cluster config file %s: %s. `redoubt cluster "
                  "nodes-conf` can repair it.",
                  path_of(n), err.text);
    return false;
}

bool node_file_open(struct node *n, struct rd_buf *why)
{
    struct rd_buf text = {0};
    n->dir_fd = open_folder(n);
    if (n->dir_fd < 0)
        return say(why, n, "open the folder of", errno);
    n->lock_fd = openat(n->dir_fd, name_of(n), O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (n->lock_fd < 0)
        return say(why, n, "open", errno);
    bool ok = lock(n, why) && read_all(n, &text, why) && load(n, rd_buf_slice(&text), why);
    rd_buf_done(&text);
    return ok;
}

/* ---- saving ---- */

static bool write_all(int fd, struct rd_slice text)
{
    while (text.len > 0) {
        ssize_t len = write(fd, text.ptr, text.len);
        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return false;
        text = rd_slice(text.ptr + len, text.len - (size_t)len);
    }
    return true;
}

/* -1: errno. */
static int write_new(const struct node *n, const char *name, struct rd_slice text, bool sync)
{
    int fd = openat(n->dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && write_all(fd, text) && (!sync || fsync(fd) == 0) &&
        renameat(n->dir_fd, name, n->dir_fd, name_of(n)) == 0)
        return fd;
    int error = errno;
    unlinkat(n->dir_fd, name, 0);
    close(fd);
    errno = error;
    return -1;
}

bool node_file_save(struct node *n, bool sync)
{
    char name[PATH_LEN];
    struct rd_buf text = {0};
    if (!cluster_write(n->cluster, &text))
        log_panic("out of memory");
    snprintf(name, sizeof name, "%s.tmp-%ld", name_of(n), (long)getpid());
    int fd = write_new(n, name, rd_buf_slice(&text), sync);
    rd_buf_done(&text);
    if (fd < 0) {
        log_warning("Could not save the cluster config file %s: %s", path_of(n), strerror(errno));
        return false;
    }
    close(n->lock_fd);
    n->lock_fd = fd;
    n->unsynced = !sync;
    if (!sync || fsync(n->dir_fd) == 0)
        return true;
    log_warning("Could not sync the folder of the cluster config file: %s", strerror(errno));
    return false;
}

void node_file_sync(struct node *n)
{
    if (n->unsynced && (fsync(n->lock_fd) < 0 || fsync(n->dir_fd) < 0))
        log_warning("Could not sync the cluster config file %s: %s", path_of(n), strerror(errno));
    n->unsynced = false;
}

void node_file_close(struct node *n)
{
    node_file_sync(n);
    if (n->lock_fd >= 0)
        close(n->lock_fd);
    if (n->dir_fd >= 0)
        close(n->dir_fd);
    n->lock_fd = n->dir_fd = -1;
}
