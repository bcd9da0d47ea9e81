#include "backup/verify_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backup/ahead.h"
#include "base/digest.h"
#include "base/show.h"
#include "base/siphash.h"
#include "capture/segment_in.h"

bool backup_is_damage(const struct rd_err *err)
{
    enum { DAMAGE = 1 }; /* of rd_err_exit_status() */
    return rd_err_exit_status(err->code) == DAMAGE || archive_store_is_missing(err);
}

/* The times of the commands, against those of the name. */
static bool read_events(struct backup_verify_stream *v, struct segment_in *in,
                        const struct archive_segment *segment, struct rd_err *err)
{
    struct archive_segment found = {.first_ms = INT64_MAX};
    struct repl_capture_event ev;
    while (segment_in_next(in, &ev, err)) {
        archive_segment_note_time(&found, ev.time_us);
        if (ev.kind == REPL_CAPTURE_COMMAND && ev.place.kind != REPL_PING &&
            ev.place.kind != REPL_GETACK &&
            rebuild_unsupported_note(&v->unsupported, ev.command.argc, ev.command.argv))
            rd_watch_warn(v->watch, "the stream of %s: %s", v->repo->target, v->unsupported.text);
    }
    if (in->failed)
        return false;
    archive_segment_end_times(&found, &in->header);
    return (found.first_ms == segment->first_ms && found.latest_ms == segment->latest_ms) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                      "the times of the commands differ from those in the name");
}

static bool read_segment(struct backup_verify_stream *v, struct archive_repo *repo,
                         const struct archive_segment *segment, struct archive_order *order,
                         struct rd_err *err)
{
    struct segment_in in;
    struct rd_src *src;
    if (!archive_segment_open_next(repo, segment, v->ring, order, &src, err) ||
        !segment_in_open(&in, src, segment->number, segment->start, err))
        return false;
    bool ok = segment_in_verify(&in, err) && archive_segment_matches(segment, &in.header, err) &&
              archive_order_check(order, segment, &in.header, err);
    if (ok && (v->level >= BACKUP_LEVEL_PARSE || !archive_segment_proves_name(segment)))
        ok = read_events(v, &in, segment, err);
    segment_in_close(&in);
    return ok;
}

static void report_damage(struct backup_verify_stream *v, const char *name,
                          const struct rd_err *err)
{
    v->n_damaged++;
    if (v->damaged != NULL)
        v->damaged(v->ctx, v, name, err);
}

/* The id of the key in the header of a sealed object (docs/format/repository.md). */
static bool read_key_id(struct backup_verify_stream *v, const struct archive_segment *segment,
                        char ret[RD_SEAL_ID_HEX])
{
    enum { KEY_ID_AT = 32, KEY_ID_LEN = 16 };
    char name[ARCHIVE_NAME_MAX];
    struct rd_src *src;
    struct rd_slice s;
    if (!archive_segment_name(name, v->repo, segment, NULL) ||
        !v->repo->store->ops->get(v->repo->store, name, &src, NULL))
        return false;
    bool ok = rd_src_need(src, KEY_ID_AT + KEY_ID_LEN, &s) == RD_SRC_OK;
    if (ok)
        rd_digest_hex(ret, rd_slice(s.ptr + KEY_ID_AT, KEY_ID_LEN));
    rd_src_close(src);
    return ok;
}

/* A key that is not given may be an older one. If no set was sealed with it either, the id itself
 * is damaged. */
static bool is_unknown_key(struct backup_verify_stream *v, const struct archive_segment *segment,
                           const struct rd_err *why)
{
    char id[RD_SEAL_ID_HEX];
    if (why->reason.id != RD_SEAL_REASON_KEY || !segment->sealed || !read_key_id(v, segment, id))
        return false;
    bool known = v->sets->n == 0;
    for (size_t i = 0; i < v->sets->n; i++)
        known = known || strcmp(v->sets->sets[i].m.key_id, id) == 0;
    return !known;
}

bool backup_sample_has(const struct backup_sample *sample, const char *name)
{
    static const uint8_t key[RD_SIPHASH_KEY] = {0};
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key);
    rd_siphash_add(&hash, name, strlen(name));
    return sample->of == 0 || rd_siphash_end(&hash).lo % sample->of == sample->part;
}

static bool is_sampled(const struct backup_verify_stream *v, const struct archive_segment *segment)
{
    return v->sample.of == 0 || segment->number % v->sample.of == v->sample.part;
}

static bool check_each(struct backup_verify_stream *v, struct archive_repo *repo,
                       const struct archive_stream *stream, struct rd_err *err)
{
    struct archive_order order = {.any = false};
    for (size_t i = 0; i < stream->n; i++) {
        struct rd_err why = {0};
        char name[ARCHIVE_NAME_MAX];
        rd_watch_at(v->watch, i);
        if (!is_sampled(v, &stream->segments[i])) {
            order.any = false; /* the next one is read without it */
            continue;
        }
        v->n_read++;
        if (read_segment(v, repo, &stream->segments[i], &order, &why))
            continue;
        if (archive_store_is_missing(&why)) {
            v->n_gone++;
            continue;
        }
        bool wrong = is_unknown_key(v, &stream->segments[i], &why);
        if (why.reason.id == RD_SEAL_REASON_KEY && !wrong) {
            if (v->n_unknown++ == 0)
                rd_err_adopt(&v->unknown, &why);
            continue;
        }
        if (!backup_is_damage(&why) && why.code != RD_ERR_UNSUPPORTED && !wrong) {
            rd_err_adopt(err, &why);
            rd_err_doing(err, "verifying the stream of %s", v->repo->target);
            return false;
        }
        archive_segment_bound(name, &stream->segments[i]);
        report_damage(v, name, &why);
    }
    return true;
}

static bool check_all(struct backup_verify_stream *v, const struct archive_stream *stream,
                      struct rd_err *err)
{
    struct backup_ahead ahead;
    if (v->level == BACKUP_LEVEL_LIST)
        return true;
    if (v->sample.of > 0) /* reading ahead would read all of them */
        return check_each(v, v->repo, stream, err);
    if (!backup_ahead_begin(&ahead, v->repo, stream, 0, stream->n, err))
        return false;
    bool ok = check_each(v, &ahead.repo, stream, err);
    backup_ahead_end(&ahead);
    return ok;
}

/* A segment with a damaged name is not one: the stream would only seem to have a gap. */
static void check_others(struct backup_verify_stream *v, const struct archive_stream *stream)
{
    struct rd_err why = {0}, unsealed = {0};
    if (stream->n_refused > 0) {
        rd_err_set(&unsealed, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                   "it is not sealed, although there is a key: it may be forged; see "
                   "--allow-unsealed (%zu segment%s of this kind)",
                   stream->n_refused, rd_show_plural(stream->n_refused));
        report_damage(v, stream->refused, &unsealed);
    }
    if (stream->n_others == 0 || v->level == BACKUP_LEVEL_LIST)
        return;
    rd_err_set(&why, RD_ERR_CORRUPT, RD_NO_OFFSET,
               "this is not the name of a segment (%zu object%s of this kind)", stream->n_others,
               rd_show_plural(stream->n_others));
    report_damage(v, stream->other, &why);
}

/* Without those in which a chain begins: there the master sends what it kept for the snapshot. */
static uint64_t count_interruptions(const struct archive_stream *stream)
{
    uint64_t n = 0;
    for (size_t i = 1; i < stream->n; i++) {
        const struct archive_segment *s = &stream->segments[i];
        n += s->until_ms > 0 && archive_segment_follows(s - 1, s);
    }
    return n;
}

/* Segments that are not in the repository, although those before and after them are. */
static void check_holes(struct backup_verify_stream *v, const struct archive_stream *stream)
{
    for (size_t i = 1; i < stream->n; i++) {
        const struct archive_segment *a = &stream->segments[i - 1], *b = a + 1;
        uint64_t n = archive_segment_lost(a, b);
        struct rd_err why = {0};
        char name[ARCHIVE_NAME_MAX];
        if (n == 0)
            continue;
        rd_err_set(&why, RD_ERR_CORRUPT, RD_NO_OFFSET,
                   "%" PRIu64 " segment%s missing before it: offsets %" PRIu64 " to %" PRIu64, n,
                   n == 1 ? " is" : "s are", a->end, b->start);
        archive_segment_bound(name, b);
        report_damage(v, name, &why);
    }
}

/* What was removed while the stream was read: by `prune`, if a new listing has no hole there. */
static bool list_again(struct backup_verify_stream *v, struct archive_stream *stream,
                       struct rd_err *err)
{
    if (v->n_gone == 0)
        return true;
    archive_stream_done(stream);
    rd_watch_note(v->watch, "%s: %" PRIu64 " segment%s removed meanwhile", v->repo->target,
                  v->n_gone, v->n_gone == 1 ? " was" : "s were");
    return archive_stream_list(v->repo, stream, err);
}

bool backup_verify_stream(struct backup_verify_stream *v, struct rd_err *err)
{
    struct archive_stream stream;
    if (!archive_stream_list(v->repo, &stream, err))
        return false;
    v->n_segments = stream.n;
    v->is_listed = true;
    if (v->listed != NULL)
        v->listed(v->ctx, v);
    rd_watch_begin(v->watch, "segments of the stream", stream.n, NULL);
    bool ok = check_all(v, &stream, err);
    rd_watch_end(v->watch);
    ok = ok && list_again(v, &stream, err);
    if (ok) {
        check_holes(v, &stream);
        check_others(v, &stream);
    }
    v->n_interruptions = count_interruptions(&stream);
    v->known = ok && v->n_unknown == 0;
    archive_stream_done(&stream);
    return ok;
}
