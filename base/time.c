#include "base/time.h"

#include <inttypes.h>
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

char *rd_time_put_s(char dst[RD_TIME_MAX], int64_t unix_s)
{
    enum { YEAR_SECONDS = 31556952 };
    if (unix_s >= 0 && unix_s < INT64_C(8000) * YEAR_SECONDS)
        return rd_time_put(dst, unix_s * 1000);
    snprintf(dst, RD_TIME_MAX, "@%" PRId64, unix_s);
    return dst;
}
