/* text.c - formats and parses names, numbers and times. */
#include "tools/cli/cli.h"

#include "base/num.h"
#include "base/time.h"

#include <inttypes.h>
#include <time.h>
#include <sys/random.h>

enum { MS = 1000, MINUTE = 60, HOUR = 3600, DAY = 86400, WEEK = 7 * DAY };

/* Unix times from this number on are milliseconds; as seconds it would be the year 5138. */
static const int64_t first_ms = INT64_C(100000000000);

/* Beyond this many seconds from the epoch, milliseconds do not fit. */
static const int64_t most_seconds = INT64_MAX / MS;

struct cli_quoted cli_quote(struct rd_slice bytes)
{
    struct cli_quoted quoted;
    rd_err_quote(quoted.s, sizeof quoted.s, bytes);
    return quoted;
}

void cli_escape(char *dst, size_t size, struct rd_slice bytes)
{
    char *end = strrchr(rd_err_quote(dst, size, bytes), '"'); /* followed by "..." if cut */
    memmove(end, end + 1, strlen(end));
    memmove(dst, dst + 1, strlen(dst));
}

struct cli_quoted cli_plain(struct rd_slice bytes)
{
    struct cli_quoted plain;
    cli_escape(plain.s, sizeof plain.s, bytes);
    return plain;
}

struct cli_quoted cli_sentence(struct rd_slice text)
{
    struct cli_quoted out;
    rd_err_printable(out.s, sizeof out.s, text);
    return out;
}

const char *cli_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

struct cli_text cli_place(uint64_t offset)
{
    struct cli_text text;
    snprintf(text.s, sizeof text.s, "%" PRIu64 " (0x%" PRIx64 ")", offset, offset);
    return text;
}

struct cli_text cli_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct cli_text text;
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

struct cli_text cli_count(uint64_t count)
{
    char digits[RD_NUM_I64_MAX];
    size_t n = rd_num_put_u64(digits, count);
    struct cli_text text;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text.s[len++] = ',';
        text.s[len++] = digits[i];
    }
    text.s[len] = '\0';
    return text;
}

struct cli_text cli_duration(uint64_t ms)
{
    struct cli_text text;
    uint64_t s = ms / MS;
    if (s < 10)
        snprintf(text.s, sizeof text.s, "%.1f s", (double)ms / MS);
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

struct cli_text cli_time(int64_t unix_ms)
{
    struct cli_text text;
    rd_time_put(text.s, unix_ms);
    return text;
}

void cli_seed(uint64_t seed[2])
{
    /* This does not fail on a system that has booted; a key of zeros would still work. */
    seed[0] = seed[1] = 0;
    if (getrandom(seed, 2 * sizeof *seed, 0) < 0)
        seed[0] = seed[1] = 0;
}

int64_t cli_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * MS + now.tv_nsec / 1000000;
}

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

bool cli_get_time(const char *text, int64_t now_ms, int64_t *ret_ms)
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
    return get_rfc3339(text, ret_ms);
}
