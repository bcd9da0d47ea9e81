/* Loaded into a server before the C library: the clock of the wall stands still and shows what
 * a test wrote into the file REDOUBT_CLOCK, microseconds of unix time as a 64-bit number. So two
 * programs can be compared to the millisecond. Other clocks run on. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shared;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("REDOUBT_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    shared = map;
    close(fd);
}

/* Before the constructor ran there is only the real one. */
static int real(clockid_t clock, struct timespec *ret)
{
    return (int)syscall(SYS_clock_gettime, clock, ret);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (shared == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return real(clock, ret);
    int64_t now_us = *shared;
    ret->tv_sec = now_us / 1000000;
    ret->tv_nsec = now_us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    ret->tv_sec = now.tv_sec;
    ret->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}
