#include "archive/repo.h"

#include "archive/pipe.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- names ---- */

void archive_make_id(char ret[ARCHIVE_ID_MAX], int64_t time_ms, uint32_t chance)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm = {0};
    gmtime_r(&seconds, &tm);
    size_t len = strftime(ret, ARCHIVE_ID_MAX, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(ret + len, ARCHIVE_ID_MAX - len, "-%08" PRIx32, chance);
}

bool archive_id_time(const char *id, int64_t *ret_ms)
{
    struct tm tm = {0};
    int used = 0;
    if (sscanf(id, "%4d%2d%2dT%2d%2d%2dZ-%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &used) != 6 ||
        used != 17)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *ret_ms = (int64_t)timegm(&tm) * 1000;
    return true;
}

bool archive_object_name(char ret[ARCHIVE_NAME_MAX], const char *target, const char *id,
                         const char *object, struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/sets/%s/%s", target, id, object);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

static bool full_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo, const char *id,
                      const char *object, struct rd_err *err)
{
    return archive_object_name(ret, repo->target, id, object, err);
}

const char *archive_mark_word(enum archive_mark mark)
{
    static const char *const words[ARCHIVE_MARK_COUNT] = {"pinned", "damaged"};
    return words[mark];
}

static void mark_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo, const char *id,
                      enum archive_mark mark)
{
    snprintf(ret, ARCHIVE_NAME_MAX, "%s/marks/%s.%s", repo->target, id, archive_mark_word(mark));
}

bool archive_set_gone(struct archive_repo *repo, const struct archive_set *set)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    struct rd_err why = {0};
    bool there = !full_name(name, repo, set->id, ARCHIVE_MANIFEST_NAME, &why) ||
                 archive_store_read(repo->store, name, ARCHIVE_MANIFEST_MAX, &text, &why);
    rd_buf_done(&text);
    return !there && archive_store_is_missing(&why);
}

bool archive_set_good(const struct archive_set *set)
{
    return !set->incomplete && set->err == NULL && set->missing == 0 && !set->refused &&
           !set->marked[ARCHIVE_MARK_DAMAGED];
}

static const struct archive_file *sealed_file(const struct archive_set *set)
{
    for (size_t i = 0; i < set->m.n_files; i++)
        if (set->m.files[i].sealed)
            return &set->m.files[i];
    return NULL;
}

static bool key_not_given(const struct archive_set *set, struct rd_err *err)
{
    const struct rd_err_reason reason = {.id = RD_SEAL_REASON_KEY};
    return rd_err_set_reason(err, RD_ERR_USAGE, RD_NO_OFFSET, reason,
                             "the manifest is signed with the key %s, which is not given",
                             set->m.key_id);
}

/* The key of the first sealed object, whose header has the salt of a passphrase. */
static bool find_key(struct archive_repo *repo, const struct archive_set *set,
                     struct rd_seal_key *ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    const struct archive_file *file = sealed_file(set);
    struct rd_src *src;
    struct rd_slice s = {0};
    if (file == NULL || repo->ring == NULL)
        return key_not_given(set, err);
    if (!full_name(name, repo, set->id, file->object, err) ||
        !repo->store->ops->get(repo->store, name, &src, err))
        return false;
    bool ok = rd_src_need(src, RD_SEAL_HEADER_1, &s) != RD_SRC_FAIL;
    if (!ok)
        rd_err_adopt(err, rd_src_err(src));
    ok = ok && rd_seal_find_key(ret, repo->ring, s, err);
    rd_src_close(src);
    return ok;
}

bool archive_set_prove(struct archive_repo *repo, struct archive_set *set, struct rd_err *err)
{
    struct rd_seal_key key = {0};
    struct rd_err wrong = {0};
    if (set->err != NULL) {
        rd_err_adopt(err, set->err);
        return false;
    }
    if (set->refused)
        return archive_refuse_unsealed(err);
    if (set->m.signature != ARCHIVE_SIGNATURE_UNKNOWN)
        return true;
    if (!find_key(repo, set, &key, err))
        return false;
    bool ok = archive_manifest_verify(&set->m, rd_buf_slice(&set->text), &key, &wrong);
    rd_seal_key_done(&key);
    if (ok) {
        if (!set->fresh)
            rd_buf_done(&set->text);
        return true;
    }
    if (wrong.code == RD_ERR_CHECKSUM)
        archive_set_fail(set, &wrong);
    rd_err_adopt(err, &wrong);
    return false;
}

struct archive_set *archive_sets_find(struct archive_sets *sets, const char *id, int64_t now_ms)
{
    struct archive_set *found = NULL;
    bool latest = id == NULL || strcmp(id, "latest") == 0;
    for (size_t i = sets->n; i-- > 0;) {
        struct archive_set *set = &sets->sets[i];
        if (latest && archive_set_good(set)) {
            found = found != NULL ? found : set;
            if (set->time_ms <= now_ms)
                return set;
        }
        if (latest || set->incomplete || strncmp(set->id, id, strlen(id)) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = set;
    }
    return found;
}

struct archive_set *archive_sets_newest(struct archive_sets *sets, int64_t now_ms)
{
    struct archive_set *found = NULL;
    for (size_t i = sets->n; i-- > 0;) {
        struct archive_set *set = &sets->sets[i];
        if (!archive_set_good(set) || set->other_key)
            continue;
        found = found != NULL ? found : set;
        if (set->time_ms <= now_ms)
            return set;
    }
    return found;
}

/* ---- reading ---- */

static bool open_object(struct archive_repo *repo, const struct archive_set *set,
                        const struct archive_file *file, struct rd_src **ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return full_name(name, repo, set->id, file->object, err) &&
           repo->store->ops->get(repo->store, name, ret, err);
}

/* No data comes out of a set whose manifest was not verified. */
bool archive_set_is_proved(const struct archive_set *set, const struct rd_seal_ring *ring,
                           struct rd_err *err)
{
    if (set->err != NULL) {
        rd_err_adopt(err, set->err);
        return false;
    }
    switch (set->m.signature) {
    case ARCHIVE_SIGNATURE_VALID:
        return true;
    case ARCHIVE_SIGNATURE_NONE:
        return !rd_seal_required(ring) || archive_refuse_unsealed(err);
    default:
        return key_not_given(set, err);
    }
}

bool archive_set_open(struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      struct rd_src **ret, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_slice s;
    char name[ARCHIVE_NAME_MAX];
    if (!archive_set_is_proved(set, ring, err) ||
        !full_name(name, repo, set->id, file->object, err))
        return false;
    if (file->compression == ARCHIVE_COMPRESSION_CHUNKS)
        return repo->open_chunks != NULL
                   ? repo->open_chunks(ret, repo, set, file, ring, err)
                   : rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "it is stored as chunks");
    if (!open_object(repo, set, file, &src, err) ||
        !archive_pipe_open_src(&src, src, file, ring, name, err))
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

bool archive_set_open_stored(struct archive_repo *repo, const struct archive_set *set,
                             const struct archive_file *file, struct rd_src **ret,
                             struct rd_err *err)
{
    struct rd_src *src;
    if (!open_object(repo, set, file, &src, err))
        return false;
    if (archive_sums_open_src(ret, src, &file->stored, err))
        return true;
    rd_src_close(src);
    return false;
}

/* ---- changes ---- */

bool archive_repo_check_lock(struct archive_repo *repo, struct rd_err *err)
{
    if (repo->lock == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the repository is not locked");
    return archive_lock_check(repo->lock, repo->store, err);
}

bool archive_repo_put(struct archive_repo *repo, const char *id, const char *object,
                      struct rd_sink **ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return archive_repo_check_lock(repo, err) && full_name(name, repo, id, object, err) &&
           archive_store_put(repo->store, name, ret, err);
}

struct inventory {
    const struct archive_manifest *m;
    size_t prefix;  /* bytes of a name before the name of the object */
    size_t n_found; /* files of the manifest that are there, with their sizes */
};

static void on_stored(void *arg, const struct archive_listed *object)
{
    struct inventory *inv = arg;
    for (size_t i = 0; i < inv->m->n_files; i++)
        inv->n_found += strcmp(inv->m->files[i].object, object->name + inv->prefix) == 0 &&
                        inv->m->files[i].stored.bytes == object->size;
}

/* Another run, which took this one for dead, may have removed them. */
static bool check_objects(struct archive_repo *repo, const struct archive_manifest *m,
                          struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct inventory inv = {.m = m};
    if (!full_name(folder, repo, m->id, "", err))
        return false;
    inv.prefix = strlen(folder);
    folder[inv.prefix - 1] = '\0';
    if (!repo->store->ops->list(repo->store, folder, on_stored, &inv, err))
        return false;
    if (inv.n_found >= m->n_files)
        return true;
    rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
               "objects of the set are missing or have other sizes: %zu of %zu",
               m->n_files - inv.n_found, m->n_files);
    rd_err_origin(err, folder);
    return false;
}

bool archive_repo_commit(struct archive_repo *repo, const struct archive_manifest *m,
                         struct rd_slice text, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    if (!full_name(name, repo, m->id, ARCHIVE_MANIFEST_NAME, err) ||
        !archive_repo_check_lock(repo, err) || !archive_lock_renew(repo->lock, repo->store, err) ||
        !check_objects(repo, m, err) || !archive_store_write(repo->store, name, text, err))
        return false;
    if (archive_lock_confirm(repo->lock, repo->store, err) &&
        archive_store_keeps(repo->store, name, text.len, err))
        return true;
    repo->store->ops->remove(repo->store, name, NULL);
    return false;
}

/* A list that ends early leaves out the mark of a set that is kept. */
static bool prove_unpinned(struct archive_repo *repo, const struct archive_set *set,
                           struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_object mark;
    if (set->marked[ARCHIVE_MARK_PINNED])
        return true;
    mark_name(name, repo, set->id, ARCHIVE_MARK_PINNED);
    if (!repo->store->ops->stat(repo->store, name, &mark, err))
        return false;
    if (!mark.there)
        return true;
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "the list of the store left it out: the set is pinned and was not removed");
    rd_err_origin(err, name);
    return false;
}

/* The objects of a set are removed only if the store has no manifest: without them, the set would
 * be damaged. */
static bool prove_gone(struct archive_repo *repo, const struct archive_set *set, const char *what,
                       struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    if (!full_name(name, repo, set->id, ARCHIVE_MANIFEST_NAME, err))
        return false;
    if (archive_set_gone(repo, set))
        return true;
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s", what);
    rd_err_origin(err, name);
    return false;
}

static bool remove_manifest(struct archive_repo *repo, const struct archive_set *set,
                            struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return prove_unpinned(repo, set, err) &&
           full_name(name, repo, set->id, ARCHIVE_MANIFEST_NAME, err) &&
           repo->store->ops->remove(repo->store, name, err) &&
           prove_gone(repo, set, "the store removed the manifest, but may still have it", err);
}

/* A list that ends early leaves out the manifest of a set that is complete. */
static bool prove_incomplete(struct archive_repo *repo, const struct archive_set *set,
                             struct rd_err *err)
{
    return prove_gone(repo, set,
                      "the list of the store left it out, but the store may have it: nothing of "
                      "the set was removed",
                      err);
}

bool archive_repo_remove(struct archive_repo *repo, const struct archive_set *set,
                         struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    if (!archive_repo_check_lock(repo, err))
        return false;
    bool ok = set->incomplete ? prove_incomplete(repo, set, err) : remove_manifest(repo, set, err);
    for (size_t i = 0; ok && i < set->n_objects; i++)
        ok = strcmp(set->objects[i], ARCHIVE_MANIFEST_NAME) == 0 ||
             (full_name(name, repo, set->id, set->objects[i], err) &&
              repo->store->ops->remove(repo->store, name, err));
    for (int mark = 0; ok && mark < ARCHIVE_MARK_COUNT; mark++)
        if (set->marked[mark])
            ok = archive_repo_mark(repo, set->id, (enum archive_mark)mark, false, err);
    return ok;
}

void archive_repo_clean(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/sets", repo->target);
    if (repo->store->ops->clean != NULL && archive_repo_check_lock(repo, NULL))
        repo->store->ops->clean(repo->store, folder);
}

void archive_repo_tidy(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/sets", repo->target);
    if (repo->store->ops->tidy != NULL)
        repo->store->ops->tidy(repo->store, folder);
}

bool archive_repo_mark(struct archive_repo *repo, const char *id, enum archive_mark mark, bool on,
                       struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_object there;
    mark_name(name, repo, id, mark);
    if (!on)
        return repo->store->ops->remove(repo->store, name, err);
    return repo->store->ops->stat(repo->store, name, &there, err) &&
           (there.there ||
            archive_store_write(repo->store, name, rd_slice_str(archive_mark_word(mark)), err));
}
