#include "backup/extract_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

enum { PIECE = 256 * 1024 };

/* ---- fetching segments ---- */

static const struct archive_segment *segment_of(const struct backup_extract *x,
                                                const struct backup_extract_file *file)
{
    return &x->plan.stream.segments[file->segment];
}

/* What is known of the segment before it, as if it had been read. All are of one run. */
static struct archive_order order_before(const struct backup_extract *x,
                                         const struct backup_extract_file *file)
{
    const struct backup_extract_file *before = file - 1;
    struct archive_order order = {.any = false};
    if (file == x->files)
        return order;
    order.any = true;
    order.number = archive_segment_last(segment_of(x, before));
    order.version = before->version;
    snprintf(order.run, sizeof order.run, "%s", segment_of(x, before)->run);
    memcpy(order.sha256, before->next_sha256, sizeof order.sha256);
    return order;
}

static bool is_as_its_index_says(const struct backup_extract_file *file,
                                 const struct segment_in *in, struct rd_err *err)
{
    static const struct rd_err_reason reason = {.id = BACKUP_REASON_INDEX};
    return file->index.keys_len == 0 ||
           (in->size == file->size &&
            memcmp(in->header.sha256, file->sha256, sizeof file->sha256) == 0) ||
           rd_err_set_reason(err, RD_ERR_CORRUPT, RD_NO_OFFSET, reason,
                             "its index of keys is that of another segment");
}

bool backup_extract_fetch(struct backup_extract *x, struct backup_extract_file *file,
                          struct segment_in *ret, struct rd_err *err)
{
    const struct archive_segment *segment = segment_of(x, file);
    struct archive_order order = order_before(x, file);
    if (!backup_plan_open(&x->plan, file->segment, &order, ret, err))
        return false;
    x->fetched += segment->bytes;
    if (!is_as_its_index_says(file, ret, err)) {
        rd_err_origin(err, file->name);
        segment_in_close(ret);
        return false;
    }
    memcpy(file->name, ret->name, sizeof file->name);
    memcpy(file->sha256, ret->header.sha256, sizeof file->sha256);
    memcpy(file->next_sha256, archive_order_digest(&ret->header), sizeof file->next_sha256);
    file->size = ret->size;
    file->version = order.version;
    return true;
}

bool backup_extract_keep(struct backup_extract *x, struct backup_extract_file *file,
                         const struct segment_in *in, struct rd_err *err)
{
    struct rd_src *src;
    uint64_t at = x->spool.size;
    if (!spool_source(&in->spool, in->name, &src, err))
        return false;
    bool ok = spool_copy(&x->spool, src, NULL, NULL, err);
    rd_src_close(src);
    if (ok)
        file->at = at;
    return ok;
}

static bool fetch_whole(struct backup_extract *x, struct backup_extract_file *file,
                        struct rd_err *err)
{
    struct segment_in in;
    rd_watch_begin(x->watch, file->name, file->size, NULL);
    bool ok = backup_extract_fetch(x, file, &in, err);
    if (ok) {
        ok = backup_extract_keep(x, file, &in, err);
        segment_in_close(&in);
    }
    rd_watch_end(x->watch);
    return ok;
}

/* ---- parts of segments that are stored as they are ---- */

static bool is_plain(const struct backup_extract *x, const struct backup_extract_file *file)
{
    const struct archive_segment *segment = segment_of(x, file);
    return x->repo->store->ops->range != NULL && !segment->sealed &&
           segment->compression == ARCHIVE_COMPRESSION_NONE && segment->bytes == file->size &&
           file->index.keys_len > 0;
}

static bool read_range(struct backup_extract *x, const struct backup_extract_file *file,
                       uint64_t offset, size_t len, struct rd_buf *ret, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_store *store = x->repo->store;
    x->fetched += len;
    return archive_segment_name(name, x->repo, segment_of(x, file), err) &&
           store->ops->range(store, name, offset, len, ret, err);
}

/* The digest at its end says which segment it is; its blocks have checksums. */
static bool begin_pieces(struct backup_extract *x, struct backup_extract_file *file,
                         struct rd_err *err)
{
    static const struct rd_err_reason reason = {.id = BACKUP_REASON_INDEX};
    struct rd_buf sum = {0};
    size_t n = (size_t)(file->size / PIECE + 1);
    bool ok = read_range(x, file, file->size - REPL_CAPTURE_SHA, REPL_CAPTURE_SHA, &sum, err);
    if (ok && memcmp(sum.ptr, file->sha256, REPL_CAPTURE_SHA) != 0)
        ok = rd_err_set_reason(err, RD_ERR_CORRUPT, RD_NO_OFFSET, reason,
                               "its index of keys is that of another segment");
    rd_buf_done(&sum);
    if (ok && (file->pieces = rd_alloc(n * sizeof *file->pieces)) == NULL)
        ok = rd_err_nomem(err, n * sizeof *file->pieces);
    for (size_t i = 0; ok && i < n; i++)
        file->pieces[i] = BACKUP_NOT_FETCHED;
    return ok;
}

static bool fetch_piece(struct backup_extract *x, struct backup_extract_file *file, size_t i,
                        struct rd_err *err)
{
    uint64_t from = (uint64_t)i * PIECE, at = x->spool.size;
    size_t len = file->size - from < PIECE ? (size_t)(file->size - from) : PIECE;
    struct rd_buf bytes = {0};
    if ((file->pieces == NULL && !begin_pieces(x, file, err)))
        return false;
    if (file->pieces[i] != BACKUP_NOT_FETCHED)
        return true;
    bool ok =
        read_range(x, file, from, len, &bytes, err) && spool_append(&x->spool, bytes.ptr, len, err);
    if (ok)
        file->pieces[i] = at;
    rd_buf_done(&bytes);
    return ok;
}

/* ---- a folder in a file ---- */

/* The files are in the order of the numbers of their segments. */
static size_t search(const struct backup_extract *x, uint64_t number)
{
    size_t low = 0, high = x->n_files;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segment_of(x, &x->files[middle])->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A descriptor is twice the place of a file, and one more for its index. */
static int find_file(const struct backup_extract *x, const char *name)
{
    size_t i = search(x, strtoull(name, NULL, 10));
    if (i == x->n_files)
        return -ENOENT;
    const struct backup_extract_file *file = &x->files[i];
    size_t len = strlen(file->name);
    if (strncmp(name, file->name, len) != 0)
        return -ENOENT;
    if (strcmp(name + len, REPL_CAPTURE_KEYS) == 0 && file->index.keys_len > 0)
        return (int)(2 * i + 1);
    return name[len] == '\0' ? (int)(2 * i) : -ENOENT;
}

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

/* Bytes of a part of the spool; `offset` is in the part. */
static ssize_t read_spool(const struct backup_extract *x, uint64_t at, uint64_t len, void *dst,
                          size_t size, uint64_t offset)
{
    ssize_t n;
    if (size > len - offset)
        size = (size_t)(len - offset);
    while ((n = pread(x->spool.fd, dst, size, (off_t)(at + offset))) < 0 && errno == EINTR)
        ;
    return n >= 0 ? n : -errno;
}

static ssize_t fail(struct backup_extract *x, const struct rd_err *err)
{
    if (x->failed.code == RD_ERR_OK)
        rd_err_adopt(&x->failed, err);
    return -EIO;
}

/* What is neither in the index nor fetched yet. */
static ssize_t read_blocks(struct backup_extract *x, struct backup_extract_file *file, void *dst,
                           size_t size, uint64_t offset)
{
    struct rd_err err = {0};
    size_t i = (size_t)(offset / PIECE);
    uint64_t from = (uint64_t)i * PIECE, left = file->size - from;
    if (!is_plain(x, file))
        return fetch_whole(x, file, &err) ? read_spool(x, file->at, file->size, dst, size, offset)
                                          : fail(x, &err);
    if (fetch_piece(x, file, i, &err))
        return read_spool(x, file->pieces[i], left < PIECE ? left : PIECE, dst, size,
                          offset - from);
    rd_err_origin(&err, file->name);
    return fail(x, &err);
}

static ssize_t read_segment(struct backup_extract *x, struct backup_extract_file *file, void *dst,
                            size_t size, uint64_t offset)
{
    const struct backup_key_index_parts *index = &file->index;
    uint64_t end = file->size - index->end_len;
    if (offset >= file->size)
        return 0;
    if (file->at != BACKUP_NOT_FETCHED)
        return read_spool(x, file->at, file->size, dst, size, offset);
    if (offset < REPL_CAPTURE_HEAD)
        return read_spool(x, index->head_at, REPL_CAPTURE_HEAD, dst, size, offset);
    if (offset >= end)
        return read_spool(x, index->end_at, index->end_len, dst, size, offset - end);
    return read_blocks(x, file, dst, size, offset);
}

static ssize_t extract_read_at(void *ctx, int fd, void *dst, size_t size, uint64_t offset)
{
    struct backup_extract *x = ctx;
    struct backup_extract_file *file = &x->files[fd / 2];
    if (fd % 2 == 0)
        return read_segment(x, file, dst, size, offset);
    return offset < file->index.keys_len
               ? read_spool(x, file->index.keys_at, file->index.keys_len, dst, size, offset)
               : 0;
}

static int extract_size(void *ctx, const char *name, uint64_t *ret)
{
    const struct backup_extract *x = ctx;
    int i = find_file(x, name);
    if (i < 0)
        return i;
    *ret = i % 2 == 0 ? x->files[i / 2].size : x->files[i / 2].index.keys_len;
    return 0;
}

static int extract_list(void *ctx, void (*each)(void *arg, const char *name), void *arg)
{
    const struct backup_extract *x = ctx;
    for (size_t i = 0; i < x->n_files; i++)
        each(arg, x->files[i].name);
    return 0;
}

/* ---- what is needed ---- */

struct choice {
    size_t begin, end;       /* the chain */
    size_t first;            /* the segment that goes on after the set */
    struct archive_set *set; /* NULL: none */
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

static void choose_in_chain(const struct backup_extract *x, struct archive_sets *sets,
                            struct choice *c)
{
    for (size_t k = 0; k < sets->n; k++) {
        struct archive_set *set = &sets->sets[k];
        if (!archive_set_good(set) || !backup_plan_is_snapshot(set) || !is_better(x, set, c->set))
            continue;
        size_t i = archive_stream_base(&x->plan.stream, c->begin, c->end, &set->m);
        if (i == SIZE_MAX)
            continue;
        c->set = set;
        c->first = i;
    }
}

static struct choice choose(const struct backup_extract *x, struct archive_sets *sets)
{
    struct choice found = {.set = NULL};
    for (size_t begin = 0, end; begin < x->plan.stream.n; begin = end) {
        end = archive_stream_chain(&x->plan.stream, begin);
        struct choice c = {.begin = begin, .end = end};
        choose_in_chain(x, sets, &c);
        if (c.set != NULL)
            found = c;
    }
    return found;
}

/* ---- keys ---- */

static void begin_keys(struct backup_extract *x)
{
    x->ring = x->keys->ring;
    for (size_t i = 0; i < x->ring.n_keys && i < BACKUP_EXTRACT_KEYS; i++)
        x->known[i] = x->ring.keys[i];
    x->ring.keys = x->known;
}

void backup_extract_learn_key(struct backup_extract *x, struct rd_src *object)
{
    const struct rd_seal_ring known = {.keys = x->known, .n_keys = x->ring.n_keys};
    struct rd_seal_key key;
    struct rd_slice head;
    if (x->ring.passphrase.len == 0 || x->ring.n_keys == BACKUP_EXTRACT_KEYS ||
        rd_src_need(object, RD_SEAL_HEADER_1, &head) != RD_SRC_OK)
        return;
    if (!rd_seal_find_key(&key, &known, head, NULL)) {
        if (!rd_seal_find_key(&key, &x->ring, head, NULL))
            return;
        x->known[x->ring.n_keys++] = key;
    }
    rd_seal_key_done(&key);
}

/* ---- the whole ---- */

static bool fetch_snapshot(struct backup_extract *x, struct archive_set *set, struct rd_err *err)
{
    const struct archive_file *file = &set->m.files[0];
    struct rd_src *src;
    if (!archive_set_prove(x->repo, set, err) ||
        !archive_set_open(x->repo, set, file, &x->ring, &src, err))
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

/* Its index, or else the segment. */
static bool add_file(struct backup_extract *x, size_t segment, struct rd_err *err)
{
    const struct archive_segment *s = &x->plan.stream.segments[segment];
    struct backup_extract_file *file = &x->files[x->n_files];
    struct segment_in in;
    *file = (struct backup_extract_file){.segment = segment, .at = BACKUP_NOT_FETCHED};
    snprintf(file->name, sizeof file->name, "%08" PRIu64 "-%" PRIu64 ".seg", s->number, s->start);
    if (!x->no_index && !backup_extract_find_index(x, file, err))
        return false;
    x->n_files++;
    if (file->index.keys_len > 0)
        return true;
    if (!backup_extract_fetch(x, file, &in, err))
        return false;
    bool ok = backup_extract_keep(x, file, &in, err);
    if (ok && !x->no_index)
        backup_extract_make_index(x, file, &in);
    segment_in_close(&in);
    return ok;
}

static bool add_files(struct backup_extract *x, const struct choice *c, struct rd_err *err)
{
    const struct archive_segment *segments = x->plan.stream.segments;
    uint64_t from = segments[c->first].start;
    bool ok = true;
    x->files = rd_calloc(c->end - c->first, sizeof *x->files);
    if (x->files == NULL)
        return rd_err_nomem(err, (c->end - c->first) * sizeof *x->files);
    rd_watch_begin(x->watch, "the stream", segments[c->end - 1].end - from, NULL);
    for (size_t i = c->first; ok && i < c->end; i++) {
        ok = add_file(x, i, err);
        rd_watch_at(x->watch, segments[i].end - from);
    }
    rd_watch_end(x->watch);
    return ok;
}

/* Without a list of them there are no indexes. */
static void list_indexes(struct backup_extract *x)
{
    struct rd_err err = {0};
    char line[RD_ERR_TEXT_MAX];
    if (!x->no_index && !archive_key_index_list(x->repo, &x->indexes, &err))
        rd_watch_warn(x->watch, "the indexes of keys cannot be listed: %s",
                      rd_err_render(&err, line, sizeof line));
}

static bool fetch(struct backup_extract *x, struct archive_sets *sets, struct rd_err *err)
{
    struct choice c = choose(x, sets);
    if (c.set == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          x->plan.stream.n == 0 ? "%s has no stream: redoubt archive makes it"
                                                : "%s has no set that its stream begins with",
                          x->repo->target);
    list_indexes(x);
    return fetch_snapshot(x, c.set, err) && add_files(x, &c, err);
}

bool backup_extract(struct backup_extract *x, struct rd_err *err)
{
    struct archive_sets sets;
    begin_keys(x);
    x->plan = (struct backup_plan){.watch = x->watch, .repo = x->repo, .ring = &x->ring};
    x->fs = (struct rd_fs){.ctx = x,
                           .open = extract_open,
                           .close = extract_close,
                           .read_at = extract_read_at,
                           .size = extract_size,
                           .list = extract_list};
    if (!archive_repo_list(x->repo, &sets, err))
        return false;
    bool ok = backup_plan_list(&x->plan, err) && fetch(x, &sets, err);
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
    for (size_t i = 0; i < x->n_files; i++)
        rd_free(x->files[i].pieces);
    rd_free(x->files);
    archive_key_indexes_done(&x->indexes);
    if (x->repo != NULL)
        backup_plan_done(&x->plan);
    x->files = NULL;
    x->n_files = 0;
    for (size_t i = 0; i < BACKUP_EXTRACT_KEYS; i++)
        rd_seal_key_done(&x->known[i]);
}
