/* repo_list.c - what a listing of sets shows, and their manifests. */
#include "archive/catalogue.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the listing ---- */

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

/* Stores list the objects of a set one after another; if not, gather() joins them. */
static struct archive_set *set_of(struct archive_sets *sets, const char *id, size_t len)
{
    struct archive_set *last = sets->n > 0 ? &sets->sets[sets->n - 1] : NULL;
    if (last != NULL && strncmp(last->id, id, len) == 0 && last->id[len] == '\0')
        return last;
    struct archive_set *grown = grow(sets->sets, sets->n, sizeof *grown);
    if (grown == NULL)
        return NULL;
    sets->sets = grown;
    struct archive_set *set = &sets->sets[sets->n++];
    *set = (struct archive_set){.incomplete = true};
    memcpy(set->id, id, len);
    return set;
}

static bool add_object(struct archive_set *set, char *object, uint64_t size)
{
    char **objects = grow(set->objects, set->n_objects, sizeof *objects);
    set->objects = objects != NULL ? objects : set->objects;
    uint64_t *sizes = grow(set->sizes, set->n_objects, sizeof *sizes);
    set->sizes = sizes != NULL ? sizes : set->sizes;
    if (objects == NULL || sizes == NULL)
        return false;
    set->objects[set->n_objects] = object;
    set->sizes[set->n_objects++] = size;
    set->bytes += size;
    return true;
}

static bool add_listed(struct archive_set *set, const char *name,
                       const struct archive_listed *object)
{
    char *copy = rd_alloc(strlen(name) + 1);
    if (copy == NULL || !add_object(set, strcpy(copy, name), object->size)) {
        rd_free(copy);
        return false;
    }
    if (strcmp(name, ARCHIVE_MANIFEST_NAME) != 0)
        return true;
    set->incomplete = false;
    set->manifest_bytes = object->size;
    if (object->version != NULL && strlen(object->version) < sizeof set->version)
        strcpy(set->version, object->version);
    return true;
}

static void on_object(void *arg, const struct archive_listed *object)
{
    struct listing *l = arg;
    const char *id = object->name + l->prefix;
    const char *slash = strchr(id, '/');
    int64_t time_ms;
    if (l->failed || slash == NULL || slash - id >= ARCHIVE_ID_MAX ||
        !archive_id_time(id, &time_ms))
        return;
    struct archive_set *set = set_of(l->sets, id, (size_t)(slash - id));
    if (set == NULL || !add_listed(set, slash + 1, object)) {
        l->failed = true;
        rd_err_nomem(l->err, sizeof *set);
        return;
    }
    set->time_ms = time_ms;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct archive_set *)a)->id, ((const struct archive_set *)b)->id);
}

/* The reason of a set whose own one could not be stored. */
static struct rd_err no_memory = {
    .code = RD_ERR_MEMORY, .offset = RD_NO_OFFSET, .inner = RD_NO_OFFSET, .text = "out of memory"};

void archive_set_fail(struct archive_set *set, const struct rd_err *err)
{
    if (set->err != NULL)
        return;
    set->err = rd_alloc(sizeof *set->err);
    if (set->err != NULL)
        *set->err = *err;
    else
        set->err = &no_memory;
}

static void set_done(struct archive_set *set)
{
    for (size_t i = 0; i < set->n_objects; i++)
        rd_free(set->objects[i]);
    rd_free(set->objects);
    rd_free(set->sizes);
    rd_buf_done(&set->text);
    archive_manifest_done(&set->m);
    if (set->err != &no_memory)
        rd_free(set->err);
}

/* Moves the objects of a set to another one with the same id. */
static bool join(struct archive_set *to, struct archive_set *from)
{
    bool ok = true;
    while (ok && from->n_objects > 0) {
        size_t last = from->n_objects - 1;
        ok = add_object(to, from->objects[last], from->sizes[last]);
        from->n_objects -= ok;
    }
    if (!from->incomplete) {
        to->incomplete = false;
        to->manifest_bytes = from->manifest_bytes;
        memcpy(to->version, from->version, sizeof to->version);
    }
    set_done(from);
    return ok;
}

/* Sorts the sets by their ids, each of which is there once. */
static bool gather(struct archive_sets *sets, struct rd_err *err)
{
    size_t kept = 0;
    bool ok = true;
    if (sets->n > 0)
        qsort(sets->sets, sets->n, sizeof *sets->sets, compare_ids);
    for (size_t i = 0; i < sets->n; i++) {
        struct archive_set *set = &sets->sets[i];
        if (kept > 0 && strcmp(sets->sets[kept - 1].id, set->id) == 0)
            ok = join(&sets->sets[kept - 1], set) && ok;
        else
            sets->sets[kept++] = *set;
    }
    sets->n = kept;
    return ok || rd_err_nomem(err, sizeof *sets->sets);
}

/* The set with this id; the sets are sorted by it. */
static struct archive_set *find_set(const struct archive_sets *sets, const char *id, size_t len)
{
    size_t from = 0, upto = sets->n;
    while (from < upto) {
        size_t middle = from + (upto - from) / 2;
        struct archive_set *set = &sets->sets[middle];
        int order = strncmp(set->id, id, len);
        if (order == 0 && set->id[len] == '\0')
            return set;
        if (order < 0)
            from = middle + 1;
        else
            upto = middle;
    }
    return NULL;
}

static void on_mark(void *arg, const struct archive_listed *object)
{
    struct listing *l = arg;
    const char *id = object->name + l->prefix;
    const char *dot = strrchr(id, '.');
    struct archive_set *set =
        dot != NULL && dot - id < ARCHIVE_ID_MAX ? find_set(l->sets, id, (size_t)(dot - id)) : NULL;
    for (int mark = 0; set != NULL && mark < ARCHIVE_MARK_COUNT; mark++)
        if (strcmp(dot + 1, archive_mark_word((enum archive_mark)mark)) == 0)
            set->marked[mark] = true;
}

/* ---- manifests ---- */

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
        if (!archive_object_name(name, repo->target, set->id, file->object, err) ||
            !repo->store->ops->stat(repo->store, name, &object, err))
            return false;
        set->missing += !object.there || object.size != file->stored.bytes;
    }
    return true;
}

/* A manifest that was copied is valid, but not here. */
static void check_place(const struct archive_repo *repo, struct archive_set *set, const char *name)
{
    struct rd_err wrong = {0};
    if (strcmp(set->m.target, repo->target) != 0)
        rd_err_set(&wrong, RD_ERR_CORRUPT, RD_NO_OFFSET, "the manifest belongs to the target %s",
                   set->m.target);
    else if (strcmp(set->m.id, set->id) != 0)
        rd_err_set(&wrong, RD_ERR_CORRUPT, RD_NO_OFFSET, "the manifest belongs to %s", set->m.id);
    if (wrong.code == RD_ERR_OK)
        return;
    rd_err_origin(&wrong, name);
    archive_set_fail(set, &wrong);
}

/* A store that gives something else than it lists would make a good set look damaged. */
static bool is_as_listed(const struct archive_set *set, const char *name, struct rd_err *err)
{
    if (set->manifest_bytes == set->text.len)
        return true;
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "the store gives %zu bytes of the manifest, and lists %" PRIu64, set->text.len,
               set->manifest_bytes);
    rd_err_origin(err, name);
    return false;
}

/* What the manifest says, and whether its text is needed any more: to verify its signature later,
 * or for the catalogue. */
static bool judge(struct archive_repo *repo, struct archive_sets *sets, struct archive_set *set,
                  const char *name, struct rd_err *err)
{
    for (size_t i = 0; i < set->m.n_files; i++)
        set->bytes += set->m.files[i].added;
    check_place(repo, set, name);
    set->refused = set->m.signature == ARCHIVE_SIGNATURE_NONE && rd_seal_required(repo->ring);
    set->other_key = set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN && repo->ring != NULL &&
                     repo->ring->n_keys > 0 && repo->ring->passphrase.len == 0;
    set->fresh = sets->catalogues.due != 0 && repo->lock != NULL && !set->catalogued &&
                 set->version[0] != '\0' && set->err == NULL &&
                 sets->fresh_bytes + set->text.len <= ARCHIVE_CATALOGUE_KEEP;
    if (set->fresh)
        sets->fresh_bytes += set->text.len;
    else if (set->m.signature != ARCHIVE_SIGNATURE_UNKNOWN)
        rd_buf_done(&set->text);
    return find_missing(repo, set, err);
}

/* False if the repository cannot be read; an invalid manifest is recorded in set->err. */
static bool read_manifest(struct archive_repo *repo, struct archive_sets *sets,
                          struct archive_set *set, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_err wrong = {0};
    if (!archive_object_name(name, repo->target, set->id, ARCHIVE_MANIFEST_NAME, err))
        return false;
    if (set->catalogued)
        return judge(repo, sets, set, name, err);
    if (!archive_store_read(repo->store, name, ARCHIVE_MANIFEST_MAX, &set->text, &wrong)) {
        if (wrong.code == RD_ERR_LIMIT)
            archive_set_fail(set, &wrong);
        else
            rd_err_adopt(err, &wrong);
        return wrong.code == RD_ERR_LIMIT;
    }
    if (!is_as_listed(set, name, err))
        return false;
    if (archive_manifest_parse(&set->m, rd_buf_slice(&set->text), repo->ring, &wrong))
        return judge(repo, sets, set, name, err);
    rd_err_origin(&wrong, name);
    rd_buf_done(&set->text);
    if (wrong.code == RD_ERR_MEMORY)
        rd_err_adopt(err, &wrong);
    else
        archive_set_fail(set, &wrong);
    return wrong.code != RD_ERR_MEMORY;
}

/* Leaves out the sets that were removed meanwhile. */
static bool read_each(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    size_t kept = 0;
    bool ok = true;
    for (size_t i = 0; i < sets->n; i++) {
        struct archive_set *set = &sets->sets[i];
        struct rd_err why = {0};
        bool read = !ok || set->incomplete || read_manifest(repo, sets, set, &why);
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
};

struct manifests {
    const struct archive_repo *repo;
    struct listed *listed;
    size_t n;
};

static bool manifest_object(void *ctx, size_t i, char ret_name[ARCHIVE_NAME_MAX],
                            uint64_t *ret_size)
{
    const struct manifests *m = ctx;
    *ret_size = m->listed[i].size;
    return archive_object_name(ret_name, m->repo->target, m->listed[i].id, ARCHIVE_MANIFEST_NAME,
                               NULL);
}

static bool is_to_be_read(const struct archive_set *set)
{
    return !set->incomplete && !set->catalogued;
}

static bool read_ahead(struct archive_repo *repo, struct archive_sets *sets, size_t n,
                       struct rd_err *err)
{
    struct manifests m = {.repo = repo, .listed = rd_calloc(n, sizeof *m.listed)};
    struct archive_repo ahead = *repo;
    const struct archive_prefetch_opts opts = {
        .parallel = repo->parallel, .object = manifest_object, .ctx = &m, .n = n};
    if (m.listed == NULL)
        return rd_err_nomem(err, n * sizeof *m.listed);
    for (size_t i = 0; i < sets->n; i++) {
        const struct archive_set *set = &sets->sets[i];
        if (!is_to_be_read(set))
            continue;
        memcpy(m.listed[m.n].id, set->id, sizeof set->id);
        m.listed[m.n++].size = set->manifest_bytes;
    }
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
    size_t n = 0;
    for (size_t i = 0; i < sets->n; i++)
        n += is_to_be_read(&sets->sets[i]);
    return repo->parallel != NULL && n > 1 ? read_ahead(repo, sets, n, err)
                                           : read_each(repo, sets, err);
}

/* ---- the catalogue ---- */

struct copies {
    struct archive_repo *repo;
    struct archive_sets *sets;
};

static bool is_wanted(void *ctx, const char *id, const char *version, uint64_t size)
{
    struct copies *copies = ctx;
    const struct archive_set *set = find_set(copies->sets, id, strlen(id));
    copies->sets->catalogues.n_copies++;
    return set != NULL && is_to_be_read(set) && set->version[0] != '\0' &&
           strcmp(set->version, version) == 0 && set->manifest_bytes == size;
}

/* A copy that is damaged is not used. */
static bool on_copy(void *ctx, const char *id, const char *version, struct rd_slice text)
{
    struct copies *copies = ctx;
    struct archive_set *set = find_set(copies->sets, id, strlen(id));
    struct archive_manifest m;
    (void)version;
    if (!archive_manifest_parse(&m, text, copies->repo->ring, NULL))
        return true;
    bool unknown = m.signature == ARCHIVE_SIGNATURE_UNKNOWN;
    if (strcmp(m.id, set->id) != 0 || strcmp(m.target, copies->repo->target) != 0 ||
        (unknown && !rd_buf_add(&set->text, text.ptr, text.len))) {
        archive_manifest_done(&m);
        return true;
    }
    set->m = m;
    set->catalogued = true;
    return true;
}

/* Whatever is wrong with it, the manifests are there. */
static void read_catalogue(struct archive_repo *repo, struct archive_sets *sets)
{
    struct copies copies = {repo, sets};
    struct archive_catalogue_reader reader = {
        .wanted = is_wanted, .copy = on_copy, .ctx = &copies, .max = ARCHIVE_MANIFEST_MAX};
    unsigned from = repo->catalogue_from != 0 ? repo->catalogue_from : ARCHIVE_CATALOGUE_FROM;
    uint64_t n = 0;
    for (size_t i = 0; !repo->exact && i < sets->n; i++) {
        n += sets->sets[i].version[0] != '\0';
        reader.max += 4 * sets->sets[i].manifest_bytes;
    }
    if (n < from || !archive_catalogue_find(repo, &sets->catalogues, NULL))
        return;
    sets->catalogues.due = from < 4 ? 1 : from / 4;
    sets->catalogues.max = reader.max;
    if (sets->catalogues.newest != 0)
        archive_catalogue_read(repo, sets->catalogues.newest, &reader, NULL);
}

/* ---- the whole ---- */

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

static bool list_all(struct archive_repo *repo, struct archive_sets *sets, struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct listing l = {.sets = sets, .err = err};
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/sets", repo->target) + 1;
    if (!repo->store->ops->list(repo->store, folder, on_object, &l, err) || l.failed ||
        !gather(sets, err))
        return false;
    l.prefix = (size_t)snprintf(folder, sizeof folder, "%s/marks", repo->target) + 1;
    if (!repo->store->ops->list(repo->store, folder, on_mark, &l, err))
        return false;
    read_catalogue(repo, sets);
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
