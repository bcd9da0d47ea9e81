/* merge_make.c - makes one segment of several, and proves it. */
#include "backup/merge_impl.h"

#include <stdio.h>
#include <string.h>

#include "backup/ahead.h"
#include "backup/key_index.h"
#include "backup/stream_sum.h"
#include "backup/system.h"
#include "backup/verify_stream.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/pump.h"
#include "repl/capture_merge.h"

struct make {
    struct backup_merge *m;
    const struct archive_segment *parts;
    size_t n;
    struct segment_in *ins; /* the parts */
    size_t n_open;
    bool has_before;
    uint8_t before[RD_SEAL_BEFORE]; /* of the first part */
    struct backup_stream_sum sum;
    struct segment_in out; /* the new one */
    bool has_out;
    struct archive_segment segment;
    struct backup_key_index index;
    struct archive_store_sum plain;
};

/* ---- the parts ---- */

static bool cannot(struct rd_err *err, const char *why)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s", why);
}

static bool check_seal(struct make *k, const struct archive_segment *part,
                       const struct archive_order *order, struct rd_err *err)
{
    enum { VERSION = 2 };
    if (part->sealed && order->info.version < VERSION)
        return cannot(err, "its seal is of an older format");
    if (k->n_open == 0 && order->info.has_before) {
        k->has_before = true;
        memcpy(k->before, order->info.before, sizeof k->before);
    }
    return true;
}

/* To derive the key of each part from the passphrase would take longer than to read it. */
static void learn_key(struct backup_merge *m, const struct archive_segment *part)
{
    const struct rd_seal_ring known = {.keys = m->known, .n_keys = m->ring.n_keys};
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf head = {0};
    struct rd_seal_key key;
    if (!part->sealed || m->ring.passphrase.len == 0 || m->ring.n_keys == BACKUP_MERGE_KEYS)
        return;
    if (archive_segment_name(name, &m->repo, part, NULL) &&
        archive_store_range(m->repo.store, name, 0, RD_SEAL_HEADER_1, &head, NULL)) {
        if (rd_seal_find_key(&key, &known, rd_buf_slice(&head), NULL))
            rd_seal_key_done(&key);
        else if (rd_seal_find_key(&key, &m->ring, rd_buf_slice(&head), NULL))
            m->known[m->ring.n_keys++] = key;
    }
    rd_buf_done(&head);
}

static bool open_part(struct make *k, struct archive_repo *repo, struct archive_order *order,
                      struct rd_err *err)
{
    const struct archive_segment *part = &k->parts[k->n_open];
    struct segment_in *in = &k->ins[k->n_open];
    struct rd_src *src;
    char name[ARCHIVE_NAME_MAX];
    if (k->n_open == 0)
        learn_key(k->m, part);
    bool ok = archive_segment_open_next(repo, part, k->m->repo.ring, order, &src, err) &&
              segment_in_open(in, src, part->number, part->start, err);
    if (ok &&
        !(segment_in_verify(in, err) && archive_segment_matches(part, &in->header, err) &&
          check_seal(k, part, order, err) && archive_order_check(order, part, &in->header, err))) {
        segment_in_close(in);
        ok = false;
    }
    k->n_open += ok;
    if (!ok) {
        archive_segment_bound(name, part);
        rd_err_origin(err, name);
    }
    return ok;
}

static bool open_parts(struct make *k, const struct archive_stream *stream, size_t first,
                       struct rd_err *err)
{
    struct backup_ahead ahead;
    struct archive_order order = {.any = false};
    if (!backup_ahead_begin(&ahead, &k->m->repo, stream, first, k->n, err))
        return false;
    bool ok = true;
    while (ok && k->n_open < k->n)
        ok = open_part(k, &ahead.repo, &order, err);
    backup_ahead_end(&ahead);
    return ok;
}

/* Whether the times of the commands are those of the name. */
static bool same_times(const struct archive_segment *a, const struct archive_segment *b)
{
    return a->first_ms == b->first_ms && a->latest_ms == b->latest_ms;
}

static bool sum_part(struct make *k, size_t i, struct backup_stream_summer *s, struct rd_err *err)
{
    struct archive_segment found = {.first_ms = INT64_MAX};
    struct segment_in *in = &k->ins[i];
    struct repl_capture_event ev;
    bool ok = true;
    while (ok && segment_in_next(in, &ev, err)) {
        archive_segment_note_time(&found, ev.time_us);
        ok = backup_stream_sum_add(s, &ev, err);
    }
    archive_segment_end_times(&found, &in->header);
    return ok && !in->failed &&
           (same_times(&found, &k->parts[i]) ||
            rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                       "the times of the commands differ from those in the name"));
}

static bool sum_parts(struct make *k, struct rd_err *err)
{
    struct backup_stream_summer s;
    bool ok = backup_stream_sum_begin(&s, err);
    for (size_t i = 0; ok && i < k->n; i++) {
        ok = sum_part(k, i, &s, err);
        if (!ok)
            rd_err_origin(err, k->ins[i].name);
    }
    ok = ok && backup_stream_sum_end(&s, &k->sum, err);
    backup_stream_sum_drop(&s);
    return ok;
}

/* ---- the segment ---- */

static bool join(struct make *k, struct rd_sink *sink, struct rd_err *err)
{
    struct repl_capture_merge *merge;
    bool ok =
        repl_capture_merge_begin(&merge, &k->ins[0].header, &k->ins[k->n - 1].header, sink, err);
    if (!ok)
        return false;
    for (size_t i = 0; ok && i < k->n; i++)
        ok = repl_capture_merge_add(merge, &k->ins[i].fs, &k->ins[i].header, err);
    ok = ok && repl_capture_merge_end(merge, err);
    repl_capture_merge_free(merge);
    return ok;
}

static bool open_out(struct make *k, struct spool *spool, struct rd_err *err)
{
    struct rd_sink *sink;
    struct rd_src *src;
    if (!spool_sink(spool, &sink, err))
        return false;
    if (!join(k, sink, err)) {
        rd_sink_abort(sink);
        return false;
    }
    return rd_sink_close(sink, err) && spool_source(spool, "the merged segment", &src, err) &&
           segment_in_open(&k->out, src, k->parts[0].number, k->parts[0].start, err);
}

/* An index that cannot be made is left out: readers make it of the segment. */
static void begin_index(struct make *k)
{
    uint8_t salt[RD_SIPHASH_KEY];
    if (k->m->index && (!backup_random(salt, sizeof salt, NULL) ||
                        !backup_key_index_begin(&k->index, &k->out.header, salt, NULL)))
        backup_key_index_done(&k->index);
}

static void add_to_index(struct make *k, const struct repl_capture_event *ev)
{
    if (k->index.open && !backup_key_index_add(&k->index, ev, NULL))
        backup_key_index_done(&k->index);
}

/* Reads what was made, as others will, and compares it with the parts. */
static bool read_out(struct make *k, struct rd_err *err)
{
    struct backup_stream_summer s;
    struct backup_stream_sum sum;
    struct repl_capture_event ev;
    struct archive_segment *made = &k->segment;
    archive_segment_of(made, k->parts[0].run, &k->out.header);
    made->compression = k->m->compression;
    made->sealed = k->m->key != NULL;
    made->first_ms = INT64_MAX;
    begin_index(k);
    bool ok = segment_in_verify(&k->out, err) && backup_stream_sum_begin(&s, err);
    if (!ok)
        return false;
    while (ok && segment_in_next(&k->out, &ev, err)) {
        archive_segment_note_time(made, ev.time_us);
        add_to_index(k, &ev);
        ok = backup_stream_sum_add(&s, &ev, err);
    }
    archive_segment_end_times(made, &k->out.header);
    ok = ok && !k->out.failed && backup_stream_sum_end(&s, &sum, err);
    backup_stream_sum_drop(&s);
    if (k->index.open && !(ok && backup_key_index_end(&k->index, &k->out, NULL)))
        backup_key_index_done(&k->index);
    return ok && ((backup_stream_sum_same(&sum, &k->sum) &&
                   made->last == archive_segment_last(&k->parts[k->n - 1]) &&
                   made->end == k->parts[k->n - 1].end) ||
                  rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                             "the merged segment has other commands than its parts"));
}

static bool make(struct make *k, struct rd_err *err)
{
    struct spool spool = {.open = false};
    struct rd_src *src;
    bool ok = open_out(k, &spool, err);
    k->has_out = ok;
    spool_done(&spool);
    ok = ok && read_out(k, err) && spool_source(&k->out.spool, "the merged segment", &src, err);
    if (!ok)
        return false;
    ok = archive_store_sum_src(src, &k->plain, err);
    rd_src_close(src);
    return ok;
}

/* ---- in the repository ---- */

/* `prune` may have removed the parts meanwhile, which the new segment must not bring back. */
static bool are_there(struct make *k, bool *ret, struct rd_err *err)
{
    struct archive_store *store = k->m->repo.store;
    const size_t ends[] = {0, k->n - 1};
    *ret = true;
    for (size_t i = 0; i < 2 && *ret; i++) {
        char name[ARCHIVE_NAME_MAX];
        struct archive_object object;
        if (!archive_segment_name(name, &k->m->repo, &k->parts[ends[i]], err) ||
            !store->ops->stat(store, name, &object, err))
            return false;
        *ret = object.there;
    }
    return true;
}

static bool upload(struct make *k, struct rd_src *src, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_file file = {.compression = k->segment.compression};
    struct archive_pipe pipe = {.level = k->m->level,
                                .key = k->m->key,
                                .name = name,
                                .before = k->has_before ? k->before : NULL};
    struct rd_sink *sink;
    bool ok = archive_segment_name(name, &k->m->repo, &k->segment, err) &&
              backup_random(pipe.random, sizeof pipe.random, err) &&
              archive_segment_put(&k->m->repo, &k->segment, &sink, err) &&
              archive_pipe_open_sink(&sink, sink, &pipe, &file, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    if (!ok)
        return false;
    if (rd_pump(src, sink, NULL, NULL, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static void put_index(struct make *k)
{
    uint8_t random[RD_SEAL_RANDOM];
    struct rd_sink *sink;
    bool ok = k->index.open && backup_random(random, sizeof random, NULL) &&
              archive_key_index_put(&k->m->repo, &k->segment, k->m->key, random, &sink, NULL);
    explicit_bzero(random, sizeof random);
    if (!ok)
        return;
    if (backup_key_index_copy(&k->index, sink, NULL))
        rd_sink_close(sink, NULL);
    else
        rd_sink_abort(sink);
}

/* The name of the object binds what it holds, so an object of an earlier try is as good. Either is
 * read to its end. An object that was uploaded now and has other bytes was not stored as it was
 * sent: it is removed, or it would be in the way of the next try. */
static bool prove(struct make *k, bool uploaded, const struct rd_err *why, struct rd_err *err)
{
    struct archive_store *store = k->m->repo.store;
    struct archive_object object;
    char name[ARCHIVE_NAME_MAX];
    enum archive_store_proof proof =
        archive_segment_prove(&k->m->repo, &k->segment, k->m->repo.ring, &k->plain, err);
    if (proof == ARCHIVE_STORE_SAME && archive_segment_name(name, &k->m->repo, &k->segment, err) &&
        store->ops->stat(store, name, &object, err)) {
        k->segment.bytes = object.size;
        return object.there || archive_store_set_missing(err, name);
    }
    if (proof == ARCHIVE_STORE_ABSENT) {
        rd_err_adopt(err, why);
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the store does not show what it has stored");
    } else if (uploaded && (proof == ARCHIVE_STORE_OTHER || proof == ARCHIVE_STORE_OPAQUE)) {
        archive_segment_remove(&k->m->repo, &k->segment, NULL);
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the store did not keep what was sent to it");
    } else if (proof == ARCHIVE_STORE_OTHER) {
        rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                   "the repository has other data under the name of a merged segment");
    }
    return false;
}

static bool store_it(struct make *k, bool *ret_made, struct rd_err *err)
{
    struct rd_err why = {0};
    struct rd_src *src;
    bool there;
    if (!are_there(k, &there, err))
        return false;
    if (!there)
        return true;
    if (!spool_source(&k->out.spool, "the merged segment", &src, err))
        return false;
    bool ok = upload(k, src, &why);
    rd_src_close(src);
    if (!ok && !archive_store_exists(&why) && !archive_store_is_unknown(&why)) {
        rd_err_adopt(err, &why);
        return false;
    }
    if (!prove(k, ok, &why, err))
        return false;
    put_index(k);
    k->m->n_made++;
    k->m->n_parts += k->n;
    k->m->bytes_made += k->segment.bytes;
    *ret_made = true;
    return true;
}

/* ---- the whole ---- */

/* A part that is damaged, that no key opens, that this version cannot read or join, or that was
 * removed, ends only this piece. */
static bool may_go_on(struct backup_merge *m, const struct rd_err *why)
{
    bool refused = backup_is_damage(why) || why->code == RD_ERR_UNSUPPORTED ||
                   why->reason.id == RD_SEAL_REASON_KEY ||
                   why->reason.id == REPL_CAPTURE_REASON_APART;
    if (archive_store_is_missing(why))
        return true;
    if (refused && m->n_refused++ == 0)
        rd_err_adopt(&m->refused, why);
    return refused;
}

static void make_done(struct make *k)
{
    backup_key_index_done(&k->index);
    if (k->has_out)
        segment_in_close(&k->out);
    for (size_t i = 0; i < k->n_open; i++)
        segment_in_close(&k->ins[i]);
    rd_free(k->ins);
}

bool backup_merge_make(struct backup_merge *m, const struct archive_stream *stream, size_t first,
                       size_t n, struct archive_segment *ret, bool *ret_made, struct rd_err *err)
{
    struct make k = {.m = m, .parts = &stream->segments[first], .n = n};
    struct rd_err why = {0};
    *ret_made = false;
    k.ins = rd_calloc(n, sizeof *k.ins);
    if (k.ins == NULL)
        return rd_err_nomem(err, n * sizeof *k.ins);
    bool ok = open_parts(&k, stream, first, &why) && sum_parts(&k, &why) && make(&k, &why) &&
              store_it(&k, ret_made, &why);
    if (ok && *ret_made)
        *ret = k.segment;
    make_done(&k);
    if (ok || may_go_on(m, &why))
        return true;
    rd_err_adopt(err, &why);
    return false;
}

/* ---- what is contained in others ---- */

static bool is_smaller(const struct archive_segment *part, const struct archive_segment *whole)
{
    return archive_segment_contains(whole, part) &&
           archive_segment_last(part) - part->number < archive_segment_last(whole) - whole->number;
}

/* By the clock of the store, which is asked only if the newest command is old enough. */
static bool is_old(struct backup_merge *m, const struct archive_segment *s, bool *ret,
                   struct rd_err *err)
{
    struct archive_store *store = m->repo.store;
    char name[ARCHIVE_NAME_MAX];
    struct rd_err why = {0};
    int64_t age_ms, now_ms = m->now_ms != NULL ? m->now_ms() : INT64_MAX;
    *ret = m->grace_ms == 0;
    if (*ret || store->ops->age == NULL ||
        (m->now_ms != NULL && now_ms - s->latest_ms < (int64_t)m->grace_ms))
        return true;
    if (!archive_segment_name(name, &m->repo, s, err))
        return false;
    if (store->ops->age(store, name, &age_ms, &why))
        *ret = age_ms >= (int64_t)m->grace_ms;
    return true; /* not known: it stays */
}

/* Reads all of it: its digests, and every command. */
static bool is_sound(struct backup_merge *m, const struct archive_segment *s, struct rd_err *err)
{
    struct backup_stream_sum sum;
    struct rd_err why = {0};
    enum archive_store_proof proof =
        backup_stream_sum_stored(&m->repo, s, m->repo.ring, s->start, s->end, &sum, &why);
    if (proof == ARCHIVE_STORE_SAME)
        return true;
    rd_err_adopt(err, &why);
    return false;
}

static bool remove_part(struct backup_merge *m, const struct archive_segment *part,
                        struct rd_err *err)
{
    if (!archive_segment_remove(&m->repo, part, err))
        return false;
    m->n_removed++;
    m->bytes_removed += part->bytes;
    archive_key_index_remove(&m->repo, part, NULL); /* it may have none, and prune removes it */
    return true;
}

static bool clear_one(struct backup_merge *m, const struct archive_stream *stream,
                      const struct archive_segment *whole, struct rd_err *err)
{
    struct rd_err why = {0};
    size_t n, n_smaller = 0, first = archive_stream_covered(stream, whole, &n);
    bool old;
    for (size_t i = first; i < first + n; i++)
        n_smaller += is_smaller(&stream->covered[i], whole);
    m->n_waiting += n_smaller;
    if (n_smaller == 0)
        return true;
    if (!is_old(m, whole, &old, err))
        return false;
    if (!old)
        return true;
    if (!is_sound(m, whole, &why)) {
        if (may_go_on(m, &why))
            return true;
        rd_err_adopt(err, &why);
        return false;
    }
    for (size_t i = first; i < first + n; i++)
        if (is_smaller(&stream->covered[i], whole)) {
            if (!remove_part(m, &stream->covered[i], err))
                return false;
            m->n_waiting--;
        }
    return true;
}

bool backup_merge_clear(struct backup_merge *m, struct rd_err *err)
{
    struct archive_stream stream;
    uint64_t n_before = m->n_removed;
    if (!archive_stream_list(&m->repo, &stream, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < stream.n && stream.n_covered > 0 && stream.n_overlaps == 0; i++)
        if (stream.segments[i].last != 0 && (m->cancel == NULL || !atomic_load(m->cancel)))
            ok = clear_one(m, &stream, &stream.segments[i], err);
    archive_stream_done(&stream);
    if (m->n_removed > n_before) {
        archive_stream_tidy(&m->repo);
        archive_key_index_tidy(&m->repo);
    }
    return ok;
}
