#include "base/time.h"

#include <stdio.h>
#include <time.h>

char *rd_time_put(char dst[RD_TIME_MAX], int64_t unix_ms)
{
    enum { MS = 1000 };
    int64_t part = unix_ms % MS;
    if (part < 0)
        part += MS;
    time_t s = (time_t)((unix_ms - part) / MS);
    struct tm tm;
    size_t len = 0;
    if (gmtime_r(&s, &tm) != NULL)
        len = strftime(dst, RD_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    if (part == 0)
        snprintf(dst + len, RD_TIME_MAX - len, "Z");
    else
        snprintf(dst + len, RD_TIME_MAX - len, ".%03dZ", (int)part);
    return dst;
}
