/* time.h - times as text. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RD_TIME_MAX = 48 };

/* Unix milliseconds as RFC 3339 in UTC: "2024-05-01T12:00:00.250Z", without .000. Returns dst. */
char *rd_time_put(char dst[RD_TIME_MAX], int64_t unix_ms);

/* Unix seconds, also those of damaged files: "2024-05-01T12:00:00Z", or "@-1" before 1970 and after
 * the year 9970. Returns dst. */
char *rd_time_put_s(char dst[RD_TIME_MAX], int64_t unix_s);

/* Reads a time: unix seconds, unix milliseconds (from 100,000,000,000 on), RFC 3339 (the time, its
 * seconds and its zone are optional; UTC by default), 14:02 or 14:02:10 (the last such time), or
 * -15m, -2h30m, -1d: relative to now. */
bool rd_time_get(const char *text, int64_t now_ms, int64_t *ret_ms);

/* Reads a length of time that is more than 0: 90 (seconds), 15m, 2h30m. */
bool rd_time_get_span(const char *text, uint64_t *ret_ms);

#endif
