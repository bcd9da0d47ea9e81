/* stream_list.c - what a listing of segments shows. */
#include "archive/stream.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void on_object(void *arg, const struct archive_listed *object)
{
    struct listing *l = arg;
    struct archive_stream *stream = l->stream;
    struct archive_segment segment;
    if (l->no_memory || strlen(object->name) <= l->prefix)
        return;
    const char *name = object->name + l->prefix;
    if (!archive_segment_parse(name, &segment)) {
        note_other(stream, name);
        return;
    }
    if (l->only_sealed && !segment.sealed) {
        if (stream->n_refused++ == 0)
            snprintf(stream->refused, sizeof stream->refused, "%s", name);
        return;
    }
    segment.bytes = object->size;
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
    uint64_t *reach; /* of each: the last number up to which the stream can be continued from it */
    size_t *taken;   /* of each that is taken: itself; else the one that was taken before it */
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
        if (before == SIZE_MAX || c->s[i].number > archive_segment_last(&c->s[before]))
            before = best_of(c, i, before);
        c->taken[i] = before;
    }
}

/* Whether those that are taken have all of it. Other offsets are those of another stream. */
static bool is_covered(const struct choice *c, size_t i)
{
    const struct archive_segment *s = &c->s[c->taken[i]];
    return c->taken[i] != i && (archive_segment_contains(s, &c->s[i]) ||
                                (c->s[i].last != 0 && c->reach[c->taken[i]] >= c->s[i].last &&
                                 s->start <= c->s[i].start));
}

static bool overlaps(const struct choice *c, size_t i)
{
    return archive_segment_last(&c->s[i]) > archive_segment_last(&c->s[c->taken[i]]);
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
                       .taken = rd_alloc(n * sizeof *c.taken)};
    bool ok = copy != NULL && c.reach != NULL && c.taken != NULL;
    if (ok) {
        memcpy(copy, &stream->segments[begin], n * sizeof *copy);
        find_reach(&c);
        take(&c);
        ok = divide(stream, &c, n_kept);
    }
    rd_free(c.taken);
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
        rd_err_nomem(err, stream.n * sizeof *stream.segments);
        archive_stream_done(&stream);
        return false;
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
