#include "capture/clock.h"

#include <time.h>

uint64_t capture_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t capture_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct capture_stamp capture_stamp_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (struct capture_stamp){.boot_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                                  .us = capture_now_us()};
}
