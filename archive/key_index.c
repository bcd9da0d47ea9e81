#include "archive/key_index.h"

#include "archive/tail.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- names ---- */

/* The segment to which an index belongs, as far as the name of the index depends on it. */
static struct archive_segment bare(const struct archive_segment *segment)
{
    struct archive_segment s = *segment;
    s.compression = ARCHIVE_COMPRESSION_NONE;
    s.bytes = 0;
    return s;
}

bool archive_key_index_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo,
                            const struct archive_segment *segment, struct rd_err *err)
{
    const struct archive_segment s = bare(segment);
    char bound[ARCHIVE_NAME_MAX];
    archive_segment_bound(bound, &s);
    int stem = (int)(strstr(bound, ".seg") - bound);
    int len = snprintf(ret, ARCHIVE_NAME_MAX, "%s/keys/%.*s.keys%s", repo->target, stem, bound,
                       bound + stem + sizeof ".seg" - 1);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* From RUN on. */
static bool parse(const char *name, struct archive_segment *ret)
{
    char segment[ARCHIVE_NAME_MAX];
    const char *ending = strstr(name, ".keys");
    if (ending == NULL)
        return false;
    int len = snprintf(segment, sizeof segment, "%.*s.seg%s", (int)(ending - name), name,
                       ending + sizeof ".keys" - 1);
    return len > 0 && (size_t)len < sizeof segment && archive_segment_parse(segment, ret) &&
           ret->compression == ARCHIVE_COMPRESSION_NONE;
}

/* ---- listing ---- */

struct listing {
    struct archive_key_indexes *indexes;
    size_t prefix; /* bytes of a name before the run */
    bool no_memory;
};

static void on_object(void *arg, const struct archive_listed *object)
{
    struct listing *l = arg;
    struct archive_key_indexes *indexes = l->indexes;
    struct archive_segment index;
    if (l->no_memory || strlen(object->name) <= l->prefix ||
        !parse(object->name + l->prefix, &index))
        return;
    index.bytes = object->size;
    l->no_memory = !archive_segment_append(&indexes->list, &indexes->n, &index);
}

static void folder_of(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo)
{
    snprintf(ret, ARCHIVE_NAME_MAX, "%s/keys", repo->target);
}

bool archive_key_index_list(struct archive_repo *repo, struct archive_key_indexes *ret,
                            struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct archive_key_indexes found = {0};
    struct listing l = {.indexes = &found};
    folder_of(folder, repo);
    l.prefix = strlen(folder) + 1;
    bool ok = repo->store->ops->list(repo->store, folder, on_object, &l, err);
    if (ok && l.no_memory)
        ok = rd_err_nomem(err, found.n * sizeof *found.list);
    if (!ok) {
        archive_key_indexes_done(&found);
        return false;
    }
    if (found.n > 0)
        qsort(found.list, found.n, sizeof *found.list, archive_segment_compare);
    *ret = found;
    return true;
}

void archive_key_indexes_done(struct archive_key_indexes *indexes)
{
    rd_free(indexes->list);
    *indexes = (struct archive_key_indexes){0};
}

/* The first one that does not come before the segment. */
static size_t search(const struct archive_key_indexes *indexes, const struct archive_segment *s)
{
    size_t from = 0, upto = indexes->n;
    while (from < upto) {
        size_t middle = from + (upto - from) / 2;
        if (archive_segment_compare(&indexes->list[middle], s) < 0)
            from = middle + 1;
        else
            upto = middle;
    }
    return from;
}

const struct archive_segment *archive_key_index_find(const struct archive_key_indexes *indexes,
                                                     const struct archive_segment *segment)
{
    const struct archive_segment s = bare(segment);
    char want[ARCHIVE_NAME_MAX], has[ARCHIVE_NAME_MAX];
    archive_segment_bound(want, &s);
    for (size_t i = search(indexes, &s); i < indexes->n; i++) {
        if (archive_segment_compare(&indexes->list[i], &s) != 0)
            break;
        archive_segment_bound(has, &indexes->list[i]);
        if (strcmp(has, want) == 0)
            return &indexes->list[i];
    }
    return NULL;
}

/* ---- bytes ---- */

bool archive_key_index_open_src(struct rd_src **ret, struct rd_src *inner, const char *name,
                                const struct archive_segment *index,
                                const struct rd_seal_ring *ring, struct rd_seal_info *info,
                                struct rd_err *err)
{
    const struct archive_file file = {.compression = ARCHIVE_COMPRESSION_NONE,
                                      .sealed = index->sealed};
    struct rd_slice s;
    struct rd_src *src = inner;
    if (!index->sealed &&
        !archive_tail_open_src(&src, inner, index->bytes, ARCHIVE_COMPRESSION_NONE, name, err)) {
        rd_src_close(inner);
        return false;
    }
    if (!archive_pipe_open_bare(&src, src, &file, ring, name, info, err))
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

bool archive_key_index_open_sink(struct rd_sink **ret, struct rd_sink *inner, const char *name,
                                 const struct rd_seal_key *key,
                                 const uint8_t random[RD_SEAL_RANDOM], struct rd_err *err)
{
    struct rd_seal_opts opts = {.key = key, .name = rd_slice_str(name)};
    bool ok;
    if (key != NULL) {
        memcpy(opts.random, random, sizeof opts.random);
        ok = rd_seal_open_sink(ret, inner, &opts, err);
        explicit_bzero(opts.random, sizeof opts.random);
    } else {
        ok = archive_tail_open_sink(ret, inner, ARCHIVE_COMPRESSION_NONE, name, err);
    }
    if (!ok)
        rd_sink_abort(inner);
    return ok;
}

/* ---- changes ---- */

bool archive_key_index_put(struct archive_repo *repo, const struct archive_segment *segment,
                           const struct rd_seal_key *key, const uint8_t random[RD_SEAL_RANDOM],
                           struct rd_sink **ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_sink *sink;
    return archive_repo_check_lock(repo, err) && archive_key_index_name(name, repo, segment, err) &&
           archive_store_put(repo->store, name, &sink, err) &&
           archive_key_index_open_sink(ret, sink, name, key, random, err);
}

bool archive_key_index_stat(struct archive_repo *repo, const struct archive_segment *segment,
                            bool *ret_there, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_object object;
    if (!archive_key_index_name(name, repo, segment, err) ||
        !repo->store->ops->stat(repo->store, name, &object, err))
        return false;
    *ret_there = object.there;
    return true;
}

bool archive_key_index_remove(struct archive_repo *repo, const struct archive_segment *index,
                              struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    return archive_repo_check_lock(repo, err) && archive_key_index_name(name, repo, index, err) &&
           repo->store->ops->remove(repo->store, name, err);
}

void archive_key_index_clean(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    folder_of(folder, repo);
    if (repo->store->ops->clean != NULL && archive_repo_check_lock(repo, NULL))
        repo->store->ops->clean(repo->store, folder);
}

void archive_key_index_tidy(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    folder_of(folder, repo);
    if (repo->store->ops->tidy != NULL)
        repo->store->ops->tidy(repo->store, folder);
}
