#include "archive/repo.h"

#include "archive/pipe.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const mark_words[] = {"pinned", "damaged"};

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

static void mark_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo, const char *id,
                      enum archive_mark mark)
{
    snprintf(ret, ARCHIVE_NAME_MAX, "%s/marks/%s.%s", repo->target, id, mark_words[mark]);
}

/* ---- listing ---- */

struct listing {
    struct archive_sets *sets;
    size_t prefix; /* bytes of a name before the id */
    struct rd_err *err;
    bool failed;
};

static void *grow(void *ptr, size_t n, size_t size)
{
    /* The capacity is a power of two: it doubles when the array is full. */
    return (n & (n - 1)) == 0 ? rd_realloc(ptr, (n == 0 ? 1 : 2 * n) * size) : ptr;
}

static struct archive_set *set_of(struct archive_sets *sets, const char *id, size_t len)
{
    for (size_t i = sets->n; i-- > 0;)
        if (strncmp(sets->sets[i].id, id, len) == 0 && sets->sets[i].id[len] == '\0')
            return &sets->sets[i];
    struct archive_set *grown = grow(sets->sets, sets->n, sizeof *grown);
    if (grown == NULL)
        return NULL;
    sets->sets = grown;
    struct archive_set *set = &sets->sets[sets->n++];
    *set = (struct archive_set){.incomplete = true};
    memcpy(set->id, id, len);
    return set;
}

static char *copy_text(const char *text)
{
    char *copy = rd_alloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

static bool add_object(struct archive_set *set, const char *object, uint64_t size)
{
    char **objects = grow(set->objects, set->n_objects, sizeof *objects);
    set->objects = objects != NULL ? objects : set->objects;
    uint64_t *sizes = grow(set->sizes, set->n_objects, sizeof *sizes);
    set->sizes = sizes != NULL ? sizes : set->sizes;
    char *copy = objects != NULL && sizes != NULL ? copy_text(object) : NULL;
    if (copy == NULL)
        return false;
    set->objects[set->n_objects] = copy;
    set->sizes[set->n_objects++] = size;
    set->bytes += size;
    set->incomplete = set->incomplete && strcmp(object, ARCHIVE_MANIFEST_NAME) != 0;
    return true;
}

static void on_object(void *arg, const char *name, uint64_t size)
{
    struct listing *l = arg;
    const char *id = name + l->prefix;
    const char *slash = strchr(id, '/');
    int64_t time_ms;
    if (l->failed || slash == NULL || slash - id >= ARCHIVE_ID_MAX ||
        !archive_id_time(id, &time_ms))
        return;
    struct archive_set *set = set_of(l->sets, id, (size_t)(slash - id));
    if (set == NULL || !add_object(set, slash + 1, size)) {
        l->failed = true;
        rd_err_nomem(l->err, sizeof *set);
        return;
    }
    set->time_ms = time_ms;
}

static void on_mark(void *arg, const char *name, uint64_t size)
{
    struct listing *l = arg;
    const char *id = name + l->prefix;
    const char *dot = strrchr(id, '.');
    (void)size;
    for (size_t i = 0; dot != NULL && i < l->sets->n; i++) {
        struct archive_set *set = &l->sets->sets[i];
        if (strlen(set->id) != (size_t)(dot - id) || strncmp(set->id, id, strlen(set->id)) != 0)
            continue;
        for (size_t mark = 0; mark < ARCHIVE_MARK_COUNT; mark++)
            if (strcmp(dot + 1, mark_words[mark]) == 0)
                set->marked[mark] = true;
    }
}

static bool is_listed(const struct archive_set *set, const struct archive_file *file)
{
    for (size_t j = 0; j < set->n_objects; j++)
        if (strcmp(set->objects[j], file->object) == 0 && set->sizes[j] == file->stored.bytes)
            return true;
    return false;
}

/* Compares the files of the manifest with the objects of the set. A list may have ended early, so
 * the store is asked for those that it left out. */
static bool find_missing(struct archive_repo *repo, struct archive_set *set, struct rd_err *err)
{
    for (size_t i = 0; i < set->m.n_files; i++) {
        const struct archive_file *file = &set->m.files[i];
        char name[ARCHIVE_NAME_MAX];
        struct archive_object object;
        if (is_listed(set, file))
            continue;
        if (!full_name(name, repo, set->id, file->object, err) ||
            !repo->store->ops->stat(repo->store, name, &object, err))
            return false;
        set->missing += !object.there || object.size != file->stored.bytes;
    }
    return true;
}

/* A manifest that was copied is valid, but not here. */
static void check_place(const struct archive_repo *repo, struct archive_set *set, const char *name)
{
    if (strcmp(set->m.target, repo->target) != 0)
        rd_err_set(&set->err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the manifest belongs to the target %s",
                   set->m.target);
    else if (strcmp(set->m.id, set->id) != 0)
        rd_err_set(&set->err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the manifest belongs to %s",
                   set->m.id);
    if (set->err.code != RD_ERR_OK)
        rd_err_origin(&set->err, name);
}

/* A store that gives something else than it lists would make a good set look damaged. */
static bool is_as_listed(const struct archive_set *set, const char *name, struct rd_err *err)
{
    for (size_t i = 0; i < set->n_objects; i++) {
        if (strcmp(set->objects[i], ARCHIVE_MANIFEST_NAME) != 0 || set->sizes[i] == set->text.len)
            continue;
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the store gives %zu bytes of the manifest, and lists %" PRIu64, set->text.len,
                   set->sizes[i]);
        rd_err_origin(err, name);
        return false;
    }
    return true;
}

/* False if the repository cannot be read; an invalid manifest is recorded in set->err. */
static bool read_manifest(struct archive_repo *repo, struct archive_set *set, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_err wrong = {0};
    if (!full_name(name, repo, set->id, ARCHIVE_MANIFEST_NAME, err))
        return false;
    if (!archive_store_read(repo->store, name, ARCHIVE_MANIFEST_MAX, &set->text, &wrong)) {
        rd_err_adopt(wrong.code == RD_ERR_LIMIT ? &set->err : err, &wrong);
        return wrong.code == RD_ERR_LIMIT;
    }
    if (!is_as_listed(set, name, err))
        return false;
    if (!archive_manifest_parse(&set->m, rd_buf_slice(&set->text), repo->ring, &set->err)) {
        rd_err_origin(&set->err, name);
        rd_buf_done(&set->text);
        if (set->err.code != RD_ERR_MEMORY)
            return true;
        rd_err_adopt(err, &set->err);
        return false;
    }
    for (size_t i = 0; i < set->m.n_files; i++)
        set->bytes += set->m.files[i].added;
    check_place(repo, set, name);
    set->refused = set->m.signature == ARCHIVE_SIGNATURE_NONE && rd_seal_required(repo->ring);
    set->other_key = set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN && repo->ring != NULL &&
                     repo->ring->n_keys > 0 && repo->ring->passphrase.len == 0;
    if (set->m.signature != ARCHIVE_SIGNATURE_UNKNOWN)
        rd_buf_done(&set->text);
    return find_missing(repo, set, err);
}

/* By time: ids have seconds, manifests milliseconds. */
static int compare_sets(const void *a, const void *b)
{
    const struct archive_set *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    if (x->m.begin_ms != y->m.begin_ms)
        return x->m.begin_ms < y->m.begin_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void set_done(struct archive_set *set)
{
    for (size_t i = 0; i < set->n_objects; i++)
        rd_free(set->objects[i]);
    rd_free(set->objects);
    rd_free(set->sizes);
    rd_buf_done(&set->text);
    archive_manifest_done(&set->m);
}

/* Leaves out the sets that were removed meanwhile. */
static bool read_each(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    size_t kept = 0;
    bool ok = true;
    for (size_t i = 0; i < sets->n; i++) {
        struct archive_set *set = &sets->sets[i];
        struct rd_err why = {0};
        bool read = !ok || set->incomplete || read_manifest(repo, set, &why);
        if (!read && archive_store_is_missing(&why)) {
            set_done(set);
            sets->n_gone++;
            continue;
        }
        if (!read)
            rd_err_adopt(err, &why);
        ok = ok && read;
        sets->sets[kept++] = *set;
    }
    sets->n = kept;
    return ok;
}

/* What the threads that read ahead know: the sets themselves are moved meanwhile. */
struct listed {
    char id[ARCHIVE_ID_MAX];
    uint64_t size;
    bool there;
};

struct manifests {
    const struct archive_repo *repo;
    struct listed *listed;
};

static void note_manifest(struct listed *ret, const struct archive_set *set)
{
    memcpy(ret->id, set->id, sizeof ret->id);
    for (size_t i = 0; i < set->n_objects; i++) {
        if (strcmp(set->objects[i], ARCHIVE_MANIFEST_NAME) != 0)
            continue;
        ret->there = true;
        ret->size = set->sizes[i];
    }
}

static bool manifest_object(void *ctx, size_t i, char ret_name[ARCHIVE_NAME_MAX],
                            uint64_t *ret_size)
{
    const struct manifests *m = ctx;
    *ret_size = m->listed[i].size;
    return m->listed[i].there &&
           full_name(ret_name, m->repo, m->listed[i].id, ARCHIVE_MANIFEST_NAME, NULL);
}

static bool read_ahead(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    struct manifests m = {.repo = repo, .listed = rd_calloc(sets->n, sizeof *m.listed)};
    struct archive_repo ahead = *repo;
    const struct archive_prefetch_opts opts = {
        .parallel = repo->parallel, .object = manifest_object, .ctx = &m, .n = sets->n};
    if (m.listed == NULL)
        return rd_err_nomem(err, sets->n * sizeof *m.listed);
    for (size_t i = 0; i < sets->n; i++)
        note_manifest(&m.listed[i], &sets->sets[i]);
    bool ok = archive_prefetch_open(&ahead.store, repo->store, &opts, err);
    if (ok) {
        ok = read_each(&ahead, sets, err);
        archive_store_close(ahead.store);
    }
    rd_free(m.listed);
    return ok;
}

static bool read_manifests(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    return repo->parallel != NULL && sets->n > 1 ? read_ahead(repo, sets, err)
                                                 : read_each(repo, sets, err);
}

static bool list_all(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct listing l = {.sets = sets, .err = err};
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/sets", repo->target) + 1;
    if (!repo->store->ops->list(repo->store, folder, on_object, &l, err) || l.failed)
        return false;
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/marks", repo->target) + 1;
    if (!repo->store->ops->list(repo->store, folder, on_mark, &l, err))
        return false;
    if (!read_manifests(repo, sets, err))
        return false;
    if (sets->n > 0)
        qsort(sets->sets, sets->n, sizeof *sets->sets, compare_sets);
    return true;
}

bool archive_repo_list(struct archive_repo *repo, struct archive_sets *ret, struct rd_err *err)
{
    struct archive_sets sets = {0};
    if (!list_all(repo, &sets, err)) {
        archive_sets_done(&sets);
        return false;
    }
    *ret = sets;
    return true;
}

void archive_sets_done(struct archive_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        set_done(&sets->sets[i]);
    rd_free(sets->sets);
    *sets = (struct archive_sets){0};
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
    return !set->incomplete && set->err.code == RD_ERR_OK && set->missing == 0 && !set->refused &&
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
    if (set->err.code != RD_ERR_OK) {
        rd_err_adopt(err, &set->err);
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
        rd_buf_done(&set->text);
        return true;
    }
    if (wrong.code == RD_ERR_CHECKSUM)
        set->err = wrong;
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
    if (set->err.code != RD_ERR_OK) {
        rd_err_adopt(err, &set->err);
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

static void on_stored(void *arg, const char *name, uint64_t size)
{
    struct inventory *inv = arg;
    for (size_t i = 0; i < inv->m->n_files; i++)
        inv->n_found += strcmp(inv->m->files[i].object, name + inv->prefix) == 0 &&
                        inv->m->files[i].stored.bytes == size;
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
            archive_store_write(repo->store, name, rd_slice_str(mark_words[mark]), err));
}
