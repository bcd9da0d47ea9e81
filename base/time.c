#include "base/time.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { MS = 1000, MINUTE = 60, HOUR = 3600, DAY = 86400, WEEK = 7 * DAY };

/* Unix times from this number on are milliseconds; as seconds it would be the year 5138. */
static const int64_t first_ms = INT64_C(100000000000);

/* Beyond this many seconds from the epoch, milliseconds do not fit. */
static const int64_t most_seconds = INT64_MAX / MS;

char *rd_time_put(char dst[RD_TIME_MAX], int64_t unix_ms)
{
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

/* ---- reading ---- */

/* Parses exactly n digits at *text and moves *text after them. */
static bool get_digits(const char **text, int n, int *ret)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        char c = (*text)[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *text += n;
    *ret = value;
    return true;
}

static bool get_char(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* YYYY-MM-DD */
static bool get_date(const char **text, struct tm *tm)
{
    int year, month, day;
    if (!get_digits(text, 4, &year) || !get_char(text, '-') || !get_digits(text, 2, &month) ||
        !get_char(text, '-') || !get_digits(text, 2, &day))
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* A fraction of a second in milliseconds; further digits are ignored. */
static bool get_fraction(const char **text, int *ret_ms)
{
    int ms = 0, scale = 100, n = 0;
    for (; **text >= '0' && **text <= '9'; ++*text, n++) {
        ms += (**text - '0') * scale;
        scale /= 10;
    }
    *ret_ms = ms;
    return n > 0;
}

/* HH:MM[:SS[.fraction]] */
static bool get_clock(const char **text, struct tm *tm, int *ret_ms)
{
    *ret_ms = 0;
    if (!get_digits(text, 2, &tm->tm_hour) || !get_char(text, ':') ||
        !get_digits(text, 2, &tm->tm_min))
        return false;
    if (get_char(text, ':')) {
        if (!get_digits(text, 2, &tm->tm_sec))
            return false;
        if (get_char(text, '.') && !get_fraction(text, ret_ms))
            return false;
    }
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* An empty string, Z, +HH:MM or -HH:MM, as seconds east of UTC. */
static bool get_zone(const char **text, int *ret_s)
{
    *ret_s = 0;
    if (**text == '\0' || get_char(text, 'Z') || get_char(text, 'z'))
        return true;
    int sign = **text == '-' ? -1 : 1;
    int hours, minutes;
    if (!get_char(text, '+') && !get_char(text, '-'))
        return false;
    if (!get_digits(text, 2, &hours) || !get_char(text, ':') || !get_digits(text, 2, &minutes))
        return false;
    *ret_s = sign * (hours * HOUR + minutes * MINUTE);
    return hours < 24 && minutes < 60;
}

static bool get_rfc3339(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0};
    int ms = 0, zone = 0;
    if (!get_date(&text, &tm))
        return false;
    struct tm date = tm; /* timegm() changes April 31 to May 1 */
    timegm(&date);
    if (date.tm_mday != tm.tm_mday)
        return false;
    if (get_char(&text, 'T') || get_char(&text, 't') || get_char(&text, ' ')) {
        if (!get_clock(&text, &tm, &ms) || !get_zone(&text, &zone))
            return false;
    }
    if (*text != '\0')
        return false;
    *ret_ms = ((int64_t)timegm(&tm) - zone) * MS + ms;
    return true;
}

/* HH:MM[:SS] and a zone: the last such time before now. */
static bool get_time_of_day(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    struct tm tm = {0};
    int ms = 0, zone = 0;
    if (!get_clock(&text, &tm, &ms) || !get_zone(&text, &zone) || *text != '\0')
        return false;
    int64_t day = (int64_t)DAY * MS, there = now_ms + (int64_t)zone * MS;
    int64_t clock = ((int64_t)tm.tm_hour * HOUR + tm.tm_min * MINUTE + tm.tm_sec) * MS + ms;
    int64_t passed = (there % day + day) % day;
    *ret_ms = now_ms - passed + clock - (clock > passed ? day : 0);
    return true;
}

static int64_t unit_seconds(char unit)
{
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return MINUTE;
    case 'h':
        return HOUR;
    case 'd':
        return DAY;
    case 'w':
        return WEEK;
    default:
        return 0;
    }
}

/* 2h30m: numbers with units. */
static bool get_span(const char *text, int64_t *ret_s)
{
    int64_t sum = 0;
    if (*text == '\0')
        return false;
    while (*text != '\0') {
        const char *digits = text;
        while (*text >= '0' && *text <= '9')
            text++;
        uint64_t n;
        int64_t unit = unit_seconds(*text);
        if (unit == 0 || !rd_num_get_u64(rd_slice(digits, (size_t)(text - digits)), &n))
            return false;
        if (n > (uint64_t)((most_seconds - sum) / unit))
            return false;
        sum += (int64_t)n * unit;
        text++;
    }
    *ret_s = sum;
    return true;
}

bool rd_time_get_span(const char *text, uint64_t *ret_ms)
{
    int64_t n;
    if (!get_span(text, &n) && !rd_num_get_i64(rd_slice_str(text), &n))
        return false;
    if (n <= 0 || n > most_seconds)
        return false;
    *ret_ms = (uint64_t)n * MS;
    return true;
}

bool rd_time_get(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    int64_t n;
    if (text[0] == '-') {
        if (!get_span(text + 1, &n))
            return false;
        *ret_ms = now_ms - n * MS;
        return true;
    }
    if (rd_num_get_i64(rd_slice_str(text), &n)) {
        *ret_ms = n >= first_ms ? n : n * MS;
        return true;
    }
    return get_rfc3339(text, ret_ms) || get_time_of_day(text, now_ms, ret_ms);
}
