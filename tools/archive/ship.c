/* ship.c - the thread that uploads the closed segments of the spool to the repositories.
 *
 * Segments are uploaded to each repository independently, in order. A segment is removed from the
 * spool when all repositories have it. The newest one stays, because the capture resumes after it,
 * and so does a segment whose snapshot is not a set yet. The listing of a repository shows which
 * segments it has, so a restart resumes where the last run stopped.
 */
#include "base/pump.h"
#include "tools/archive/priv.h"
#include "tools/input/segment_in.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

struct place {
    const char *where;
    struct archive_store *store; /* NULL: not open */
    struct archive_repo repo;
    bool known;       /* `upto` was read from the listing */
    uint64_t upto;    /* the number of the newest segment that is there; 0: none */
    uint64_t seen;    /* the newest one that was looked at, for gaps */
    uint64_t wait_ms; /* before the next try */
    uint64_t next_ms;
    bool failing;
};

struct ship {
    struct archiver *a;
    struct place places[VAULT_STORES];
    size_t n;
    struct vault_keys keys;
    const struct rd_seal_key *key;
    struct set_writer settings; /* compression */
    struct rd_fs fs;
    bool has_fs;
};

bool archive_spool_path(char ret[ARCHIVE_PATH_MAX], const struct archiver *a, const char *name,
                        struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_PATH_MAX, "%s/%s", a->spool, name);
    return (len > 0 && len < ARCHIVE_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path of the spool is too long");
}

/* ---- repositories ---- */

static void close_place(struct place *place)
{
    archive_store_close(place->store);
    place->store = NULL;
}

static bool read_listing(struct ship *ship, struct place *place, struct rd_err *err)
{
    struct archive_stream stream;
    if (place->known)
        return true;
    if (!archive_stream_list(&place->repo, &stream, err))
        return false;
    for (size_t i = 0; i < stream.n; i++)
        if (strcmp(stream.segments[i].run, ship->a->run) == 0)
            place->upto = stream.segments[i].number;
    place->seen = place->upto;
    place->known = true;
    archive_stream_done(&stream);
    return true;
}

static bool open_place(struct ship *ship, struct place *place, struct rd_err *err)
{
    if (place->store != NULL)
        return true;
    if (!vault_open_store(&place->store, ship->a->target, place->where, VAULT_WRITE, err)) {
        place->store = NULL;
        return false;
    }
    place->repo = (struct archive_repo){.store = place->store, .target = ship->a->target->name};
    if (archive_stream_lock(&place->repo, ship->a->owner, err) && read_listing(ship, place, err))
        return true;
    rd_err_doing(err, "the repository %s", place->store->origin);
    close_place(place);
    return false;
}

/* Another run, and a configuration that cannot work, end the service; everything else may pass. */
static void place_failed(struct ship *ship, struct place *place, const struct rd_err *err)
{
    char line[600];
    bool first = !place->failing;
    close_place(place);
    if (err->code == RD_ERR_LOCKED ||
        (err->code == RD_ERR_USAGE && ship->a->shipped.segments == 0 && !place->known)) {
        archive_give_up(ship->a, err);
        return;
    }
    uint64_t ms = archive_backoff(&place->wait_ms);
    place->next_ms = capture_now_ms() + ms;
    place->failing = true;
    if (first)
        archive_say(ship->a, "repository-failed", true, "%s; trying again",
                    rd_err_render(err, line, sizeof line));
}

static void place_works(struct ship *ship, struct place *place)
{
    if (place->failing)
        archive_say(ship->a, "repository-back", false, "%s accepts segments again", place->where);
    place->failing = false;
    place->wait_ms = 0;
}

/* ---- one segment ---- */

struct item {
    struct archive_segment segment;
    char path[ARCHIVE_PATH_MAX];
    uint64_t size;
};

/* Reads the whole segment, because damaged segments must not be shipped. */
static bool measure(struct ship *ship, const struct repl_capture_segment *header, struct item *ret,
                    struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    if (!archive_spool_path(ret->path, ship->a, header->name, err) ||
        !segment_in_open_file(&in, ret->path, header->number, header->start, err))
        return false;
    archive_segment_of(&ret->segment, ship->a->run, &in.header);
    ret->segment.compression = ship->settings.compression;
    ret->segment.sealed = ship->key != NULL;
    ret->segment.first_ms = INT64_MAX;
    ret->size = in.size;
    bool ok = segment_in_verify(&in, err);
    while (ok && segment_in_next(&in, &ev, err))
        archive_segment_note_time(&ret->segment, ev.time_us);
    ok = ok && !in.failed;
    archive_segment_end_times(&ret->segment, &in.header);
    segment_in_close(&in);
    if (!ok)
        rd_err_origin(err, ret->path);
    return ok;
}

static bool put(struct ship *ship, struct place *place, const struct item *item, struct rd_src *src,
                struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct archive_file file = {.compression = item->segment.compression};
    struct archive_pipe pipe = {.level = ship->settings.level, .key = ship->key, .name = bound};
    struct rd_sink *sink;
    archive_segment_bound(bound, &item->segment);
    bool ok = vault_random(pipe.random, sizeof pipe.random, err) &&
              archive_segment_put(&place->repo, &item->segment, &sink, err) &&
              archive_pipe_open_sink(&sink, sink, &pipe, &file, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    if (!ok)
        return false;
    if (rd_pump(src, sink, NULL, NULL, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

/* An object that already exists was put by a run that was killed before it could note that. */
static bool put_once(struct ship *ship, struct place *place, const struct item *item,
                     struct rd_err *err)
{
    struct rd_src *src;
    struct rd_err why = {0};
    if (!rd_src_open_file(&src, item->path, NULL, err))
        return false;
    bool ok = put(ship, place, item, src, &why);
    rd_src_close(src);
    if (!ok && why.code == RD_ERR_USAGE)
        ok = true;
    if (!ok) {
        rd_err_adopt(err, &why);
        rd_err_doing(err, "the repository %s", place->store->origin);
    }
    return ok;
}

static void count_shipped(struct ship *ship, const struct item *item)
{
    struct archiver *a = ship->a;
    pthread_mutex_lock(&a->mutex);
    a->shipped.segments++;
    a->shipped.bytes += item->size;
    a->shipped.stream_bytes += item->segment.end - item->segment.start;
    a->shipped.last_ms = cli_now_ms();
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

/* Numbers that are missing were removed because the spool was full, or were damaged. */
static void look_for_hole(struct ship *ship, struct place *place,
                          const struct repl_capture_segment *header)
{
    struct archiver *a = ship->a;
    uint64_t n =
        place->seen != 0 && header->number > place->seen + 1 ? header->number - place->seen - 1 : 0;
    place->seen = header->number;
    if (n == 0)
        return;
    archive_say(a, "gap", true,
                "%" PRIu64 " segment%s before offset %" PRIu64
                " did not reach %s: the stream has a gap, and a new base is taken",
                n, cli_plural(n), header->start, place->where);
    pthread_mutex_lock(&a->mutex);
    a->shipped.gaps++;
    a->want_base = true;
    pthread_mutex_unlock(&a->mutex);
}

static bool due(const struct place *place, struct archiver *a)
{
    return place->next_ms == 0 || atomic_load(&a->draining) || capture_now_ms() >= place->next_ms;
}

/* Not the fault of the repository. A damaged segment is removed, which makes a gap; everything
 * else may pass. */
static void spool_failed(struct ship *ship, const struct item *item, const struct rd_err *err)
{
    char line[600];
    bool damaged = rd_err_exit_status(err->code) == CLI_FINDINGS;
    if (damaged)
        unlink(item->path);
    if (damaged || err->sys != ENOENT)
        archive_say(ship->a, "spool", true, "%s%s",
                    damaged ? "a segment of the spool is left out: " : "",
                    rd_err_render(err, line, sizeof line));
}

/* Whether all repositories have the segment now. */
static bool ship_segment(struct ship *ship, const struct repl_capture_segment *header,
                         const bool *tried)
{
    struct item item = {.size = 0};
    bool measured = false, all = true;
    for (size_t i = 0; i < ship->n; i++) {
        struct place *place = &ship->places[i];
        struct rd_err err = {0};
        if (place->known && place->upto >= header->number)
            continue;
        if (place->failing && (tried[i] || !due(place, ship->a))) {
            all = false;
            continue;
        }
        bool ok = open_place(ship, place, &err);
        if (ok && place->upto >= header->number)
            continue;
        if (ok && !measured && !measure(ship, header, &item, &err)) {
            spool_failed(ship, &item, &err);
            return false;
        }
        measured = measured || ok;
        ok = ok && put_once(ship, place, &item, &err);
        if (!ok) {
            place_failed(ship, place, &err);
            all = false;
            continue;
        }
        look_for_hole(ship, place, header);
        place->upto = header->number;
        place_works(ship, place);
    }
    if (all && measured)
        count_shipped(ship, &item);
    return all;
}

/* ---- the spool ---- */

static bool has_snapshot_file(const struct ship *ship, const struct repl_capture_segment *header)
{
    char name[REPL_CAPTURE_NAME];
    uint64_t size;
    if (!header->has_snapshot)
        return false;
    repl_capture_snapshot_name(header, name);
    return ship->fs.size(ship->fs.ctx, name, &size) == 0;
}

static void publish(struct ship *ship, const struct repl_capture_list *list, size_t n_shipped)
{
    struct archiver *a = ship->a;
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

static void ship_all(struct ship *ship)
{
    struct repl_capture_list list;
    struct rd_err err = {0};
    bool tried[VAULT_STORES] = {false};
    size_t n_shipped = 0;
    char line[600];
    if (!repl_capture_list(&list, &ship->fs, &err)) {
        /* A segment may have vanished between the listing and the reading. */
        if (err.code != RD_ERR_IO)
            archive_say(ship->a, "spool", true, "%s", rd_err_render(&err, line, sizeof line));
        return;
    }
    for (size_t i = 0; i < list.n && list.segments[i].closed; i++) {
        if (!ship_segment(ship, &list.segments[i], tried))
            break;
        n_shipped = i + 1;
        if (i + 1 < list.n && !has_snapshot_file(ship, &list.segments[i]))
            ship->fs.unlink(ship->fs.ctx, list.segments[i].name);
        for (size_t k = 0; k < ship->n; k++)
            tried[k] = ship->places[k].failing;
        publish(ship, &list, n_shipped);
    }
    publish(ship, &list, n_shipped);
    repl_capture_list_done(&list);
}

/* ---- the thread ---- */

static bool begin(struct ship *ship, struct rd_err *err)
{
    const struct vault_conf *conf = &ship->a->target->conf;
    ship->places[ship->n++].where = vault_get(ship->a->target, VAULT_KEY_REPOSITORY);
    for (size_t i = 0; i < conf->n_more; i++)
        ship->places[ship->n++].where = conf->more[i];
    ship->has_fs = rd_fs_open_folder(&ship->fs, ship->a->spool, false, err);
    return ship->has_fs && vault_keys_open(&ship->keys, ship->a->target, err) &&
           vault_keys_seal(&ship->keys, &ship->key, err) &&
           backup_settings(ship->a->target, &ship->settings, err);
}

/* At the beginning, so that a second run and a wrong key are found at once. */
static void open_all(struct ship *ship)
{
    for (size_t i = 0; i < ship->n; i++) {
        struct rd_err err = {0};
        if (!open_place(ship, &ship->places[i], &err))
            place_failed(ship, &ship->places[i], &err);
    }
}

static bool finished(struct archiver *a)
{
    return a->fatal.code != RD_ERR_OK ||
           (atomic_load(&a->draining) && (a->shipped.n_waiting == 0 || a->shipped.failing));
}

void *archive_ship(void *archiver)
{
    struct archiver *a = archiver;
    struct ship ship = {.a = a};
    struct rd_err err = {0};
    if (begin(&ship, &err))
        open_all(&ship);
    else
        archive_give_up(a, &err);
    for (bool over = false; !over;) {
        pthread_mutex_lock(&a->mutex);
        bool last = atomic_load(&a->draining);
        bool dead = a->fatal.code != RD_ERR_OK;
        pthread_mutex_unlock(&a->mutex);
        if (!dead)
            ship_all(&ship);
        pthread_mutex_lock(&a->mutex);
        over = dead || (last && finished(a));
        if (!over && !atomic_load(&a->draining))
            archive_wait(a, ARCHIVE_LOOK_MS);
        pthread_mutex_unlock(&a->mutex);
    }
    for (size_t i = 0; i < ship.n; i++)
        close_place(&ship.places[i]);
    vault_keys_done(&ship.keys);
    if (ship.has_fs)
        rd_fs_close_posix(&ship.fs);
    pthread_mutex_lock(&a->mutex);
    a->shipped.ended = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}
