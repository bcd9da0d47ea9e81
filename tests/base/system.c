#include "tests/base/system.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct system_fault system_fsync;
struct system_fault system_fchmod;
struct system_fault system_fdopendir;
int system_renameat2;
long system_processors;
atomic_size_t system_populated;

static bool fails(struct system_fault *fault)
{
    if (--fault->left != 0)
        return false;
    errno = fault->sys;
    return true;
}

bool system_no_tmpfile;

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (system_no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
    if (flags != 0 && system_renameat2 != 0) {
        errno = system_renameat2;
        return -1;
    }
    return (int)syscall(SYS_renameat2, old_dir, old, new_dir, new, flags);
}

int fsync(int fd)
{
    return fails(&system_fsync) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fchmod(int fd, mode_t mode)
{
    return fails(&system_fchmod) ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

DIR *fdopendir(int fd)
{
    DIR *(*real)(int fd);
    void *found = dlsym(RTLD_NEXT, "fdopendir");
    memcpy(&real, &found, sizeof real);
    return fails(&system_fdopendir) ? NULL : real(fd);
}

int madvise(void *ptr, size_t len, int advice)
{
    if (advice == MADV_POPULATE_WRITE)
        atomic_fetch_add(&system_populated, len);
    return (int)syscall(SYS_madvise, ptr, len, advice);
}

/* The C library's own name for it: this is called before any other can be looked up. */
extern long __sysconf(int name);

/* ThreadSanitizer asks for the size of a page before it is ready for instrumented code. */
__attribute__((no_sanitize_thread)) long sysconf(int name)
{
    return system_processors != 0 && name == _SC_NPROCESSORS_ONLN ? system_processors
                                                                  : __sysconf(name);
}
