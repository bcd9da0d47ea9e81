/* show.h - names, numbers and times as people read them.
 *
 *     printf("%s: %s key%s\n", rd_show_plain(name).s, rd_show_count(n).s, rd_show_plural(n));
 *
 * The texts are returned by value. They are for terminals and reports in English; base/num.h and
 * base/time.h write what programs read.
 */
#ifndef BASE_SHOW_H
#define BASE_SHOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct rd_shown {
    char s[48];
};

/* Bytes of a name or text, escaped, cut with "..." to fit. */
struct rd_shown_name {
    char s[300];
};

struct rd_shown_name rd_show_quote(struct rd_slice bytes); /* "user:1" */
struct rd_shown_name rd_show_plain(struct rd_slice bytes); /* the same without quotation marks */

/* For text of our own, in which names are quoted already: escapes only unprintable bytes. */
struct rd_shown_name rd_show_sentence(struct rd_slice text);

/* Like rd_show_plain(), into a buffer of the caller; size must be at least 8. */
void rd_show_escape(char *dst, size_t size, struct rd_slice bytes);

const char *rd_show_plural(uint64_t n);         /* "" if n is 1, else "s" */
struct rd_shown rd_show_place(uint64_t offset); /* "557 (0x22d)" */
struct rd_shown rd_show_bytes(uint64_t bytes);  /* "17 bytes", "1.4 MiB" */
struct rd_shown rd_show_count(uint64_t count);  /* "1,234,567" */
struct rd_shown rd_show_duration(uint64_t ms);  /* "0.8 s", "3 min 20 s", "2 h 5 min", "4 d 3 h" */
struct rd_shown rd_show_time(int64_t unix_ms);  /* "2024-05-01T12:00:00.250Z", without .000 */

#endif
