#include "base/show.h"

#include "base/err.h"
#include "base/num.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MS = 1000, MINUTE = 60, HOUR = 3600, DAY = 86400 };

struct rd_shown_name rd_show_quote(struct rd_slice bytes)
{
    struct rd_shown_name quoted;
    rd_err_quote(quoted.s, sizeof quoted.s, bytes);
    return quoted;
}

void rd_show_escape(char *dst, size_t size, struct rd_slice bytes)
{
    char *end = strrchr(rd_err_quote(dst, size, bytes), '"'); /* followed by "..." if cut */
    memmove(end, end + 1, strlen(end));
    memmove(dst, dst + 1, strlen(dst));
}

struct rd_shown_name rd_show_plain(struct rd_slice bytes)
{
    struct rd_shown_name plain;
    rd_show_escape(plain.s, sizeof plain.s, bytes);
    return plain;
}

struct rd_shown_name rd_show_sentence(struct rd_slice text)
{
    struct rd_shown_name out;
    rd_err_printable(out.s, sizeof out.s, text);
    return out;
}

const char *rd_show_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

struct rd_shown rd_show_place(uint64_t offset)
{
    struct rd_shown text;
    snprintf(text.s, sizeof text.s, "%" PRIu64 " (0x%" PRIx64 ")", offset, offset);
    return text;
}

struct rd_shown rd_show_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct rd_shown text;
    if (bytes < 1024) {
        snprintf(text.s, sizeof text.s, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
        return text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text.s, sizeof text.s, "%.*f %s", value < 99.95 ? 1 : 0, value, units[unit]);
    return text;
}

struct rd_shown rd_show_count(uint64_t count)
{
    char digits[RD_NUM_I64_MAX];
    size_t n = rd_num_put_u64(digits, count);
    struct rd_shown text;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text.s[len++] = ',';
        text.s[len++] = digits[i];
    }
    text.s[len] = '\0';
    return text;
}

struct rd_shown rd_show_duration(uint64_t ms)
{
    struct rd_shown text;
    uint64_t s = ms / MS;
    if (s < 10)
        snprintf(text.s, sizeof text.s, "%.1f s", (double)ms / (double)MS);
    else if (s < MINUTE)
        snprintf(text.s, sizeof text.s, "%u s", (unsigned)s);
    else if (s < HOUR)
        snprintf(text.s, sizeof text.s, "%u min %u s", (unsigned)(s / MINUTE),
                 (unsigned)(s % MINUTE));
    else if (s < DAY)
        snprintf(text.s, sizeof text.s, "%u h %u min", (unsigned)(s / HOUR),
                 (unsigned)(s % HOUR / MINUTE));
    else
        snprintf(text.s, sizeof text.s, "%llu d %u h", (unsigned long long)(s / DAY),
                 (unsigned)(s % DAY / HOUR));
    return text;
}

struct rd_shown rd_show_time(int64_t unix_ms)
{
    struct rd_shown text;
    rd_time_put(text.s, unix_ms);
    return text;
}
