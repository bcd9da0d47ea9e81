#include "base/src_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sized.h"

struct file {
    int fd;
    bool own;
    uint64_t base; /* position of fd at opening: offset 0 of the stream */
    /* Of a source that was opened again: */
    uint64_t at;  /* its own position in the file */
    uint64_t end; /* where it is to end */
};

static enum rd_src_status file_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct file *file = impl;
    ssize_t n;
    do {
        n = read(file->fd, buf, cap);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        *ret_len = (size_t)n;
        return RD_SRC_OK;
    }
    if (n == 0)
        return RD_SRC_END;
    if (errno == EAGAIN)
        return RD_SRC_MORE;
    rd_err_sys(err, errno, "cannot read");
    return RD_SRC_FAIL;
}

static bool file_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct file *file = impl;
    if (offset > INT64_MAX - file->base)
        return rd_err_sys(err, EOVERFLOW, "cannot seek");
    if (lseek(file->fd, (off_t)(file->base + offset), SEEK_SET) < 0)
        return rd_err_sys(err, errno, "cannot seek");
    return true;
}

static void file_close(void *impl)
{
    struct file *file = impl;
    if (file->own)
        close(file->fd);
    rd_free(file);
}

static const struct rd_src_ops stream_ops = {file_read, NULL, file_close};
static const struct rd_src_ops file_ops = {file_read, file_seek, file_close};

/* The size of a regular file from its position on. Files of /proc have the size 0 and contents. */
static void measure(const struct file *file, off_t size, struct rd_src_opts *opts)
{
    uint8_t first;
    if (opts->total != 0 || opts->sized || (size == 0 && pread(file->fd, &first, 1, 0) != 0))
        return;
    opts->total = (uint64_t)size > file->base ? (uint64_t)size - file->base : 0;
    opts->sized = true;
}

/* Determines what fd is. A regular file has a size and can seek. */
static const struct rd_src_ops *look_at(struct file *file, struct rd_src_opts *opts)
{
    struct stat st;
    off_t base = lseek(file->fd, 0, SEEK_CUR);
    if (base < 0 || fstat(file->fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
        return &stream_ops;
    file->base = (uint64_t)base;
    if (S_ISREG(st.st_mode)) {
        measure(file, st.st_size, opts);
        posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return &file_ops;
}

/* ---- again: the position is ours, not the descriptor's ---- */

static enum rd_src_status again_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct file *file = impl;
    ssize_t n;
    if (cap > file->end - file->at)
        cap = (size_t)(file->end - file->at);
    do {
        n = pread(file->fd, buf, cap, (off_t)file->at);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        rd_err_sys(err, errno, "cannot read");
        return RD_SRC_FAIL;
    }
    file->at += (size_t)n;
    *ret_len = (size_t)n;
    return n > 0 ? RD_SRC_OK : RD_SRC_END;
}

static bool again_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct file *file = impl;
    if (offset > INT64_MAX - file->base)
        return rd_err_sys(err, EOVERFLOW, "cannot seek");
    file->at = file->base + offset;
    if (file->end < file->at)
        file->end = INT64_MAX;
    return true;
}

static const struct rd_src_ops again_ops = {again_read, again_seek, file_close};

bool rd_src_can_open_again(const struct rd_src *src)
{
    return src->state->ops == &file_ops || src->state->ops == &again_ops;
}

bool rd_src_open_again(struct rd_src **ret, const struct rd_src *src, struct rd_err *err)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.window = src->state->cap, .origin = src->state->origin,
                                          .total = src->state->size, .sized = true);
    if (!rd_src_can_open_again(src)) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "cannot be read twice");
        rd_err_origin(err, src->state->origin);
        return false;
    }
    const struct file *of = src->state->impl;
    struct file *file = rd_alloc(sizeof *file);
    if (file == NULL) {
        rd_err_nomem(err, sizeof *file);
        rd_err_origin(err, src->state->origin);
        return false;
    }
    *file = (struct file){.fd = of->fd, .base = of->base, .at = of->base, .end = INT64_MAX};
    return rd_src_new(ret, &again_ops, file, &opts, err);
}

bool rd_src_again_range(struct rd_src *src, uint64_t from, uint64_t to, struct rd_err *err)
{
    struct file *file = src->state->impl;
    assert(src->state->ops == &again_ops);
    file->end = to > INT64_MAX - file->base ? INT64_MAX : file->base + to;
    return rd_src_seek(src, from, err);
}

bool rd_src_open_fd(struct rd_src **ret, int fd, bool own, const struct rd_src_opts *opts,
                    struct rd_err *err)
{
    struct rd_src_opts known;
    bool ok = rd_sized_copy(&known, sizeof known, opts, err);
    struct file *file = ok ? rd_alloc(sizeof *file) : NULL;
    if (file == NULL) {
        if (own)
            close(fd);
        if (ok)
            rd_err_nomem(err, sizeof *file);
        rd_err_origin(err, known.origin);
        return false;
    }
    *file = (struct file){.fd = fd, .own = own};
    const struct rd_src_ops *ops = look_at(file, &known);
    return rd_src_new(ret, ops, file, &known, err);
}

/* Opens a path for reading. A folder can be opened but not read: this is reported at once. */
static bool open_path(int *ret, const char *path, bool regular, struct rd_err *err)
{
    struct stat st;
    int more = regular ? O_NOFOLLOW | O_NONBLOCK : 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | more);
    int sys = fd < 0 ? errno : fstat(fd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    bool other = sys == ELOOP || (sys == 0 && !S_ISREG(st.st_mode));
    if (fd >= 0 && (sys != 0 || (regular && other)))
        close(fd);
    if (regular && other)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "%s; only regular files are opened here",
                          sys == ELOOP ? "this is a symbolic link" : "this is not a regular file");
    if (sys != 0)
        return rd_err_sys(err, sys, "cannot open");
    *ret = fd;
    return true;
}

/* The file descriptor of a path and the options with a name for it. */
static bool open_named(int *ret_fd, bool *ret_own, const char *path, struct rd_src_opts *opts,
                       struct rd_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = STDIN_FILENO;
    if (opts->origin == NULL)
        opts->origin = is_stdin ? "standard input" : path;
    if (!is_stdin && !open_path(&fd, path, opts->regular, err)) {
        rd_err_origin(err, opts->origin);
        return false;
    }
    *ret_fd = fd;
    *ret_own = !is_stdin;
    return true;
}

bool rd_src_open_file(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                      struct rd_err *err)
{
    struct rd_src_opts named;
    int fd;
    bool own;
    return rd_sized_copy(&named, sizeof named, opts, err) &&
           open_named(&fd, &own, path, &named, err) && rd_src_open_fd(ret, fd, own, &named, err);
}

struct map {
    void *ptr;
    size_t len;
};

static void map_close(void *impl)
{
    struct map *map = impl;
    munmap(map->ptr, map->len);
    rd_free(map);
}

static const struct rd_src_ops map_ops = {.close = map_close};

/* Makes a memory source of a mapping that it unmaps when it is closed. */
static bool open_mapping(struct rd_src **ret, struct map mapping, const struct rd_src_opts *opts,
                         struct rd_err *err)
{
    struct rd_src *src = NULL;
    struct map *map = rd_alloc(sizeof *map);
    if (map == NULL) {
        rd_err_nomem(err, sizeof *map);
        rd_err_origin(err, opts->origin);
    }
    if (map == NULL || !rd_src_open_memory(&src, rd_slice(mapping.ptr, mapping.len), opts, err)) {
        rd_free(map);
        munmap(mapping.ptr, mapping.len);
        return false;
    }
    *map = mapping;
    src->state->ops = &map_ops;
    src->state->impl = map;
    *ret = src;
    return true;
}

bool rd_src_open_map(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                     struct rd_err *err)
{
    struct rd_src_opts named;
    struct stat st;
    int fd;
    bool own;
    if (!rd_sized_copy(&named, sizeof named, opts, err) ||
        !open_named(&fd, &own, path, &named, err))
        return false;
    /* A file with size 0 may still have contents (/proc). */
    if (!own || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return rd_src_open_fd(ret, fd, own, &named, err);

    struct map map = {.len = (size_t)st.st_size};
    map.ptr = mmap(NULL, map.len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map.ptr == MAP_FAILED)
        return rd_src_open_fd(ret, fd, own, &named, err);
    close(fd);
    madvise(map.ptr, map.len, MADV_SEQUENTIAL);
    return open_mapping(ret, map, &named, err);
}
