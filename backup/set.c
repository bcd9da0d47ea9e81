#include "backup/set.h"

#include "backup/chunked.h"
#include "backup/system.h"
#include "base/mem.h"
#include "base/pump.h"
#include "base/show.h"

#include <stdio.h>

bool backup_set_begin(struct backup_set *set, int64_t now_ms, struct rd_err *err)
{
    uint32_t chance;
    if (!backup_random(&chance, sizeof chance, err) ||
        !backup_keys_seal(&set->open->keys, &set->key, err))
        return false;
    archive_make_id(set->m.id, now_ms, chance);
    set->m.begin_ms = now_ms;
    snprintf(set->m.target, sizeof set->m.target, "%s", set->open->target->name);
    snprintf(set->m.tool, sizeof set->m.tool, "redoubt %s", REDOUBT_VERSION_STRING);
    backup_host(set->m.host);
    if (set->key != NULL)
        rd_seal_key_id(set->key, set->m.key_id);
    bool ok = true;
    for (size_t i = 0; ok && i < set->n_tags; i++)
        ok = archive_manifest_add_tag(&set->m, &set->tags[i], err);
    return ok;
}

/* Repositories that have not failed. */
static bool alive(const struct backup_open *open, size_t i)
{
    return open->stores[i] != NULL && open->errs[i].code == RD_ERR_OK;
}

static bool none_left(const struct backup_open *open, struct rd_err *err)
{
    for (size_t i = 0; i < open->n; i++)
        if (alive(open, i))
            return false;
    rd_err_adopt(err, &open->errs[0]);
    return true;
}

static bool open_one(struct backup_set *set, size_t i, struct rd_sink **ret, struct rd_err *err)
{
    if (set->file.compression == ARCHIVE_COMPRESSION_CHUNKS)
        return backup_chunked_begin(set, i, ret, err);
    return archive_repo_put(&set->open->repos[i], set->m.id, set->file.object, ret, err);
}

/* An object in each repository. */
static bool open_tee(struct backup_set *set, struct rd_sink **ret, struct rd_err *err)
{
    struct backup_open *open = set->open;
    set->tee = (struct archive_tee){.n = 0};
    for (size_t i = 0; i < open->n; i++) {
        struct archive_tee *tee = &set->tee;
        if (!alive(open, i) || !open_one(set, i, &tee->sinks[tee->n], &open->errs[i]))
            continue;
        set->place[tee->n++] = i;
    }
    return !none_left(open, err) && archive_tee_open(ret, &set->tee, err);
}

/* The writer of each repository seals and packs what it gets. */
static bool open_sums(struct backup_set *set, struct rd_sink *tee, struct rd_err *err)
{
    if (archive_sums_open_sink(&set->sink, tee, &set->file.plain, err))
        return true;
    rd_sink_abort(tee);
    return false;
}

bool backup_set_file_begin(struct backup_set *set, const char *name, enum archive_role role,
                           struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct archive_pipe pipe = {.level = set->level, .key = set->key, .name = bound};
    struct rd_sink *tee;
    bool chunks = backup_chunked_role(set, role);
    set->file = (struct archive_file){
        .role = role, .compression = chunks ? ARCHIVE_COMPRESSION_CHUNKS : set->compression};
    if (!archive_file_set_name(&set->file, name, set->key != NULL, NULL) || !archive_name_ok(name))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "the file name %s is not allowed in a repository",
                          rd_show_quote(rd_slice_str(name)).s);
    if (chunks) {
        set->file.sealed = set->key != NULL;
        return open_tee(set, &tee, err) && open_sums(set, tee, err);
    }
    bool ok = archive_object_name(bound, set->m.target, set->m.id, set->file.object, err) &&
              backup_random(pipe.random, sizeof pipe.random, err) && open_tee(set, &tee, err) &&
              archive_pipe_open_sink(&set->sink, tee, &pipe, &set->file, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    return ok;
}

bool backup_set_file_end(struct backup_set *set, bool good, struct rd_err *err)
{
    struct rd_sink *sink = set->sink;
    set->sink = NULL;
    if (!good) {
        rd_sink_abort(sink);
        return false;
    }
    bool ok = rd_sink_close(sink, err);
    for (size_t i = 0; i < set->tee.n; i++)
        rd_err_adopt(&set->open->errs[set->place[i]], &set->tee.errs[i]);
    if (ok)
        backup_chunked_end(set);
    return ok && archive_manifest_add_file(&set->m, &set->file, err);
}

bool backup_set_commit(struct backup_set *set, struct rd_err *err)
{
    struct backup_open *open = set->open;
    struct rd_buf text = {0};
    bool ok = true;
    for (size_t i = 0; i < open->n; i++) {
        if (!alive(open, i))
            continue;
        rd_buf_reset(&text);
        ok = backup_chunked_print(set, i, &text, err);
        if (!ok)
            break;
        if (archive_repo_commit(&open->repos[i], &set->m, rd_buf_slice(&text), &open->errs[i]))
            backup_chunked_keep(set, i, &set->not_kept);
        else
            set->in_doubt[i] = archive_store_is_unknown(&open->errs[i]);
    }
    rd_buf_done(&text);
    return ok && !none_left(open, err);
}

static bool remove_object(const struct backup_set *set, struct archive_store *store,
                          const char *object)
{
    char name[ARCHIVE_NAME_MAX];
    return archive_object_name(name, set->open->target->name, set->m.id, object, NULL) &&
           store->ops->remove(store, name, NULL);
}

/* The manifest may exist although a later step failed. Only without it are the objects of no use:
 * otherwise the set would be listed, and damaged. */
static bool remove_manifest(const struct backup_set *set, struct archive_repo *repo)
{
    struct archive_set gone = {.incomplete = true};
    memcpy(gone.id, set->m.id, sizeof gone.id);
    return remove_object(set, repo->store, ARCHIVE_MANIFEST_NAME) && archive_set_gone(repo, &gone);
}

void backup_set_abandon(struct backup_set *set)
{
    for (size_t i = 0; i < set->open->n; i++) {
        struct archive_store *store = set->open->stores[i];
        struct archive_repo *repo = &set->open->repos[i];
        if (store == NULL || repo->lock == NULL || set->in_doubt[i] || !remove_manifest(set, repo))
            continue;
        for (size_t j = 0; j < set->m.n_files; j++)
            remove_object(set, store, set->m.files[j].object);
        archive_repo_tidy(repo);
    }
}

void backup_set_done(struct backup_set *set)
{
    rd_sink_abort(set->sink);
    backup_chunked_done(set);
    archive_manifest_done(&set->m);
}

bool backup_set_copy(struct backup_set *set, struct rd_src *src, struct rd_err *err)
{
    return rd_pump(src, set->sink, NULL, NULL, err);
}

/* ---- the tap ---- */

struct tap {
    struct rd_src *inner;
    struct backup_set *set;
};

static enum rd_src_status tap_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                   struct rd_err *err)
{
    struct tap *tap = impl;
    struct rd_slice s;
    *ret_len = 0;
    if (tap->set->cancel != NULL && atomic_load(tap->set->cancel)) {
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "stopped");
        return RD_SRC_FAIL;
    }
    backup_find_lost(tap->set->open);
    if (none_left(tap->set->open, err))
        return RD_SRC_FAIL;
    enum rd_src_status status = rd_src_need(tap->inner, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(tap->inner));
    if (status != RD_SRC_OK)
        return status;
    size_t n = s.len < cap ? s.len : cap;
    if (!rd_sink_write(tap->set->sink, s.ptr, n)) {
        rd_err_adopt(err, rd_sink_err(tap->set->sink));
        return RD_SRC_FAIL;
    }
    memcpy(buf, s.ptr, n);
    rd_src_consume(tap->inner, n);
    *ret_len = n;
    return RD_SRC_OK;
}

bool backup_set_tap(struct rd_src **ret, struct rd_src *inner, struct backup_set *set,
                    struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = tap_read, .close = rd_free};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(inner), .total = rd_src_size(inner), .sized = true);
    struct tap *tap = rd_calloc(1, sizeof *tap);
    if (tap == NULL)
        return rd_err_nomem(err, sizeof *tap);
    *tap = (struct tap){inner, set};
    return rd_src_new(ret, &ops, tap, &opts, err);
}
