/* stream_list.c - the names of segments, and what a listing of them shows. */
#include "archive/stream.h"

#include "base/mem.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char continuation[] = "-continues";

/* ---- names ---- */

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
           (!merged || (cut_number(at, '.', &s->last) && s->last > s->number));
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

/* ---- listing ---- */

/* The room is the next power of two. */
bool archive_segment_append(struct archive_segment **list, size_t *n,
                            const struct archive_segment *segment)
{
    if ((*n & (*n - 1)) == 0) {
        struct archive_segment *grown = rd_realloc(*list, (*n == 0 ? 1 : 2 * *n) * sizeof *grown);
        if (grown == NULL)
            return false;
        *list = grown;
    }
    (*list)[(*n)++] = *segment;
    return true;
}

int archive_segment_compare(const void *a, const void *b)
{
    const struct archive_segment *x = a, *y = b;
    int runs = strcmp(x->run, y->run);
    return runs != 0 ? runs : (x->number > y->number) - (x->number < y->number);
}

struct listing {
    struct archive_stream *stream;
    size_t prefix; /* bytes of a name before the run */
    bool only_sealed;
    bool no_memory;
};

static bool is_leftover(const char *name)
{
    const char *slash = strrchr(name, '/');
    size_t len = strlen(name);
    return name[0] == '.' || (slash != NULL && slash[1] == '.') ||
           (len > 4 && strcmp(name + len - 4, ".new") == 0);
}

static void note_other(struct archive_stream *stream, const char *name)
{
    if (strcmp(name, "lock") != 0 && !is_leftover(name) && stream->n_others++ == 0)
        snprintf(stream->other, sizeof stream->other, "%s", name);
}

static void on_object(void *arg, const char *name, uint64_t size)
{
    struct listing *l = arg;
    struct archive_stream *stream = l->stream;
    struct archive_segment segment;
    if (l->no_memory || strlen(name) <= l->prefix)
        return;
    if (!archive_segment_parse(name + l->prefix, &segment)) {
        note_other(stream, name + l->prefix);
        return;
    }
    if (l->only_sealed && !segment.sealed) {
        if (stream->n_refused++ == 0)
            snprintf(stream->refused, sizeof stream->refused, "%s", name + l->prefix);
        return;
    }
    segment.bytes = size;
    l->no_memory = !archive_segment_append(&stream->segments, &stream->n, &segment);
}

static int compare_segments(const void *a, const void *b)
{
    const struct archive_segment *x = a, *y = b;
    int order = archive_segment_compare(a, b);
    uint64_t to_x = archive_segment_last(x), to_y = archive_segment_last(y);
    if (order == 0)
        order = (to_y > to_x) - (to_y < to_x);
    return order != 0 ? order : (int)y->sealed - (int)x->sealed;
}

/* A segment that was stored both sealed and not, because the key came later, counts once. */
static void drop_twins(struct archive_stream *stream)
{
    size_t n = 0;
    for (size_t i = 0; i < stream->n; i++) {
        const struct archive_segment *s = &stream->segments[i];
        const struct archive_segment *last = n > 0 ? &stream->segments[n - 1] : NULL;
        if (last != NULL && last->sealed && !s->sealed && strcmp(last->run, s->run) == 0 &&
            last->number == s->number && last->last == s->last && last->start == s->start &&
            last->end == s->end)
            continue;
        stream->segments[n++] = *s;
    }
    stream->n = n;
}

/* ---- segments that were made of several, and these ---- */

bool archive_segment_contains(const struct archive_segment *a, const struct archive_segment *b)
{
    return strcmp(a->run, b->run) == 0 && a->chapter == b->chapter &&
           a->continues == b->continues && strcmp(a->replid, b->replid) == 0 &&
           a->number <= b->number && archive_segment_last(b) <= archive_segment_last(a) &&
           a->start <= b->start && b->end <= a->end;
}

/* The segments of one run. */
struct choice {
    const struct archive_segment *s;
    size_t n;
    uint64_t *reach;  /* of each: the last number up to which the stream can be continued from it */
    size_t *taken_by; /* of each that is taken: itself; else the one that was taken before it */
    bool *taken;
};

/* The first one whose number is not less. */
static size_t search(const struct choice *c, uint64_t number)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->s[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_reach(struct choice *c)
{
    for (size_t i = c->n; i-- > 0;) {
        uint64_t last = archive_segment_last(&c->s[i]);
        c->reach[i] = last;
        for (size_t k = search(c, last + 1); k < c->n && c->s[k].number == last + 1; k++)
            if (k > i && archive_segment_follows(&c->s[i], &c->s[k]) && c->reach[k] > c->reach[i])
                c->reach[i] = c->reach[k];
    }
}

/* Of those with the number of the i-th one, one that follows the one before it and reaches the
 * furthest. */
static size_t best_of(const struct choice *c, size_t i, size_t before)
{
    size_t best = i;
    bool best_follows = false;
    for (size_t k = i; k < c->n && c->s[k].number == c->s[i].number; k++) {
        bool follows = before != SIZE_MAX && archive_segment_follows(&c->s[before], &c->s[k]);
        if ((follows && !best_follows) ||
            (follows == best_follows && c->reach[k] > c->reach[best])) {
            best = k;
            best_follows = follows;
        }
    }
    return best;
}

static void take(struct choice *c)
{
    size_t before = SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) {
        if (before == SIZE_MAX || c->s[i].number > archive_segment_last(&c->s[before])) {
            before = best_of(c, i, before);
            c->taken[before] = true;
        }
        c->taken_by[i] = before;
    }
}

/* Whether those that are taken have all of it. Other offsets are those of another stream. */
static bool is_covered(const struct choice *c, size_t i)
{
    const struct archive_segment *s = &c->s[c->taken_by[i]];
    return !c->taken[i] && (archive_segment_contains(s, &c->s[i]) ||
                            (c->s[i].last != 0 && c->reach[c->taken_by[i]] >= c->s[i].last &&
                             s->start <= c->s[i].start));
}

static bool overlaps(const struct choice *c, size_t i)
{
    return archive_segment_last(&c->s[i]) > archive_segment_last(&c->s[c->taken_by[i]]);
}

/* Moves what is covered, and counts what overlaps. */
static bool divide(struct archive_stream *stream, const struct choice *c, size_t *n_kept)
{
    for (size_t i = 0; i < c->n; i++) {
        stream->n_overlaps += overlaps(c, i);
        if (!is_covered(c, i))
            stream->segments[(*n_kept)++] = c->s[i];
        else if (!archive_segment_append(&stream->covered, &stream->n_covered, &c->s[i]))
            return false;
    }
    return true;
}

static bool choose(struct archive_stream *stream, size_t begin, size_t end, size_t *n_kept)
{
    size_t n = end - begin;
    struct archive_segment *copy = rd_alloc(n * sizeof *copy);
    struct choice c = {.s = copy,
                       .n = n,
                       .reach = rd_alloc(n * sizeof *c.reach),
                       .taken_by = rd_alloc(n * sizeof *c.taken_by),
                       .taken = rd_calloc(n, sizeof *c.taken)};
    bool ok = copy != NULL && c.reach != NULL && c.taken_by != NULL && c.taken != NULL;
    if (ok) {
        memcpy(copy, &stream->segments[begin], n * sizeof *copy);
        find_reach(&c);
        take(&c);
        ok = divide(stream, &c, n_kept);
    }
    rd_free(c.taken);
    rd_free(c.taken_by);
    rd_free(c.reach);
    rd_free(copy);
    return ok;
}

/* Runs without segments that were made of several stay as they are. */
static bool choose_all(struct archive_stream *stream)
{
    size_t n_kept = 0;
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        bool merged = false;
        for (end = begin;
             end < stream->n && strcmp(stream->segments[begin].run, stream->segments[end].run) == 0;
             end++)
            merged = merged || stream->segments[end].last != 0;
        if (merged && !choose(stream, begin, end, &n_kept))
            return false;
        for (size_t i = begin; !merged && i < end; i++)
            stream->segments[n_kept++] = stream->segments[i];
    }
    stream->n = n_kept;
    return true;
}

bool archive_stream_list(struct archive_repo *repo, struct archive_stream *ret, struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct archive_stream stream = {0};
    struct listing l = {.stream = &stream, .only_sealed = rd_seal_required(repo->ring)};
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/stream", repo->target) + 1;
    bool ok = repo->store->ops->list(repo->store, folder, on_object, &l, err);
    if (ok && l.no_memory)
        ok = rd_err_nomem(err, stream.n * sizeof *stream.segments);
    if (!ok) {
        archive_stream_done(&stream);
        return false;
    }
    if (stream.n > 0)
        qsort(stream.segments, stream.n, sizeof *stream.segments, compare_segments);
    drop_twins(&stream);
    if (!choose_all(&stream)) {
        archive_stream_done(&stream);
        return rd_err_nomem(err, stream.n * sizeof *stream.segments);
    }
    *ret = stream;
    return true;
}

size_t archive_stream_covered(const struct archive_stream *stream,
                              const struct archive_segment *whole, size_t *ret_n)
{
    size_t low = 0, high = stream->n_covered, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (archive_segment_compare(&stream->covered[middle], whole) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < stream->n_covered &&
           archive_segment_contains(whole, &stream->covered[low + n]))
        n++;
    *ret_n = n;
    return low;
}

void archive_stream_done(struct archive_stream *stream)
{
    rd_free(stream->segments);
    rd_free(stream->covered);
    *stream = (struct archive_stream){0};
}
