/* Indexes of keys: from the repository, from a folder of this machine, or made of a segment.
 *
 * In the folder an index is as in the repository: sealed if the segment is, and bound to its name.
 * So the folder need not be trusted more than the repository.
 */
#include "backup/extract_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "backup/system.h"
#include "base/digest.h"
#include "base/pump.h"
#include "history/index_reader.h"
#include "history/indexes.h"

struct index_in {
    struct backup_extract *x;
    struct backup_extract_file *file;
    const struct archive_segment *segment;
    char name[ARCHIVE_NAME_MAX]; /* in the repository */
    char cached[64];             /* in the folder */
    char path[BACKUP_PATH_MAX];  /* "": there is no folder */
};

static bool init(struct index_in *in, struct backup_extract *x, struct backup_extract_file *file,
                 struct rd_err *err)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    *in =
        (struct index_in){.x = x, .file = file, .segment = &x->plan.stream.segments[file->segment]};
    if (!archive_key_index_name(in->name, x->repo, in->segment, err) ||
        !rd_digest_of(RD_DIGEST_SHA256, rd_slice_str(in->name), sum, err))
        return false;
    snprintf(in->cached, sizeof in->cached, "%s-r" HISTORY_INDEX_ENDING,
             rd_digest_hex(hex, rd_slice(sum, 16)));
    if (x->cache != NULL &&
        snprintf(in->path, sizeof in->path, "%s/%s", x->cache, in->cached) >= BACKUP_PATH_MAX)
        in->path[0] = '\0';
    return true;
}

/* ---- reading ---- */

/* Whether the header of the segment matches its name. */
static bool check_segment(struct index_in *in, struct rd_err *err)
{
    struct backup_extract one = {.files = in->file, .n_files = 1, .plan = in->x->plan};
    struct repl_capture_list list;
    struct rd_fs fs = in->x->fs;
    one.spool = in->x->spool;
    one.repo = in->x->repo;
    fs.ctx = &one;
    if (!repl_capture_list(&list, &fs, err))
        return false;
    bool ok = list.n == 1 && list.segments[0].closed &&
              memcmp(list.segments[0].sha256, in->file->sha256, REPL_CAPTURE_SHA) == 0 &&
              archive_segment_matches(in->segment, &list.segments[0], err);
    if (ok)
        memcpy(in->file->next_sha256, archive_order_digest(&list.segments[0]),
               sizeof in->file->next_sha256);
    repl_capture_list_done(&list);
    return ok;
}

/* Whose index it is. */
static bool read_about(struct index_in *in, struct rd_err *err)
{
    struct backup_extract one = {.files = in->file, .n_files = 1, .plan = in->x->plan};
    struct history_index_reader *reader;
    struct rd_fs fs = in->x->fs;
    char name[REPL_CAPTURE_NAME + sizeof REPL_CAPTURE_KEYS];
    one.spool = in->x->spool;
    one.repo = in->x->repo;
    fs.ctx = &one;
    snprintf(name, sizeof name, "%s" REPL_CAPTURE_KEYS, in->file->name);
    if (!history_index_reader_open(&reader, &fs, name, err))
        return false;
    const struct history_index_about *about = history_index_reader_about(reader);
    bool ok = about->kind == HISTORY_SEGMENT &&
              about->size >= REPL_CAPTURE_HEAD + in->file->index.end_len;
    in->file->size = about->size;
    memcpy(in->file->sha256, about->digest, sizeof in->file->sha256);
    history_index_reader_close(reader);
    return ok;
}

/* Takes the index whose bytes are in the spool from `at` on, if it is right. */
static bool take(struct index_in *in, uint64_t at, unsigned version, struct rd_err *err)
{
    struct backup_extract_file *file = in->file;
    bool ok = backup_key_index_find(&in->x->spool, at, &file->index, err) && read_about(in, err) &&
              check_segment(in, err);
    if (!ok)
        file->index = (struct backup_key_index_parts){0};
    else
        file->version = version;
    return ok;
}

static bool read_index(struct index_in *in, struct rd_src *src, const struct rd_seal_info *info,
                       struct rd_err *err)
{
    const struct backup_extract_file *before = in->file - 1;
    uint64_t at = in->x->spool.size;
    bool ok = spool_copy(&in->x->spool, src, NULL, NULL, err);
    unsigned version = in->x->n_files > 0 ? before->version : 0;
    rd_src_close(src);
    return ok && take(in, at, info->version > version ? info->version : version, err);
}

static bool read_object(struct index_in *in, struct rd_src *src,
                        const struct archive_segment *index, struct rd_err *err)
{
    struct rd_seal_info info = {.version = 0};
    if (index->sealed)
        backup_extract_learn_key(in->x, src);
    return archive_key_index_open_src(&src, src, in->name, index, &in->x->ring, &info, err) &&
           read_index(in, src, &info, err);
}

static bool read_stored(struct index_in *in, const struct archive_segment *index,
                        struct rd_err *err)
{
    struct rd_src *src;
    if (!in->x->repo->store->ops->get(in->x->repo->store, in->name, &src, err))
        return false;
    in->x->fetched += index->bytes;
    return read_object(in, src, index, err);
}

static bool read_cached(struct index_in *in, struct rd_err *err)
{
    struct archive_segment index = *in->segment;
    struct rd_src *src;
    if (in->path[0] == '\0' ||
        !rd_src_open_file(&src, in->path, &RD_SRC_OPTS(.regular = true), err))
        return false;
    index.bytes = rd_src_size(src);
    return read_object(in, src, &index, err);
}

/* ---- keeping ---- */

static bool open_cached(struct index_in *in, struct rd_sink **ret, struct rd_err *err)
{
    return in->path[0] != '\0' &&
           rd_sink_open_file(ret, in->path, &RD_SINK_OPTS(.mode = 0600, .replace = true), err);
}

/* Old ones of the folder go when the first one of a run comes. */
static bool close_cached(struct index_in *in, struct rd_sink *sink, bool ok, struct rd_err *err)
{
    if (!ok) {
        rd_sink_abort(sink);
        return false;
    }
    if (!rd_sink_close(sink, err))
        return false;
    if (in->x->n_made++ == 0)
        history_indexes_tidy(in->x->cache, in->cached);
    return true;
}

/* A copy of the object. */
static bool download(struct index_in *in, const struct archive_segment *index, struct rd_err *err)
{
    struct rd_sink *sink;
    struct rd_src *src;
    struct archive_store *store = in->x->repo->store;
    if (!open_cached(in, &sink, err))
        return false;
    bool ok = store->ops->get(store, in->name, &src, err);
    if (ok) {
        ok = rd_pump(src, sink, NULL, NULL, err);
        rd_src_close(src);
        in->x->fetched += index->bytes;
    }
    return close_cached(in, sink, ok, err);
}

static bool keep(struct index_in *in, const struct backup_key_index *index, struct rd_err *err)
{
    const struct rd_seal_key *key = NULL;
    uint8_t random[RD_SEAL_RANDOM];
    struct rd_sink *sink;
    if ((in->segment->sealed && (!backup_keys_seal(in->x->keys, &key, err) || key == NULL)) ||
        !backup_random(random, sizeof random, err) || !open_cached(in, &sink, err) ||
        !archive_key_index_open_sink(&sink, sink, in->name, key, random, err))
        return false;
    return close_cached(in, sink, backup_key_index_copy(index, sink, err), err);
}

/* ---- both ---- */

static bool is_final(const struct rd_err *err)
{
    return err->code == RD_ERR_MEMORY;
}

/* From the repository, by way of the folder if the repository is elsewhere. */
static bool find(struct index_in *in, const struct archive_segment *index, struct rd_err *err)
{
    bool remote = in->x->repo->store->ops->remote;
    if ((index == NULL || remote) && read_cached(in, err))
        return true;
    if (is_final(err) || index == NULL)
        return false;
    rd_err_reset(err);
    if (remote && download(in, index, err) && read_cached(in, err))
        return true;
    rd_err_reset(err);
    return read_stored(in, index, err);
}

bool backup_extract_find_index(struct backup_extract *x, struct backup_extract_file *file,
                               struct rd_err *err)
{
    const struct archive_segment *index =
        archive_key_index_find(&x->indexes, &x->plan.stream.segments[file->segment]);
    struct index_in in;
    struct rd_err why = {0};
    char line[RD_ERR_TEXT_MAX];
    if (!init(&in, x, file, err))
        return false;
    if (find(&in, index, &why))
        return true;
    if (is_final(&why)) {
        rd_err_adopt(err, &why);
        return false;
    }
    if (index != NULL) {
        rd_watch_note(x->watch, "the index of %s is not used, and made again: %s", file->name,
                      rd_err_render(&why, line, sizeof line));
        rd_err_reset(&why);
        /* one that was made before */
        if (!x->repo->store->ops->remote)
            read_cached(&in, &why);
    }
    return true;
}

void backup_extract_make_index(struct backup_extract *x, struct backup_extract_file *file,
                               struct segment_in *in)
{
    struct backup_key_index index = {.open = false};
    struct index_in made;
    struct rd_err err = {0};
    uint8_t salt[RD_SIPHASH_KEY];
    if (x->cache != NULL && init(&made, x, file, &err) && backup_random(salt, sizeof salt, &err) &&
        backup_key_index_make(&index, in, salt, &err))
        keep(&made, &index, &err);
    backup_key_index_done(&index);
}
