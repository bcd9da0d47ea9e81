#include "archive/stream.h"

#include "archive/retain.h"
#include "archive/tail.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the order of segments ---- */

bool archive_segment_follows(const struct archive_segment *a, const struct archive_segment *b)
{
    if (strcmp(a->run, b->run) != 0 || b->number != archive_segment_last(a) + 1 ||
        b->start != a->end)
        return false;
    return a->chapter == b->chapter ? strcmp(a->replid, b->replid) == 0
                                    : b->chapter == a->chapter + 1 && b->continues;
}

uint64_t archive_segment_lost(const struct archive_segment *a, const struct archive_segment *b)
{
    bool same = a->chapter == b->chapter || (b->chapter == a->chapter + 1 && b->continues);
    uint64_t last = archive_segment_last(a);
    if (strcmp(a->run, b->run) != 0 || !same || b->number <= last + 1)
        return 0;
    return b->number - last - 1;
}

size_t archive_stream_chain(const struct archive_stream *stream, size_t i)
{
    for (i++; i < stream->n; i++)
        if (!archive_segment_follows(&stream->segments[i - 1], &stream->segments[i]))
            break;
    return i;
}

bool archive_segment_has(const struct archive_segment *segment, const char *replid, uint64_t offset)
{
    return segment->start <= offset && offset <= segment->end &&
           strcmp(segment->replid, replid) == 0;
}

static bool is_base(const struct archive_manifest *m)
{
    return m->replid[0] != '\0' && m->n_files == 1 && m->files[0].role == ARCHIVE_ROLE_RDB;
}

/* The first segment of a chain that begins after an offset. Each one begins where the one before it
 * ends, and no name has an end before its beginning. */
static size_t first_after(const struct archive_stream *stream, size_t begin, size_t end,
                          uint64_t offset)
{
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (stream->segments[middle].start <= offset)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

size_t archive_stream_base(const struct archive_stream *stream, size_t begin, size_t end,
                           const struct archive_manifest *m)
{
    if (!is_base(m))
        return SIZE_MAX;
    /* From the end: prefers the beginning of a segment to the end of the one before it. */
    for (size_t i = first_after(stream, begin, end, m->offset);
         i-- > begin && stream->segments[i].end >= m->offset;)
        if (archive_segment_has(&stream->segments[i], m->replid, m->offset))
            return i;
    return SIZE_MAX;
}

/* A time at which the data is not older than a position in or at the end of segment i. Segments
 * without commands have no times. */
static int64_t time_after(const struct archive_stream *stream, size_t i, size_t end,
                          uint64_t offset)
{
    const struct archive_segment *s = stream->segments;
    if (s[i].start < offset && s[i].start < s[i].end)
        return s[i].latest_ms;
    while (i < end && s[i].start == s[i].end)
        i++;
    return i < end ? s[i].first_ms : INT64_MAX;
}

bool archive_stream_range(const struct archive_stream *stream, size_t begin, size_t end,
                          const struct archive_sets *sets, struct archive_range *ret)
{
    struct archive_range range = {.to = stream->segments[end - 1].end, .from = UINT64_MAX};
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        size_t i =
            archive_set_good(set) ? archive_stream_base(stream, begin, end, &set->m) : SIZE_MAX;
        if (i == SIZE_MAX)
            continue;
        range.bases++;
        if (set->m.offset >= range.from)
            continue;
        range.from = set->m.offset;
        range.from_ms = time_after(stream, i, end, set->m.offset);
    }
    for (size_t i = begin; i < end; i++)
        if (stream->segments[i].latest_ms - 1 > range.to_ms)
            range.to_ms = stream->segments[i].latest_ms - 1;
    *ret = range;
    return range.bases > 0;
}

static bool stays(const unsigned *why, size_t k)
{
    return why == NULL || why[k] != 0;
}

/* Also of sets that stay although they may be damaged or forged: a mark may be wrong, and a key may
 * be given again. */
static size_t first_needed(const struct archive_stream *stream, size_t begin, size_t end,
                           const struct archive_sets *sets, const unsigned *why)
{
    size_t first = end;
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (!stays(why, k) || set->incomplete || set->err != NULL)
            continue;
        size_t i = archive_stream_base(stream, begin, end, &set->m);
        if (i < first)
            first = i;
    }
    return first;
}

/* Of the good sets that stay, without those in the future. */
static int64_t newest_ms(const struct archive_sets *sets, const unsigned *why)
{
    int64_t newest = INT64_MIN;
    for (size_t k = 0; k < sets->n; k++) {
        bool future = why != NULL && (why[k] & 1U << ARCHIVE_RULE_FUTURE) != 0;
        if (stays(why, k) && !future && archive_set_good(&sets->sets[k]) &&
            sets->sets[k].time_ms > newest)
            newest = sets->sets[k].time_ms;
    }
    return newest;
}

/* Whether a set, of those that go, too, is a base for a segment from `begin` on. */
static bool has_base(const struct archive_stream *stream, size_t begin,
                     const struct archive_sets *sets)
{
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (set->incomplete || set->refused || set->err != NULL || !is_base(&set->m))
            continue;
        for (size_t i = begin; i < stream->n; i++)
            if (archive_segment_has(&stream->segments[i], set->m.replid, set->m.offset))
                return true;
    }
    return false;
}

/* The segment after the data of a set, if the one that has its offset is not listed: SIZE_MAX if it
 * is, or if the history has none. */
static size_t after_unlisted(const struct archive_stream *stream, const struct archive_manifest *m)
{
    size_t next = SIZE_MAX;
    for (size_t i = 0; i < stream->n; i++) {
        const struct archive_segment *s = &stream->segments[i];
        if (archive_segment_has(s, m->replid, m->offset))
            return SIZE_MAX;
        if (strcmp(s->replid, m->replid) == 0 && s->start > m->offset &&
            (next == SIZE_MAX || s->start < stream->segments[next].start))
            next = i;
    }
    return next;
}

/* A set keeps its stream, so a segment that is not listed may be there all the same. */
static void find_unlisted(const struct archive_stream *stream, const struct archive_sets *sets,
                          const unsigned *why, bool *needed)
{
    for (size_t i = 0; i < stream->n; i++)
        needed[i] = false;
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (!stays(why, k) || set->incomplete || set->err != NULL || set->m.replid[0] == '\0')
            continue;
        size_t next = after_unlisted(stream, &set->m);
        if (next != SIZE_MAX)
            needed[next] = true;
    }
}

/* Bases become sets in the order of the stream: without one for a chain or a later one, that of
 * the chain may wait in the spool, however new the sets of other kinds are. */
void archive_stream_needed(const struct archive_stream *stream, const struct archive_sets *sets,
                           const unsigned *why, bool *needed)
{
    int64_t newest = newest_ms(sets, why);
    find_unlisted(stream, sets, why, needed);
    for (size_t begin = 0; begin < stream->n;) {
        size_t end = archive_stream_chain(stream, begin);
        size_t first =
            has_base(stream, begin, sets) ? first_needed(stream, begin, end, sets, why) : begin;
        bool after_hole =
            begin > 0 && needed[begin - 1] &&
            archive_segment_lost(&stream->segments[begin - 1], &stream->segments[begin]) > 0;
        if (needed[begin] || after_hole)
            first = begin;
        for (; begin < end; begin++)
            needed[begin] = begin >= first || stream->segments[begin].latest_ms >= newest;
    }
}

/* ---- limits of the stream ---- */

/* A set with which the stream can begin. */
struct start {
    size_t segment;
    int64_t ms; /* at this time or before, its data is known */
};

/* False: the set is not one. The first chain that has its position counts. */
static bool find_start(const struct archive_stream *stream, const struct archive_set *set,
                       struct start *ret)
{
    if (!archive_set_good(set) || set->refused)
        return false;
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        end = archive_stream_chain(stream, begin);
        size_t i = archive_stream_base(stream, begin, end, &set->m);
        if (i == SIZE_MAX)
            continue;
        *ret = (struct start){.segment = i, .ms = time_after(stream, i, end, set->m.offset)};
        return true;
    }
    return false;
}

static int64_t newest_command_ms(const struct archive_stream *stream)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < stream->n; i++)
        if (stream->segments[i].latest_ms > newest)
            newest = stream->segments[i].latest_ms;
    return newest;
}

/* The first segment from which on the objects have at most so many bytes. */
static size_t first_that_fits(const struct archive_stream *stream, uint64_t max_bytes)
{
    size_t i = stream->n;
    for (uint64_t bytes = 0; i > 0 && max_bytes - bytes >= stream->segments[i - 1].bytes; i--)
        bytes += stream->segments[i - 1].bytes;
    return i;
}

/* The segment with which the stream begins that is kept. */
static size_t first_kept(const struct archive_stream *stream, const struct archive_sets *sets,
                         const unsigned *why, uint64_t age_ms, uint64_t max_bytes)
{
    int64_t until_ms = newest_command_ms(stream) - (int64_t)age_ms;
    size_t fits = max_bytes > 0 ? first_that_fits(stream, max_bytes) : 0;
    size_t by_age = 0, by_size = SIZE_MAX, newest = 0;
    struct start start;
    for (size_t k = 0; k < sets->n; k++) {
        if (!stays(why, k) || !find_start(stream, &sets->sets[k], &start))
            continue;
        if (age_ms > 0 && start.ms <= until_ms && start.segment > by_age)
            by_age = start.segment;
        if (start.segment > newest)
            newest = start.segment;
        if (start.segment >= fits && start.segment < by_size)
            by_size = start.segment;
    }
    if (by_age >= fits)
        return by_age;
    return by_size != SIZE_MAX ? by_size : newest;
}

void archive_stream_limit(const struct archive_stream *stream, const struct archive_sets *sets,
                          const unsigned *why, uint64_t age_ms, uint64_t max_bytes, bool *needed)
{
    if (stream->n == 0 || (age_ms == 0 && max_bytes == 0))
        return;
    size_t first = first_kept(stream, sets, why, age_ms, max_bytes);
    for (size_t i = 0; i < first; i++)
        needed[i] = false;
}

/* ---- reading ---- */

/* What the store gave of an object: distinguishes an object that is wrong from a store that fails.
 */
struct given {
    uint64_t bytes;
    bool all; /* set when the source is closed: they were given to their end */
};

struct watch {
    struct rd_src *in;
    bool failed;
    struct given *given; /* of the caller, which reads it after the source is closed */
};

static enum rd_src_status watch_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct watch *w = impl;
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(w->in, 1, &s);
    *ret_len = 0;
    if (status == RD_SRC_FAIL) {
        w->failed = true;
        rd_err_adopt(err, rd_src_err(w->in));
    }
    if (status != RD_SRC_OK)
        return status;
    *ret_len = s.len < cap ? s.len : cap;
    memcpy(buf, s.ptr, *ret_len);
    rd_src_consume(w->in, *ret_len);
    w->given->bytes += *ret_len;
    return RD_SRC_OK;
}

/* Reads the rest, which a decoder that found damage did not want. */
static void watch_close(void *impl)
{
    struct watch *w = impl;
    struct rd_slice s;
    enum rd_src_status status;
    while ((status = rd_src_need(w->in, 1, &s)) == RD_SRC_OK) {
        w->given->bytes += s.len;
        rd_src_consume(w->in, s.len);
    }
    w->given->all = !w->failed && status == RD_SRC_END;
    rd_src_close(w->in);
    rd_free(w);
}

static bool watch_object(struct rd_src **ret, struct rd_src *in, struct given *given,
                         struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = watch_read, .close = watch_close};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = rd_src_origin(in));
    struct watch *w = rd_calloc(1, sizeof *w);
    if (w == NULL) {
        rd_src_close(in);
        return rd_err_nomem(err, sizeof *w);
    }
    *w = (struct watch){.in = in, .given = given};
    return rd_src_new(ret, &ops, w, &opts, err);
}

/* Whether the object ends with a digest. A seal authenticates every byte, and a segment that is
 * stored unchanged ends with its own digest. */
static bool has_tail(const struct archive_segment *segment)
{
    return !segment->sealed && segment->compression != ARCHIVE_COMPRESSION_NONE;
}

bool archive_segment_proves_name(const struct archive_segment *segment)
{
    return segment->sealed || has_tail(segment);
}

static bool open_object(struct archive_repo *repo, const struct archive_segment *segment,
                        const char *bound, struct given *given, struct rd_src **ret,
                        struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_src *src;
    if (!archive_segment_name(name, repo, segment, err) ||
        !repo->store->ops->get(repo->store, name, &src, err) ||
        (given != NULL && !watch_object(&src, src, given, err)))
        return false;
    if (!has_tail(segment) ||
        archive_tail_open_src(&src, src, segment->bytes, segment->compression, bound, err)) {
        *ret = src;
        return true;
    }
    rd_src_close(src);
    return false;
}

static bool open_segment(struct archive_repo *repo, const struct archive_segment *segment,
                         const struct rd_seal_ring *ring, struct rd_seal_info *info,
                         struct given *given, struct rd_src **ret, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX], name[ARCHIVE_NAME_MAX];
    const struct archive_file file = {.compression = segment->compression,
                                      .sealed = segment->sealed};
    struct rd_src *src;
    struct rd_slice s;
    archive_segment_bound(bound, segment);
    if (!archive_segment_name(name, repo, segment, err) ||
        !open_object(repo, segment, bound, given, &src, err) ||
        !archive_pipe_open_bare(&src, src, &file, ring, name, info, err))
        return false;
    /* The name is borrowed until the header is read. */
    if (rd_src_need(src, 1, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        rd_src_close(src);
        return false;
    }
    *ret = src;
    return true;
}

bool archive_segment_open(struct archive_repo *repo, const struct archive_segment *segment,
                          const struct rd_seal_ring *ring, struct rd_src **ret, struct rd_err *err)
{
    return open_segment(repo, segment, ring, NULL, NULL, ret, err);
}

bool archive_segment_open_next(struct archive_repo *repo, const struct archive_segment *segment,
                               const struct rd_seal_ring *ring, struct archive_order *order,
                               struct rd_src **ret, struct rd_err *err)
{
    order->info = (struct rd_seal_info){.version = 0};
    return open_segment(repo, segment, ring, &order->info, NULL, ret, err);
}

bool archive_order_check(struct archive_order *order, const struct archive_segment *segment,
                         const struct repl_capture_segment *header, struct rd_err *err)
{
    const struct rd_seal_info *info = &order->info;
    bool same_run = order->any && strcmp(order->run, segment->run) == 0;
    if (same_run && info->version != 0 && info->version < order->version)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "its seal has version %u, but those before it have version %u: it may be "
                          "forged",
                          info->version, order->version);
    if (same_run && info->has_before && segment->number == order->number + 1 &&
        memcmp(info->before, order->sha256, REPL_CAPTURE_SHA) != 0)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "it was written after another segment than the one before it");
    order->any = true;
    snprintf(order->run, sizeof order->run, "%s", segment->run);
    order->number = archive_segment_last(segment);
    order->version = same_run && info->version == 0 ? order->version : info->version;
    memcpy(order->sha256, archive_order_digest(header), REPL_CAPTURE_SHA);
    return true;
}

const uint8_t *archive_order_digest(const struct repl_capture_segment *header)
{
    return header->last != 0 ? header->last_sha256 : header->sha256;
}

_Static_assert((int)REPL_CAPTURE_SHA == (int)RD_SEAL_BEFORE,
               "a seal names a segment by its SHA-256");

/* The milliseconds of an interruption end it later and begin it earlier than its microseconds. */
static int64_t since_ms(const struct repl_capture_segment *header)
{
    return header->since_us >= 2000 ? header->since_us / 1000 - 1 : 1;
}

static int64_t until_ms(const struct repl_capture_segment *header, int64_t latest_ms)
{
    if (header->until_us == REPL_CAPTURE_NEVER)
        return latest_ms + 1;
    return header->until_us >= 1000 ? (header->until_us - 1) / 1000 + 1 : 1;
}

static bool continues(const struct repl_capture_segment *header)
{
    return repl_replid_is_set(&header->replid2) && header->offset2 == header->chapter_start;
}

void archive_segment_of(struct archive_segment *ret, const char *run,
                        const struct repl_capture_segment *header)
{
    *ret = (struct archive_segment){.chapter = header->chapter,
                                    .continues = continues(header),
                                    .number = header->number,
                                    .start = header->start,
                                    .end = header->end,
                                    .last = header->last,
                                    .recorded = header->recorded};
    snprintf(ret->run, sizeof ret->run, "%s", run);
    snprintf(ret->replid, sizeof ret->replid, "%s", header->replid.hex);
}

void archive_segment_note_time(struct archive_segment *segment, int64_t time_us)
{
    int64_t ms = time_us > 0 ? time_us / 1000 : 0;
    if (ms < segment->first_ms)
        segment->first_ms = ms;
    if (ms > segment->latest_ms)
        segment->latest_ms = ms;
}

void archive_segment_end_times(struct archive_segment *segment,
                               const struct repl_capture_segment *header)
{
    if (segment->first_ms > segment->latest_ms)
        segment->first_ms = segment->latest_ms;
    if (!header->interrupted)
        return;
    segment->since_ms = since_ms(header);
    segment->until_ms = until_ms(header, segment->latest_ms);
}

/* 0 is none in both. */
static bool same_interruption(const struct archive_segment *segment,
                              const struct repl_capture_segment *header)
{
    bool has = header->interrupted;
    return segment->recorded == header->recorded &&
           segment->since_ms == (has ? since_ms(header) : 0) &&
           segment->until_ms == (has ? until_ms(header, segment->latest_ms) : 0);
}

bool archive_segment_matches(const struct archive_segment *segment,
                             const struct repl_capture_segment *header, struct rd_err *err)
{
    return (header->closed && header->number == segment->number && header->last == segment->last &&
            header->start == segment->start && header->end == segment->end &&
            header->chapter == segment->chapter && continues(header) == segment->continues &&
            same_interruption(segment, header) &&
            strcmp(header->replid.hex, segment->replid) == 0) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the segment does not match its name");
}

/* ---- changes ---- */

bool archive_segment_put(struct archive_repo *repo, const struct archive_segment *segment,
                         struct rd_sink **ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX], bound[ARCHIVE_NAME_MAX];
    struct rd_sink *sink;
    if (!archive_repo_check_lock(repo, err) || !archive_segment_name(name, repo, segment, err) ||
        !archive_store_put(repo->store, name, &sink, err))
        return false;
    archive_segment_bound(bound, segment);
    if (!has_tail(segment) ||
        archive_tail_open_sink(&sink, sink, segment->compression, bound, err)) {
        *ret = sink;
        return true;
    }
    rd_sink_abort(sink);
    return false;
}

bool archive_segment_kept(struct archive_repo *repo, const struct archive_segment *segment,
                          uint64_t bytes, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_object object;
    if (!archive_segment_name(name, repo, segment, err))
        return false;
    if (archive_store_keeps(repo->store, name, bytes, err))
        return true;
    if (repo->store->ops->stat(repo->store, name, &object, NULL) && object.there &&
        object.size < bytes)
        archive_segment_remove(repo, segment, NULL);
    return false;
}

void archive_stream_clean(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/stream", repo->target);
    if (repo->store->ops->clean != NULL && archive_repo_check_lock(repo, NULL))
        repo->store->ops->clean(repo->store, folder);
}

void archive_stream_tidy(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/stream", repo->target);
    if (repo->store->ops->tidy != NULL)
        repo->store->ops->tidy(repo->store, folder);
}

bool archive_segment_remove(struct archive_repo *repo, const struct archive_segment *segment,
                            struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return archive_repo_check_lock(repo, err) && archive_segment_name(name, repo, segment, err) &&
           repo->store->ops->remove(repo->store, name, err);
}

/* ---- proof ---- */

enum archive_store_proof archive_segment_prove(struct archive_repo *repo,
                                               const struct archive_segment *segment,
                                               const struct rd_seal_ring *ring,
                                               const struct archive_store_sum *plain,
                                               struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_segment there = *segment;
    struct archive_store_sum has = {.bytes = 0};
    struct archive_object object;
    struct given given = {.all = false};
    struct rd_err why = {0};
    struct rd_src *src;
    if (!archive_segment_name(name, repo, segment, err) ||
        !repo->store->ops->stat(repo->store, name, &object, err))
        return ARCHIVE_STORE_FAILED;
    if (!object.there)
        return ARCHIVE_STORE_ABSENT;
    there.bytes = object.size;
    bool opened = open_segment(repo, &there, ring, NULL, &given, &src, &why);
    bool ok = opened && archive_store_sum_src(src, &has, &why);
    if (opened)
        rd_src_close(src);
    if (!ok) {
        bool all = given.all && given.bytes == object.size;
        rd_err_adopt(err, &why);
        return all && why.code != RD_ERR_MEMORY ? ARCHIVE_STORE_OPAQUE : ARCHIVE_STORE_FAILED;
    }
    return archive_store_same(&has, plain) ? ARCHIVE_STORE_SAME : ARCHIVE_STORE_OTHER;
}
