/* stream_name.c - the names of segments. */
#include "archive/stream.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char continuation[] = "-continues";

void archive_segment_bound(char ret[ARCHIVE_NAME_MAX], const struct archive_segment *s)
{
    char interruption[2 * RD_NUM_I64_MAX + 3] = "", last[RD_NUM_I64_MAX + 2] = "";
    if (s->recorded)
        snprintf(interruption, sizeof interruption, "-%" PRId64 "-%" PRId64, s->since_ms,
                 s->until_ms);
    if (s->recorded && s->last != 0)
        snprintf(last, sizeof last, "-%" PRIu64, s->last);
    snprintf(ret, ARCHIVE_NAME_MAX,
             "%s/%08" PRIu64 "-%s%s/%08" PRIu64 "-%" PRIu64 "-%" PRIu64 "-%" PRId64 "-%" PRId64
             "%s%s.seg%s%s",
             s->run, s->chapter, s->replid, s->continues ? continuation : "", s->number, s->start,
             s->end, s->first_ms, s->latest_ms, interruption, last,
             archive_compression_suffix(s->compression), s->sealed ? ".sealed" : "");
}

bool archive_segment_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo,
                          const struct archive_segment *segment, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    archive_segment_bound(bound, segment);
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/stream/%s", repo->target, bound);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* The text up to a character, which is consumed; false if it is missing. */
static bool cut(const char **at, char end, struct rd_slice *ret)
{
    const char *stop = strchr(*at, end);
    if (stop == NULL)
        return false;
    *ret = rd_slice(*at, (size_t)(stop - *at));
    *at = stop + 1;
    return true;
}

/* Numbers have leading zeros if the name sorts by them. */
static bool get_number(struct rd_slice text, uint64_t *ret)
{
    while (text.len > 1 && text.ptr[0] == '0')
        text = rd_slice(text.ptr + 1, text.len - 1);
    return rd_num_get_u64(text, ret);
}

static bool cut_number(const char **at, char end, uint64_t *ret)
{
    struct rd_slice text;
    return cut(at, end, &text) && get_number(text, ret);
}

static bool cut_time(const char **at, char end, int64_t *ret)
{
    uint64_t ms;
    if (!cut_number(at, end, &ms) || ms > INT64_MAX)
        return false;
    *ret = (int64_t)ms;
    return true;
}

static bool get_endings(const char *at, struct archive_segment *ret)
{
    struct rd_slice text = rd_slice_str(at);
    static const char sealed[] = ".sealed";
    size_t len = sizeof sealed - 1;
    ret->sealed = text.len >= len && memcmp(text.ptr + text.len - len, sealed, len) == 0;
    if (ret->sealed)
        text.len -= len;
    for (unsigned i = 0; i < ARCHIVE_COMPRESSION_COUNT; i++) {
        ret->compression = (enum archive_compression)i;
        if (rd_slice_is(text, archive_compression_suffix(ret->compression)))
            return true;
    }
    return false;
}

/* "NUMBER-START-END-FIRST-LATEST", maybe "-SINCE-UNTIL", and then maybe "-LAST". */
static size_t count_numbers(const char *name)
{
    size_t n = 1;
    for (; *name != '\0' && *name != '.'; name++)
        n += *name == '-';
    return n;
}

enum { NUMBERS_RECORDED = 7, NUMBERS_MERGED };

/* From NUMBER up to the dot. */
static bool cut_numbers(const char **at, struct archive_segment *s)
{
    size_t n = count_numbers(*at);
    bool merged = n >= NUMBERS_MERGED;
    s->recorded = n >= NUMBERS_RECORDED - 1;
    return cut_number(at, '-', &s->number) && cut_number(at, '-', &s->start) &&
           cut_number(at, '-', &s->end) && cut_time(at, '-', &s->first_ms) &&
           cut_time(at, s->recorded ? '-' : '.', &s->latest_ms) &&
           (!s->recorded ||
            (cut_time(at, '-', &s->since_ms) && cut_time(at, merged ? '-' : '.', &s->until_ms))) &&
           (!merged || (cut_number(at, '.', &s->last) && s->last > s->number)) &&
           s->start <= s->end;
}

bool archive_segment_parse(const char *name, struct archive_segment *ret)
{
    const char *at = name;
    struct rd_slice run, chapter, replid;
    char again[ARCHIVE_NAME_MAX];
    struct archive_segment s = {.chapter = 0};
    if (!cut(&at, '/', &run) || run.len >= sizeof s.run || !cut(&at, '-', &chapter) ||
        !get_number(chapter, &s.chapter) || strlen(at) < REPL_REPLID_LEN)
        return false;
    memcpy(s.run, run.ptr, run.len);
    memcpy(s.replid, at, REPL_REPLID_LEN);
    at += REPL_REPLID_LEN;
    if (!cut(&at, '/', &replid))
        return false;
    s.continues = rd_slice_is(replid, continuation);
    if (!cut_numbers(&at, &s) || strncmp(at, "seg", 3) != 0 || !get_endings(at + 3, &s))
        return false;
    archive_segment_bound(again, &s);
    if (strcmp(again, name) != 0)
        return false;
    *ret = s;
    return true;
}
