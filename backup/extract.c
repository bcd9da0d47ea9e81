#include "backup/extract.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "backup/plan.h"

/* ---- a folder in a file ---- */

static const struct backup_extract_file *file_at(const struct backup_extract *x, size_t i)
{
    const struct backup_extract_file *files = (const void *)x->files.ptr;
    return i < x->files.len / sizeof *files ? &files[i] : NULL;
}

static int find_file(const struct backup_extract *x, const char *name)
{
    const struct backup_extract_file *file;
    for (size_t i = 0; (file = file_at(x, i)) != NULL; i++)
        if (strcmp(file->name, name) == 0)
            return (int)i;
    return -ENOENT;
}

/* A descriptor is the number of the file. */
static int extract_open(void *ctx, const char *name, enum rd_fs_mode mode)
{
    return mode == RD_FS_READ || mode == RD_FS_READ_AT ? find_file(ctx, name) : -EROFS;
}

static int extract_close(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static ssize_t extract_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    const struct backup_extract *x = ctx;
    const struct backup_extract_file *file = file_at(x, (size_t)fd);
    ssize_t n;
    if (offset >= file->size)
        return 0;
    if (size > file->size - offset)
        size = (size_t)(file->size - offset);
    while ((n = pread(x->spool.fd, dst, size, (off_t)(file->at + offset))) < 0 && errno == EINTR)
        ;
    return n >= 0 ? n : -errno;
}

static int extract_size(void *ctx, const char *name, uint64_t *ret)
{
    int i = find_file(ctx, name);
    if (i < 0)
        return i;
    *ret = file_at(ctx, (size_t)i)->size;
    return 0;
}

static int extract_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    const struct backup_extract_file *file;
    for (size_t i = 0; (file = file_at(ctx, i)) != NULL; i++)
        each(arg, file->name);
    return 0;
}

/* ---- what is needed ---- */

struct choice {
    size_t begin, end;             /* the chain */
    size_t first;                  /* the segment that goes on after the set */
    const struct archive_set *set; /* NULL: none */
};

/* The newest set that is not after the wanted time; before there is one, the oldest. */
static bool is_better(const struct backup_extract *x, const struct archive_set *set,
                      const struct archive_set *than)
{
    if (than == NULL)
        return true;
    bool newer = set->m.begin_ms > than->m.begin_ms;
    return set->m.begin_ms <= x->since_ms && than->m.begin_ms <= x->since_ms ? newer : !newer;
}

static void choose_in_chain(const struct backup_extract *x, const struct archive_stream *stream,
                            const struct archive_sets *sets, struct choice *c)
{
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (!archive_set_good(set) || !backup_plan_is_snapshot(set) || !is_better(x, set, c->set))
            continue;
        size_t i = archive_stream_base(stream, c->begin, c->end, &set->m);
        if (i == SIZE_MAX)
            continue;
        c->set = set;
        c->first = i;
    }
}

static struct choice choose(const struct backup_extract *x, const struct archive_stream *stream,
                            const struct archive_sets *sets)
{
    struct choice found = {.set = NULL};
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        end = archive_stream_chain(stream, begin);
        struct choice c = {.begin = begin, .end = end};
        choose_in_chain(x, stream, sets, &c);
        if (c.set != NULL)
            found = c;
    }
    return found;
}

/* ---- fetching ---- */

static bool fetch_snapshot(struct backup_extract *x, const struct archive_set *set,
                           struct rd_err *err)
{
    const struct archive_file *file = &set->m.files[0];
    struct rd_src *src;
    if (!archive_set_open(x->repo, set, file, x->ring, &src, err))
        return false;
    rd_watch_begin(x->watch, file->name, file->plain.bytes, src);
    bool ok = spool_copy(&x->snapshot, src, NULL, NULL, err);
    rd_watch_end(x->watch);
    rd_src_close(src);
    snprintf(x->set, sizeof x->set, "%s", set->id);
    x->base_offset = set->m.offset;
    x->base_ms = set->m.begin_ms;
    x->base_size = x->snapshot.size;
    return ok;
}

static bool keep_segment(struct backup_extract *x, const struct segment_in *in, struct rd_err *err)
{
    struct backup_extract_file file = {.at = x->spool.size, .size = in->size};
    struct rd_src *src;
    memcpy(file.name, in->name, sizeof file.name);
    if (!rd_buf_add(&x->files, &file, sizeof file))
        return rd_err_nomem(err, sizeof file);
    if (!spool_source(&in->spool, in->name, &src, err))
        return false;
    bool ok = spool_copy(&x->spool, src, NULL, NULL, err);
    rd_src_close(src);
    return ok;
}

static bool fetch_segments(struct backup_extract *x, const struct backup_plan *plan,
                           const struct choice *c, struct rd_err *err)
{
    struct archive_order order = {.any = false};
    uint64_t from = plan->stream.segments[c->first].start;
    bool ok = true;
    rd_watch_begin(x->watch, "the stream", plan->stream.segments[c->end - 1].end - from, NULL);
    for (size_t i = c->first; ok && i < c->end; i++) {
        struct segment_in in;
        if (!backup_plan_open(plan, i, &order, &in, err)) {
            ok = false;
            break;
        }
        ok = keep_segment(x, &in, err);
        segment_in_close(&in);
        rd_watch_at(x->watch, plan->stream.segments[i].end - from);
    }
    rd_watch_end(x->watch);
    return ok;
}

static bool fetch(struct backup_extract *x, struct backup_plan *plan,
                  const struct archive_sets *sets, struct rd_err *err)
{
    struct choice c = choose(x, &plan->stream, sets);
    if (c.set == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          plan->stream.n == 0 ? "%s has no stream: redoubt archive makes it"
                                              : "%s has no set that its stream begins with",
                          x->repo->target);
    return fetch_snapshot(x, c.set, err) && fetch_segments(x, plan, &c, err);
}

bool backup_extract(struct backup_extract *x, struct rd_err *err)
{
    struct backup_plan plan = {.watch = x->watch, .repo = x->repo, .ring = x->ring};
    struct archive_sets sets;
    x->fs = (struct rd_fs){.ctx = x,
                           .open = extract_open,
                           .close = extract_close,
                           .read_at = extract_read_at,
                           .size = extract_size,
                           .list = extract_list};
    if (!archive_repo_list(x->repo, &sets, err))
        return false;
    bool ok = backup_plan_list(&plan, err) && fetch(x, &plan, &sets, err);
    backup_plan_done(&plan);
    archive_sets_done(&sets);
    return ok;
}

bool backup_extract_base(const struct backup_extract *x, struct rd_src **ret, struct rd_err *err)
{
    return spool_source(&x->snapshot, "dump.rdb", ret, err);
}

void backup_extract_done(struct backup_extract *x)
{
    spool_done(&x->snapshot);
    spool_done(&x->spool);
    rd_buf_done(&x->files);
}
