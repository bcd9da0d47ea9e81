#include "client/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

void client_secret_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    rd_free(secret);
}

char *client_secret_copy(struct rd_slice secret, struct rd_err *err)
{
    char *copy = rd_alloc(secret.len + 1);
    if (copy == NULL) {
        rd_err_nomem(err, secret.len + 1);
        return NULL;
    }
    if (secret.len > 0)
        memcpy(copy, secret.ptr, secret.len);
    copy[secret.len] = '\0';
    return copy;
}

/* The first line of a file, which may be a pipe. */
static bool read_line(int fd, char *line, size_t size, size_t *ret_len, struct rd_err *err)
{
    size_t len = 0;
    while (memchr(line, '\n', len) == NULL) {
        ssize_t n = len < size ? read(fd, line + len, size - len) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rd_err_sys(err, errno, "cannot read the password");
        if (n == 0 && len == size)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the password is too long");
        if (n == 0)
            break;
        len += (size_t)n;
    }
    const char *end = memchr(line, '\n', len);
    *ret_len = end != NULL ? (size_t)(end - line) : len;
    if (*ret_len > 0 && line[*ret_len - 1] == '\r')
        --*ret_len;
    return true;
}

bool client_secret_read(const char *path, char **ret, struct rd_err *err)
{
    char *line = rd_alloc(CLIENT_SECRET_MAX);
    size_t len = 0;
    if (line == NULL)
        return rd_err_nomem(err, CLIENT_SECRET_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 || rd_err_sys(err, errno, "cannot open");
    ok = ok && read_line(fd, line, CLIENT_SECRET_MAX, &len, err);
    if (fd >= 0)
        close(fd);
    rd_err_origin(err, path);
    char *copy = ok ? client_secret_copy(rd_slice(line, len), err) : NULL;
    explicit_bzero(line, CLIENT_SECRET_MAX);
    rd_free(line);
    if (copy != NULL)
        *ret = copy;
    return copy != NULL;
}
