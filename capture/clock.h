/* clock.h - the clocks of a capture. clock.c is the one place of this library that reads one.
 *
 *     uint64_t end_ms = capture_now_ms() + 500;
 *
 * Threads: any. Errors: none.
 */
#ifndef CAPTURE_CLOCK_H
#define CAPTURE_CLOCK_H

#include <stdint.h>

/* A clock that is never set, in milliseconds. */
uint64_t capture_now_ms(void);
/* Unix time in microseconds. */
int64_t capture_now_us(void);

struct capture_stamp {
    int64_t boot_us; /* a clock that is never set, and also counts while the machine is suspended */
    int64_t us;      /* Unix time */
};

struct capture_stamp capture_stamp_now(void);

static inline void capture_sooner(uint64_t *wait_ms, uint64_t ms)
{
    if (ms < *wait_ms)
        *wait_ms = ms;
}

#endif
