/* ship.c - the thread that uploads the closed segments of the spool to the repositories.
 *
 * Segments are uploaded to each repository independently, in order. A segment is removed from the
 * spool when it is proved that all repositories have it: this run uploaded it and the repository
 * shows it, or this run read the object there and compared it by size and digest. The newest one
 * stays, because the capture resumes after it, and so does a segment whose snapshot is not a set
 * yet. The listing of a repository shows what an earlier run uploaded; that is compared and not
 * uploaded again. The index of keys of a segment follows it, where that is possible.
 */
#include "backup/ship_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "archive/stream.h"
#include "backup/hold.h"
#include "backup/open.h"
#include "backup/spool_file.h"
#include "backup/stream_sum.h"
#include "backup/system.h"
#include "backup/take.h"
#include "base/mem.h"
#include "base/pump.h"
#include "base/show.h"
#include "capture/clock.h"
#include "capture/segment_in.h"

struct place {
    const char *where;
    struct archive_store *store; /* NULL: not open */
    struct archive_repo repo;
    struct backup_hold hold;      /* for the whole run: what it had before a failure is its own */
    bool known;                   /* `listed` was read */
    struct archive_stream listed; /* what was there when this run began */
    uint64_t upto;    /* up to this number it is proved that the segments are there; 0: none */
    uint64_t seen;    /* the newest one that was looked at, for gaps */
    uint64_t wait_ms; /* before the next try */
    uint64_t next_ms;
    bool failing;
    bool refused; /* it has foreign data in the place of a segment: nothing goes there any more */
};

struct backup_ship {
    struct backup_archiver *a;
    struct place places[BACKUP_STORES];
    size_t n;
    struct backup_keys keys;
    const struct rd_seal_key *key;
    struct backup_set settings; /* compression */
    struct ship_index index;
    struct repl_capture_segment last; /* the one that was looked at before; number 0: none */
    bool spool_failing;               /* in this turn */
    bool spool_said;                  /* that it fails */
    bool said_lost;                   /* that the spool of an earlier run is lost */
};

/* ---- repositories ---- */

static void close_place(struct place *place)
{
    backup_hold_drop(&place->hold, place->store);
    archive_store_close(place->store);
    place->store = NULL;
}

/* A capture that begins anew does not continue the stream that the repository has. */
static void look_for_lost_spool(struct backup_ship *ship, const struct place *place)
{
    struct backup_archiver *a = ship->a;
    if (a->resumes || place->listed.n == 0 || ship->said_lost)
        return;
    ship->said_lost = true;
    backup_archiver_say(a, "gap", true,
                        "the spool is empty, but %s has a stream: the archive has a gap after it, "
                        "and a new base is taken",
                        place->where);
    pthread_mutex_lock(&a->mutex);
    a->shipped.gaps++;
    pthread_mutex_unlock(&a->mutex);
}

static bool read_listing(struct backup_ship *ship, struct place *place, struct rd_err *err)
{
    if (place->known)
        return true;
    if (!archive_stream_list(&place->repo, &place->listed, err))
        return false;
    place->known = true;
    look_for_lost_spool(ship, place);
    return true;
}

static bool open_place(struct backup_ship *ship, struct place *place, struct rd_err *err)
{
    if (place->store != NULL)
        return true;
    if (!backup_open_store(&place->store, ship->a->target, place->where, BACKUP_WRITE, err)) {
        place->store = NULL;
        return false;
    }
    place->repo = (struct archive_repo){.store = place->store,
                                        .target = ship->a->target->name,
                                        .ring = &ship->keys.ring,
                                        .lock = &place->hold.lock};
    if (backup_hold_try(&place->hold, place->store, err) && read_listing(ship, place, err)) {
        archive_stream_clean(&place->repo);
        archive_key_index_clean(&place->repo);
        return true;
    }
    rd_err_doing(err, "the repository %s", place->store->origin);
    close_place(place);
    return false;
}

/* A run that is alive, and a configuration that cannot work, end the service. Everything else may
 * pass. */
static void place_failed(struct backup_ship *ship, struct place *place, const struct rd_err *err)
{
    char line[600];
    bool first = !place->failing;
    close_place(place);
    const struct archive_lock *lock = &place->hold.lock;
    bool may_expire = err->code == RD_ERR_LOCKED && !lock->seen_alive && !lock->is_old;
    if ((err->code == RD_ERR_LOCKED && !may_expire) ||
        (err->code == RD_ERR_USAGE && ship->a->shipped.segments == 0 && !place->known)) {
        backup_archiver_give_up(ship->a, err);
        return;
    }
    uint64_t ms = backup_archiver_backoff(&place->wait_ms, BACKUP_ARCHIVER_RETRY_MS,
                                          BACKUP_ARCHIVER_RETRY_MAX_MS);
    place->next_ms = capture_now_ms() + ms;
    place->failing = true;
    if (first)
        backup_archiver_say(ship->a, "repository-failed", true, "%s; trying again",
                            rd_err_render(err, line, sizeof line));
}

/* Trying again would not help. The other repositories get the stream; without others, the service
 * ends. */
static void place_refused(struct backup_ship *ship, struct place *place, const struct rd_err *err)
{
    char line[600];
    bool any = false;
    close_place(place);
    place->failing = place->refused = true;
    for (size_t i = 0; i < ship->n; i++)
        any = any || !ship->places[i].refused;
    if (any)
        backup_archiver_say(ship->a, "repository-refused", true,
                            "%s; nothing more is uploaded there",
                            rd_err_render(err, line, sizeof line));
    else
        backup_archiver_give_up(ship->a, err);
}

static void place_works(struct backup_ship *ship, struct place *place)
{
    if (place->failing)
        backup_archiver_say(ship->a, "repository-back", false, "%s accepts segments again",
                            place->where);
    place->failing = false;
    place->wait_ms = 0;
}

/* ---- one segment ---- */

struct item {
    struct archive_segment segment;
    char name[REPL_CAPTURE_NAME];
    char path[BACKUP_PATH_MAX];
    uint64_t size;
    const uint8_t *before; /* SHA-256 of the segment before it; NULL: not known */
};

/* Reads the whole segment, because damaged segments must not be shipped. */
static bool measure(struct backup_ship *ship, const struct repl_capture_segment *header,
                    struct item *ret, struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    if (!backup_archiver_path(ret->path, ship->a, header->name, err) ||
        !segment_in_open_in(&in, &ship->a->fs, header->number, header->start, err)) {
        rd_err_origin(err, ret->path);
        return false;
    }
    memcpy(ret->name, header->name, sizeof ret->name);
    archive_segment_of(&ret->segment, ship->a->run, &in.header);
    ret->segment.compression = ship->settings.compression;
    ret->segment.sealed = ship->key != NULL;
    ret->segment.first_ms = INT64_MAX;
    ret->size = in.size;
    bool ok = segment_in_verify(&in, err);
    backup_ship_index_begin(&ship->index, &in);
    while (ok && segment_in_next(&in, &ev, err)) {
        archive_segment_note_time(&ret->segment, ev.time_us);
        backup_ship_index_add(&ship->index, &ev);
    }
    ok = ok && !in.failed;
    if (ok)
        backup_ship_index_end(&ship->index, &in);
    archive_segment_end_times(&ret->segment, &in.header);
    segment_in_close(&in);
    if (!ok)
        rd_err_origin(err, ret->path);
    return ok;
}

static bool put(struct backup_ship *ship, struct place *place, const struct item *item,
                struct rd_src *src, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_file file = {.compression = item->segment.compression};
    struct archive_pipe pipe = {
        .level = ship->settings.level, .key = ship->key, .name = name, .before = item->before};
    struct rd_sink *sink;
    bool ok = archive_segment_name(name, &place->repo, &item->segment, err) &&
              backup_random(pipe.random, sizeof pipe.random, err) &&
              archive_segment_put(&place->repo, &item->segment, &sink, err) &&
              archive_pipe_open_sink(&sink, sink, &pipe, &file, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    if (!ok)
        return false;
    if (rd_pump(src, sink, NULL, NULL, err))
        return rd_sink_close(sink, err) &&
               archive_segment_kept(&place->repo, &item->segment, file.stored.bytes, err);
    rd_sink_abort(sink);
    return false;
}

static bool upload(struct backup_ship *ship, struct place *place, const struct item *item,
                   struct rd_err *err)
{
    struct rd_src *src;
    if (!backup_spool_file_open(&src, &ship->a->fs, item->name, item->path, err))
        return false;
    bool ok = put(ship, place, item, src, err);
    rd_src_close(src);
    return ok;
}

static bool sum_file(struct backup_ship *ship, const struct item *item,
                     struct archive_store_sum *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!backup_spool_file_open(&src, &ship->a->fs, item->name, item->path, err))
        return false;
    bool ok = archive_store_sum_src(src, ret, err);
    rd_src_close(src);
    return ok;
}

/* The same of its commands. */
static bool sum_spool(struct backup_ship *ship, const struct item *item,
                      struct backup_stream_sum *ret, struct rd_err *err)
{
    struct segment_in in;
    bool ok = segment_in_open_in(&in, &ship->a->fs, item->segment.number, item->segment.start, err);
    if (ok) {
        ok = backup_stream_sum_segment(&in, item->segment.start, item->segment.end, ret, err);
        segment_in_close(&in);
    }
    if (!ok)
        rd_err_origin(err, item->path);
    return ok;
}

static void set_foreign(struct rd_err *err, const struct rd_err *why)
{
    static const struct rd_err_reason reason = {.id = ARCHIVE_REASON_FOREIGN};
    struct rd_err bare = *why;
    char line[RD_ERR_TEXT_MAX];
    bare.origin[0] = '\0';
    if (why->code == RD_ERR_OK)
        rd_err_set_reason(err, RD_ERR_CORRUPT, RD_NO_OFFSET, reason,
                          "the repository has other data in the place of a segment of the spool");
    else if (why->reason.id == RD_SEAL_REASON_KEY) /* it may be the segment all the same */
        rd_err_set_reason(err, why->code, RD_NO_OFFSET, why->reason,
                          "what the repository has in its place cannot be read: %s", why->text);
    else
        rd_err_set_reason(err, why->code, RD_NO_OFFSET, reason,
                          "the repository has an object in the place of a segment of the spool "
                          "that is not this segment: %s",
                          rd_err_render(&bare, line, sizeof line));
}

/* The error of a comparison, with the name of what was compared. */
static enum archive_store_proof conclude(enum archive_store_proof proof,
                                         const struct archive_segment *there,
                                         const struct rd_err *why, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    archive_segment_bound(name, there);
    if (proof == ARCHIVE_STORE_OTHER || proof == ARCHIVE_STORE_OPAQUE)
        set_foreign(err, why);
    else
        rd_err_adopt(err, why);
    rd_err_origin(err, name);
    return proof;
}

/* Whether an object of an earlier run, or of a lost answer, holds the segment. A sealed object has
 * other bytes each time, so what it holds is compared. */
static enum archive_store_proof compare(struct backup_ship *ship, struct place *place,
                                        const struct item *item,
                                        const struct archive_segment *there, struct rd_err *err)
{
    struct archive_store_sum plain;
    struct rd_err why = {0};
    if (!sum_file(ship, item, &plain, err))
        return ARCHIVE_STORE_FAILED;
    enum archive_store_proof proof =
        archive_segment_prove(&place->repo, there, &ship->keys.ring, &plain, &why);
    return conclude(proof, there, &why, err);
}

/* Whether the segment is one of those of which a segment of the repository was made. */
static enum archive_store_proof compare_part(struct backup_ship *ship, struct place *place,
                                             const struct item *item,
                                             const struct archive_segment *there,
                                             struct rd_err *err)
{
    struct backup_stream_sum spool, store;
    struct rd_err why = {0};
    if (!sum_spool(ship, item, &spool, err))
        return ARCHIVE_STORE_FAILED;
    enum archive_store_proof proof =
        backup_stream_sum_stored(&place->repo, there, &ship->keys.ring, item->segment.start,
                                 item->segment.end, &store, &why);
    if (proof == ARCHIVE_STORE_SAME && !backup_stream_sum_same(&spool, &store))
        proof = ARCHIVE_STORE_OTHER;
    return conclude(proof, there, &why, err);
}

/* Compares everything that the listing has in the place of a segment: the compression and the seal
 * may be those of an earlier configuration, and it may be a part of a larger one. An object that is
 * not the segment decides, because nothing can be restored after two segments with one number. */
static enum archive_store_proof compare_listed(struct backup_ship *ship, struct place *place,
                                               const struct item *item, struct rd_err *err)
{
    enum archive_store_proof found = ARCHIVE_STORE_ABSENT;
    const struct archive_stream *listed = &place->listed;
    for (size_t i = 0; i < listed->n + listed->n_covered; i++) {
        const struct archive_segment *s =
            i < listed->n ? &listed->segments[i] : &listed->covered[i - listed->n];
        if (s->number > item->segment.number || archive_segment_last(s) < item->segment.number ||
            strcmp(s->run, item->segment.run) != 0)
            continue;
        enum archive_store_proof proof = s->last == 0 ? compare(ship, place, item, s, err)
                                                      : compare_part(ship, place, item, s, err);
        if (proof != ARCHIVE_STORE_ABSENT)
            found = proof;
        if (proof != ARCHIVE_STORE_ABSENT && proof != ARCHIVE_STORE_SAME)
            break;
    }
    return found;
}

/* After this the segment is proved to be in the repository. */
static bool put_once(struct backup_ship *ship, struct place *place, const struct item *item,
                     bool *ret_uploaded, struct rd_err *err)
{
    struct rd_err why = {0};
    enum archive_store_proof proof = compare_listed(ship, place, item, &why);
    if (proof == ARCHIVE_STORE_ABSENT) {
        *ret_uploaded = upload(ship, place, item, &why);
        if (*ret_uploaded)
            return true;
        if (archive_store_exists(&why)) {
            rd_err_reset(&why);
            proof = compare(ship, place, item, &item->segment, &why);
        }
    }
    if (proof == ARCHIVE_STORE_SAME)
        return true;
    rd_err_adopt(err, &why);
    rd_err_doing(err, "the repository %s", place->store->origin);
    return false;
}

static void count_shipped(struct backup_ship *ship, const struct item *item)
{
    struct backup_archiver *a = ship->a;
    pthread_mutex_lock(&a->mutex);
    a->shipped.segments++;
    a->shipped.bytes += item->size;
    a->shipped.stream_bytes += item->segment.end - item->segment.start;
    a->shipped.last_ms = backup_now_ms();
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

/* The newest segment that the listing has up to this one; 0: none. */
static uint64_t newest_listed(const struct backup_ship *ship, const struct place *place,
                              uint64_t number)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < place->listed.n; i++) {
        const struct archive_segment *s = &place->listed.segments[i];
        uint64_t last = archive_segment_last(s) < number ? archive_segment_last(s) : number;
        if (strcmp(s->run, ship->a->run) == 0 && s->number <= number && last > newest)
            newest = last;
    }
    return newest;
}

/* Numbers that are missing were removed because the spool was full, or were damaged. */
static void look_for_hole(struct backup_ship *ship, struct place *place,
                          const struct repl_capture_segment *header)
{
    struct backup_archiver *a = ship->a;
    if (place->seen == 0)
        place->seen = newest_listed(ship, place, header->number);
    uint64_t n =
        place->seen != 0 && header->number > place->seen + 1 ? header->number - place->seen - 1 : 0;
    place->seen = header->number;
    if (n == 0)
        return;
    backup_archiver_say(a, "gap", true,
                        "%" PRIu64 " segment%s before offset %" PRIu64
                        " did not reach %s: the stream has a gap, and a new base is taken",
                        n, rd_show_plural(n), header->start, place->where);
    pthread_mutex_lock(&a->mutex);
    a->shipped.gaps++;
    a->want_base = true;
    pthread_mutex_unlock(&a->mutex);
}

static bool due(const struct place *place, struct backup_archiver *a)
{
    return place->next_ms == 0 || atomic_load(&a->draining) || capture_now_ms() >= place->next_ms;
}

/* Says so once. Until the spool can be read again, it is not known what waits in it. */
static void spool_failed(struct backup_ship *ship, const struct rd_err *err)
{
    char line[600];
    if (!ship->spool_said)
        backup_archiver_say(ship->a, "spool", true, "the spool cannot be read: %s; trying again",
                            rd_err_render(err, line, sizeof line));
    ship->spool_said = ship->spool_failing = true;
}

/* Not the fault of the repository. A damaged segment makes a gap; it is kept under another name for
 * a salvage. Everything else may pass, and a segment that is gone was removed because the spool was
 * full. */
static void segment_failed(struct backup_ship *ship, const struct item *item,
                           const struct rd_err *err)
{
    const struct rd_fs *fs = &ship->a->fs;
    char line[600], aside[REPL_CAPTURE_NAME + 16];
    bool damaged = err->code == RD_ERR_CORRUPT || err->code == RD_ERR_TRUNCATED ||
                   err->code == RD_ERR_CHECKSUM;
    snprintf(aside, sizeof aside, "%s.damaged", item->name);
    if (damaged && fs->rename(fs->ctx, item->name, aside) == 0)
        backup_archiver_say(ship->a, "spool", true, "a segment of the spool is left out: %s",
                            rd_err_render(err, line, sizeof line));
    else if (err->sys != ENOENT)
        spool_failed(ship, err);
}

/* Bound into the seal, so that segments of two archives that were taken for one are noticed. */
static const uint8_t *digest_before(const struct backup_ship *ship,
                                    const struct repl_capture_segment *header)
{
    const struct repl_capture_segment *last = &ship->last;
    return last->number != 0 && last->number + 1 == header->number ? last->sha256 : NULL;
}

/* Whether it is proved that all repositories have the segment now. */
static bool ship_segment(struct backup_ship *ship, const struct repl_capture_segment *header,
                         const bool *tried)
{
    struct item item = {.before = digest_before(ship, header)};
    bool measured = false, all = true, any_new = false;
    bool has[BACKUP_STORES] = {false}, has_new[BACKUP_STORES] = {false};
    for (size_t i = 0; i < ship->n; i++) {
        struct place *place = &ship->places[i];
        struct rd_err err = {0};
        bool is_new = false;
        if (place->upto >= header->number)
            continue;
        if (place->refused || (place->failing && (tried[i] || !due(place, ship->a)))) {
            all = false;
            continue;
        }
        bool ok = open_place(ship, place, &err);
        if (ok && !measured && !measure(ship, header, &item, &err)) {
            backup_ship_index_drop(&ship->index);
            segment_failed(ship, &item, &err);
            return false;
        }
        measured = measured || ok;
        ok = ok && put_once(ship, place, &item, &is_new, &err);
        any_new = any_new || is_new;
        if (!ok) {
            if (err.reason.id == ARCHIVE_REASON_FOREIGN || err.reason.id == RD_SEAL_REASON_KEY)
                place_refused(ship, place, &err);
            else
                place_failed(ship, place, &err);
            all = false;
            continue;
        }
        if (header->number > place->seen)
            look_for_hole(ship, place, header);
        place->upto = header->number;
        place_works(ship, place);
        has[i] = true;
        has_new[i] = is_new;
    }
    if (all && any_new)
        count_shipped(ship, &item);
    for (size_t i = 0; i < ship->n; i++)
        if (has[i])
            backup_ship_index_put(&ship->index, i, &ship->places[i].repo, &item.segment,
                                  has_new[i]);
    backup_ship_index_drop(&ship->index);
    return all;
}

/* ---- the spool ---- */

static bool has_snapshot_file(const struct backup_ship *ship,
                              const struct repl_capture_segment *header)
{
    char name[REPL_CAPTURE_NAME];
    uint64_t size;
    if (!header->has_snapshot)
        return false;
    repl_capture_snapshot_name(header, name);
    return ship->a->fs.size(ship->a->fs.ctx, name, &size) != -ENOENT;
}

static void publish_spool(struct backup_ship *ship)
{
    struct backup_archiver *a = ship->a;
    if (ship->spool_said && !ship->spool_failing)
        backup_archiver_say(a, "spool-back", false, "the spool can be read again");
    ship->spool_said = ship->spool_failing;
    pthread_mutex_lock(&a->mutex);
    a->shipped.looked = true;
    a->shipped.spool_failing = ship->spool_failing;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static void publish(struct backup_ship *ship, const struct repl_capture_list *list,
                    size_t n_shipped)
{
    struct backup_archiver *a = ship->a;
    size_t n = 0;
    int64_t oldest_us = INT64_MAX;
    for (size_t i = n_shipped; i < list->n; i++) {
        if (!list->segments[i].closed)
            continue;
        n++;
        if (oldest_us == INT64_MAX)
            oldest_us = list->segments[i].start_us;
    }
    bool failing = false;
    for (size_t i = 0; i < ship->n; i++)
        failing = failing || ship->places[i].failing;
    pthread_mutex_lock(&a->mutex);
    a->shipped.n_waiting = n;
    a->shipped.oldest_us = oldest_us;
    a->shipped.failing = failing;
    if (n_shipped > 0)
        a->shipped.offset = list->segments[n_shipped - 1].end;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static void ship_spool(struct backup_ship *ship)
{
    const struct backup_archiver *a = ship->a;
    struct repl_capture_list list;
    struct rd_err err = {0};
    bool tried[BACKUP_STORES] = {false};
    size_t n_shipped = 0;
    if (!repl_capture_list(&list, &a->fs, &err)) {
        rd_err_origin(&err, a->spool);
        spool_failed(ship, &err);
        return;
    }
    for (size_t i = 0; i < list.n && list.segments[i].closed; i++) {
        if (!ship_segment(ship, &list.segments[i], tried))
            break;
        ship->last = list.segments[i];
        n_shipped = i + 1;
        if (i + 1 < list.n && !has_snapshot_file(ship, &list.segments[i])) {
            a->fs.unlink(a->fs.ctx, list.segments[i].name);
            repl_capture_unlink_keys(&a->fs, list.segments[i].name);
        }
        for (size_t k = 0; k < ship->n; k++)
            tried[k] = ship->places[k].failing;
        publish(ship, &list, n_shipped);
    }
    publish(ship, &list, n_shipped);
    repl_capture_list_done(&list);
}

void backup_ship_turn(struct backup_ship *ship)
{
    ship->spool_failing = false;
    ship_spool(ship);
    publish_spool(ship);
}

/* ---- the thread ---- */

static bool add_place(struct backup_ship *ship, const char *where, struct rd_err *err)
{
    struct place *place = &ship->places[ship->n];
    place->where = where;
    if (!backup_hold_init(&place->hold, ship->a->target, where, ARCHIVE_LOCK_STREAM, "archive",
                          err))
        return false;
    ship->n++;
    return true;
}

static bool add_places(struct backup_ship *ship, struct rd_err *err)
{
    const char *where;
    for (size_t i = 0; (where = backup_repository(ship->a->target, i)) != NULL; i++)
        if (!add_place(ship, where, err))
            return false;
    return true;
}

static bool begin_index(struct backup_ship *ship, struct rd_err *err)
{
    const struct backup_target *target = ship->a->target;
    bool yes;
    if (!backup_get_bool(target, BACKUP_KEY_KEY_INDEX, &yes, err))
        return false;
    ship->index =
        (struct ship_index){.a = ship->a,
                            .key = ship->key,
                            .on = yes || backup_get(target, BACKUP_KEY_KEY_INDEX) == NULL};
    return true;
}

static bool begin(struct backup_ship *ship, struct rd_err *err)
{
    return add_places(ship, err) && backup_keys_open(&ship->keys, ship->a->target, err) &&
           backup_keys_seal(&ship->keys, &ship->key, err) &&
           backup_settings(ship->a->target, &ship->settings, err) && begin_index(ship, err);
}

/* At the beginning, so that a second run and a wrong key are found at once. */
static void open_all(struct backup_ship *ship)
{
    for (size_t i = 0; i < ship->n; i++) {
        struct rd_err err = {0};
        if (!open_place(ship, &ship->places[i], &err))
            place_failed(ship, &ship->places[i], &err);
    }
}

static bool finished(struct backup_archiver *a)
{
    return a->fatal.code != RD_ERR_OK ||
           (atomic_load(&a->draining) &&
            (a->shipped.n_waiting == 0 || a->shipped.failing || a->shipped.spool_failing));
}

struct backup_ship *backup_ship_new(struct backup_archiver *a)
{
    struct rd_err err = {0};
    struct backup_ship *ship = rd_calloc(1, sizeof *ship);
    if (ship == NULL) {
        rd_err_nomem(&err, sizeof *ship);
        backup_archiver_give_up(a, &err);
        return NULL;
    }
    ship->a = a;
    if (begin(ship, &err))
        open_all(ship);
    else
        backup_archiver_give_up(a, &err);
    return ship;
}

void backup_ship_free(struct backup_ship *ship)
{
    for (size_t i = 0; ship != NULL && i < ship->n; i++) {
        close_place(&ship->places[i]);
        archive_stream_done(&ship->places[i].listed);
        backup_hold_done(&ship->places[i].hold);
    }
    if (ship != NULL)
        backup_keys_done(&ship->keys);
    rd_free(ship);
}

void *backup_ship_run(void *archiver)
{
    struct backup_archiver *a = archiver;
    struct backup_ship *ship = backup_ship_new(a);
    for (bool over = false; !over;) {
        pthread_mutex_lock(&a->mutex);
        bool last = atomic_load(&a->draining);
        bool dead = a->fatal.code != RD_ERR_OK;
        pthread_mutex_unlock(&a->mutex);
        if (!dead)
            backup_ship_turn(ship);
        pthread_mutex_lock(&a->mutex);
        over = dead || (last && finished(a));
        if (!over && !atomic_load(&a->draining))
            backup_archiver_wait(a, BACKUP_ARCHIVER_LOOK_MS);
        pthread_mutex_unlock(&a->mutex);
    }
    backup_ship_free(ship);
    pthread_mutex_lock(&a->mutex);
    a->shipped.ended = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}
