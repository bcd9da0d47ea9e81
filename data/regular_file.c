#include "data/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_file_open(const char *path, struct rd_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int sys = fd < 0 || fstat(fd, &st) != 0 ? errno : 0;
    if (sys == 0 && S_ISREG(st.st_mode))
        return fd;
    if (sys == 0 || sys == ELOOP)
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "it is not a regular file");
    else
        rd_err_sys(err, sys, "cannot open the file");
    rd_err_origin(err, path);
    if (fd >= 0)
        close(fd);
    return -1;
}
