#include "backup/ship_index.h"

#include <string.h>

#include "backup/system.h"
#include "capture/clock.h"

enum { PAUSE_MS = 60000, PAUSE_MAX_MS = 3600000 };

static void failed(struct ship_index *index, const char *what, const struct rd_err *err)
{
    char line[600];
    if (!index->said)
        backup_archiver_say(index->a, "index", true,
                            "cannot %s an index of keys: %s; the stream is archived without it",
                            what, rd_err_render(err, line, sizeof line));
    index->said = true;
}

static void not_made(struct ship_index *index, const struct rd_err *err)
{
    failed(index, "make", err);
    backup_key_index_done(&index->made);
}

void backup_ship_index_begin(struct ship_index *index, const struct segment_in *in)
{
    uint8_t salt[RD_SIPHASH_KEY];
    struct rd_err err = {0};
    backup_ship_index_drop(index);
    if (index->on && (!backup_random(salt, sizeof salt, &err) ||
                      !backup_key_index_begin(&index->made, &in->header, salt, &err)))
        not_made(index, &err);
}

void backup_ship_index_add(struct ship_index *index, const struct repl_capture_event *ev)
{
    struct rd_err err = {0};
    if (index->made.open && !backup_key_index_add(&index->made, ev, &err))
        not_made(index, &err);
}

void backup_ship_index_end(struct ship_index *index, const struct segment_in *in)
{
    struct rd_err err = {0};
    index->ready = index->made.open && backup_key_index_end(&index->made, in, &err);
    if (index->made.open && !index->ready)
        not_made(index, &err);
}

static bool put(struct ship_index *index, struct archive_repo *repo,
                const struct archive_segment *segment, struct rd_err *err)
{
    uint8_t random[RD_SEAL_RANDOM];
    struct rd_sink *sink;
    bool ok = backup_random(random, sizeof random, err) &&
              archive_key_index_put(repo, segment, index->key, random, &sink, err);
    explicit_bzero(random, sizeof random);
    if (!ok)
        return false;
    if (backup_key_index_copy(&index->made, sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

void backup_ship_index_put(struct ship_index *index, size_t i, struct archive_repo *repo,
                           const struct archive_segment *segment, bool is_new)
{
    struct rd_err err = {0};
    bool there = false;
    if (!index->ready || capture_now_ms() < index->next_ms[i])
        return;
    bool ok = (is_new || archive_key_index_stat(repo, segment, &there, &err)) &&
              (there || put(index, repo, segment, &err));
    if (ok || archive_store_exists(&err)) {
        index->pause_ms[i] = 0;
        return;
    }
    rd_err_doing(&err, "the repository %s", repo->store->origin);
    failed(index, "store", &err);
    index->next_ms[i] =
        capture_now_ms() + backup_archiver_backoff(&index->pause_ms[i], PAUSE_MS, PAUSE_MAX_MS);
}

void backup_ship_index_drop(struct ship_index *index)
{
    backup_key_index_done(&index->made);
    index->ready = false;
}
