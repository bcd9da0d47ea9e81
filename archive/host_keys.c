#include "archive/host_keys.h"

#include "base/pump.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* HOSTS TYPE KEY [COMMENT], possibly with a mark before. No other field begins in this way. */
static bool comes_last(struct rd_slice line)
{
    static const char *const types[] = {" ssh-rsa ", " ssh-dss "};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (memmem(line.ptr, line.len, types[i], strlen(types[i])) != NULL)
            return true;
    return false;
}

/* Adds the lines of one kind, each with a line feed. */
static bool add_lines(struct rd_buf *ret, struct rd_slice text, bool last)
{
    bool ok = true;
    while (ok && text.len > 0) {
        const uint8_t *lf = memchr(text.ptr, '\n', text.len);
        struct rd_slice line = rd_slice(text.ptr, lf != NULL ? (size_t)(lf - text.ptr) : text.len);
        size_t used = line.len + (lf != NULL);
        if (comes_last(line) == last)
            ok = rd_buf_add(ret, line.ptr, line.len) && rd_buf_add_byte(ret, '\n');
        text = rd_slice(text.ptr + used, text.len - used);
    }
    return ok;
}

static bool sort(const char *known_hosts, struct rd_buf *ret)
{
    struct rd_buf text = {0};
    struct rd_src *src;
    if (!rd_src_open_file(&src, known_hosts, NULL, NULL))
        return false;
    bool ok = rd_pump_to_buf(src, ARCHIVE_HOST_KEYS_MAX, &text, NULL) &&
              add_lines(ret, rd_buf_slice(&text), false) &&
              add_lines(ret, rd_buf_slice(&text), true);
    rd_src_close(src);
    rd_buf_done(&text);
    return ok;
}

static bool write_all(int fd, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
    }
    return true;
}

int archive_host_keys_open(const char *known_hosts, char ret_path[ARCHIVE_HOST_KEYS_PATH])
{
    struct rd_buf sorted = {0};
    int fd = sort(known_hosts, &sorted) ? memfd_create("host-keys", MFD_CLOEXEC) : -1;
    if (fd >= 0) {
        snprintf(ret_path, ARCHIVE_HOST_KEYS_PATH, "/proc/self/fd/%d", fd);
        if (!write_all(fd, rd_buf_slice(&sorted)) || access(ret_path, R_OK) != 0) {
            close(fd);
            fd = -1;
        }
    }
    rd_buf_done(&sorted);
    return fd;
}
