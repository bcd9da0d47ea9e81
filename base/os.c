#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef RD_OS_PORTABLE /* the tests of what is there for other systems */
#undef RD_HAVE_MALLINFO2
#undef RD_HAVE_EXECINFO
#endif

#ifdef RD_HAVE_EXECINFO
#include <execinfo.h>
#endif

#if defined(RD_STATIC) && defined(__GLIBC__)
#include <nss.h>
#define RD_STATIC_GLIBC
#endif

int rd_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
#if defined(SYS_renameat2) && !defined(RD_OS_PORTABLE)
    enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE of linux/fs.h */
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, NO_REPLACE);
#else
    (void)from_dir, (void)from, (void)to_dir, (void)to;
    errno = ENOSYS;
    return -1;
#endif
}

void rd_close_range(unsigned low, unsigned high)
{
    enum { FIRST = 1 << 16 };
    if (low > high)
        return;
#if defined(SYS_close_range) && !defined(RD_OS_PORTABLE)
    if (syscall(SYS_close_range, low, high, 0) == 0)
        return;
#endif
    for (unsigned fd = low; fd <= high && fd < FIRST; fd++)
        close((int)fd);
}

void rd_prefer_huge_pages(void *ptr, size_t len)
{
#if defined(MADV_HUGEPAGE) && !defined(RD_OS_PORTABLE)
    enum { SMALL_PAGE = 1 << 16 }; /* the largest that Linux uses as its ordinary size */
    size_t skip = -(uintptr_t)ptr & (SMALL_PAGE - 1);
    if (len > skip)
        madvise((uint8_t *)ptr + skip, len - skip, MADV_HUGEPAGE);
#else
    (void)ptr, (void)len;
#endif
}

struct rd_heap rd_heap(void)
{
#ifdef RD_HAVE_MALLINFO2
    struct mallinfo2 info = mallinfo2();
    return (struct rd_heap){.used = info.uordblks,
                            .free = info.fordblks,
                            .trimmable = info.keepcost,
                            .mapped = info.hblkhd,
                            .n_mapped = info.hblks};
#else
    return (struct rd_heap){0};
#endif
}

void rd_heap_trim(size_t keep)
{
#if defined(__GLIBC__) && !defined(RD_OS_PORTABLE)
    malloc_trim(keep);
#else
    (void)keep;
#endif
}

bool rd_heap_set_growth(size_t bytes)
{
#if defined(M_TOP_PAD) && !defined(RD_OS_PORTABLE)
    mallopt(M_TOP_PAD, (int)bytes); /* allocators that replace glibc's ignore it */
    return true;
#else
    (void)bytes;
    return false;
#endif
}

int rd_stack(void **frames, int max)
{
#ifdef RD_HAVE_EXECINFO
    return backtrace(frames, max);
#else
    (void)frames, (void)max;
    return 0;
#endif
}

void rd_stack_write(void *const *frames, int n, int fd)
{
#ifdef RD_HAVE_EXECINFO
    backtrace_symbols_fd(frames, n, fd);
#else
    for (int i = 0; i < n; i++)
        dprintf(fd, "[%p]\n", frames[i]);
#endif
}

void rd_os_begin(void)
{
#ifdef RD_STATIC_GLIBC
    static const char *const of_files[] = {"group", "passwd", "protocols", "services"};
    __nss_configure_lookup("hosts", "files dns");
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        __nss_configure_lookup(of_files[i], "files");
#endif
}
