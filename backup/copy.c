#include "backup/copy.h"

#include "archive/pipe.h"
#include "backup/prune.h"
#include "backup/system.h"
#include "base/mem.h"
#include "base/pump.h"
#include "chunks/sweep.h"

#include <stdio.h>

struct job {
    struct backup_copy *c;
    struct archive_repo *from, *to;
    struct archive_sets sets, have; /* of the source, and of the destination */
    const struct rd_seal_key *key;
    struct chunks_copier *copier; /* NULL: no set in chunks was copied yet */
};

/* ---- files ---- */

/* Whether the stored bytes are right in the destination, too: a seal binds key and name. */
static bool is_same_seal(const struct job *job, const struct archive_set *set,
                         const struct archive_file *file)
{
    char id[RD_SEAL_ID_HEX];
    if (!file->sealed)
        return job->key == NULL;
    return job->key != NULL && strcmp(job->from->target, job->to->target) == 0 &&
           strcmp(rd_seal_key_id(job->key, id), set->m.key_id) == 0;
}

static bool pump_to(struct rd_src *src, struct rd_sink *sink, struct rd_err *err)
{
    if (rd_pump(src, sink, NULL, NULL, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static bool copy_stored(struct job *job, const struct archive_set *set,
                        const struct archive_file *file, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_sink *sink;
    if (!archive_set_open_stored(job->from, set, file, &src, err))
        return false;
    bool ok =
        archive_repo_put(job->to, set->id, file->object, &sink, err) && pump_to(src, sink, err);
    rd_src_close(src);
    return ok;
}

static bool open_pipe(struct job *job, const struct archive_set *set, struct archive_file *file,
                      struct rd_sink **ret, struct rd_err *err)
{
    char bound[ARCHIVE_NAME_MAX];
    struct archive_pipe pipe = {.key = job->key, .name = bound};
    struct rd_sink *object;
    bool ok = archive_object_name(bound, job->to->target, set->id, file->object, err) &&
              backup_random(pipe.random, sizeof pipe.random, err) &&
              archive_repo_put(job->to, set->id, file->object, &object, err) &&
              archive_pipe_open_sink(ret, object, &pipe, file, err);
    explicit_bzero(pipe.random, sizeof pipe.random);
    return ok;
}

static bool copy_plain(struct job *job, const struct archive_set *set,
                       const struct archive_file *file, struct archive_file *copy,
                       struct rd_err *err)
{
    struct rd_src *src;
    struct rd_sink *sink;
    if (!archive_file_set_name(copy, file->name, job->key != NULL, err) ||
        !archive_set_open(job->from, set, file, job->from->ring, &src, err))
        return false;
    /* The source compares the plain bytes with the manifest at its end. */
    bool ok = open_pipe(job, set, copy, &sink, err) && pump_to(src, sink, err);
    rd_src_close(src);
    return ok;
}

static bool is_there(struct job *job, const struct archive_set *set,
                     const struct archive_file *file, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_store_sum want = {.bytes = file->stored.bytes};
    memcpy(want.sha256, file->stored.sha256, sizeof want.sha256);
    if (!archive_object_name(name, job->to->target, set->id, file->object, err))
        return false;
    switch (archive_store_prove(job->to->store, name, &want, err)) {
    case ARCHIVE_STORE_SAME:
        return true;
    case ARCHIVE_STORE_FAILED:
        break;
    default:
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "what was stored does not read back");
        break;
    }
    rd_err_origin(err, name);
    return false;
}

static bool open_copier(struct job *job, struct rd_err *err)
{
    const struct chunks_copier_opts opts = {
        .from = job->from, .to = job->to, .key = job->key, .random = backup_random};
    return job->copier != NULL || chunks_copier_open(&job->copier, &opts, &job->have, err);
}

static bool copy_file(struct job *job, const struct archive_set *set, size_t number,
                      struct archive_file *copy, struct rd_err *err)
{
    const struct archive_file *file = &set->m.files[number];
    bool ok;
    *copy = *file;
    if (file->sealed && job->key == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the set is sealed, and the destination has no key");
    if (file->compression == ARCHIVE_COMPRESSION_CHUNKS)
        ok = open_copier(job, err) &&
             chunks_copier_file(job->copier, set, file, (unsigned)number, copy, err);
    else
        ok = is_same_seal(job, set, file) ? copy_stored(job, set, file, err)
                                          : copy_plain(job, set, file, copy, err);
    return ok && is_there(job, set, copy, err);
}

/* ---- sets ---- */

/* The manifest of the copy, which exists from then on. */
static bool commit(struct job *job, const struct archive_set *set, struct archive_file *files,
                   struct rd_err *err)
{
    struct archive_manifest m = set->m; /* borrows its lists */
    struct rd_buf text = {0};
    snprintf(m.target, sizeof m.target, "%s", job->to->target);
    m.key_id[0] = '\0';
    if (job->key != NULL)
        rd_seal_key_id(job->key, m.key_id);
    m.files = files;
    bool ok = archive_manifest_print(&m, job->key, &text, err) &&
              archive_repo_commit(job->to, &m, rd_buf_slice(&text), err);
    rd_buf_done(&text);
    return ok;
}

static struct chunks_copier_counts counts_since(const struct job *job,
                                                const struct chunks_copier_counts *before)
{
    struct chunks_copier_counts counts = {.n_chunks = 0};
    if (job->copier == NULL)
        return counts;
    counts = *chunks_copier_counts(job->copier);
    counts.n_chunks -= before->n_chunks;
    counts.n_sent -= before->n_sent;
    counts.bytes_sent -= before->bytes_sent;
    counts.bytes_read -= before->bytes_read;
    counts.n_found -= before->n_found;
    return counts;
}

static bool copy_set(struct job *job, const struct archive_set *set, struct backup_copied *copied,
                     struct rd_err *err)
{
    struct chunks_copier_counts before = {.n_chunks = 0};
    struct archive_file *files = rd_calloc(set->m.n_files + 1, sizeof *files);
    bool ok = files != NULL || rd_err_nomem(err, set->m.n_files);
    if (job->copier != NULL)
        before = *chunks_copier_counts(job->copier);
    for (size_t i = 0; ok && i < set->m.n_files; i++) {
        rd_watch_begin(job->c->watch, set->id, set->m.files[i].plain.bytes, NULL);
        ok = copy_file(job, set, i, &files[i], err);
        copied->bytes += ok ? archive_file_bytes(&files[i]) : 0;
        rd_watch_end(job->c->watch);
    }
    ok = ok && commit(job, set, files, err);
    copied->chunks = counts_since(job, &before);
    rd_free(files);
    return ok;
}

static struct archive_set *find_there(struct job *job, const struct archive_set *set)
{
    for (size_t i = 0; i < job->have.n; i++)
        if (!job->have.sets[i].incomplete && strcmp(job->have.sets[i].id, set->id) == 0)
            return &job->have.sets[i];
    return NULL;
}

static bool has_same_data(const struct archive_manifest *a, const struct archive_manifest *b)
{
    bool same = a->n_files == b->n_files;
    for (size_t i = 0; same && i < a->n_files; i++)
        same = strcmp(a->files[i].name, b->files[i].name) == 0 &&
               a->files[i].plain.bytes == b->files[i].plain.bytes &&
               memcmp(a->files[i].plain.sha256, b->files[i].plain.sha256, ARCHIVE_SHA256) == 0;
    return same;
}

static bool is_copy(struct job *job, const struct archive_set *set, struct archive_set *there,
                    struct rd_err *err)
{
    return (archive_set_good(there) && archive_set_prove(job->to, there, err) &&
            has_same_data(&there->m, &set->m)) ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                      "the destination has a set with this id that is not good: see verify");
}

static bool is_good(struct job *job, struct archive_set *set, struct rd_err *err)
{
    if (set->err != NULL)
        rd_err_adopt(err, set->err);
    return set->err == NULL && archive_set_prove(job->from, set, err) &&
           (archive_set_good(set) ||
            rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                       set->refused ? "it is not sealed, although there is a key"
                                    : "it is damaged, or files of it are missing"));
}

static void look_at_set(struct job *job, struct archive_set *set)
{
    struct backup_copy *c = job->c;
    struct archive_set *there = find_there(job, set);
    struct backup_copied copied = {.from = job->from, .to = job->to, .set = set};
    bool ok = is_good(job, set, &copied.err);
    if (ok && there != NULL) {
        copied.state = BACKUP_COPY_THERE;
        ok = is_copy(job, set, there, &copied.err);
        c->n_there += ok;
    } else if (ok && c->dry_run) {
        copied.state = BACKUP_COPY_WANTED;
    } else if (ok) {
        ok = copy_set(job, set, &copied, &copied.err);
        c->n_copied += ok;
    }
    if (!ok) {
        copied.state = BACKUP_COPY_FAILED;
        c->n_failed++;
        rd_err_doing(&copied.err, "the set %s of %s", set->id, job->from->target);
    }
    c->copied(c->ctx, &copied);
}

/* ---- a repository ---- */

static bool prepare(struct job *job, struct rd_err *err)
{
    struct backup_copy *c = job->c;
    if (!c->dry_run && !backup_lock(c->watch, c->to, c->to_i, "copy", err))
        return false;
    return backup_list(c->watch, job->from, &job->sets, err) &&
           backup_list(c->watch, job->to, &job->have, err) &&
           backup_keys_seal(&c->to->keys, &job->key, err) &&
           (c->dry_run ||
            (backup_prune_leftovers(job->to, &job->have, err) && chunks_clean(job->to, err)));
}

static bool copy_all(struct job *job, struct rd_err *err)
{
    const char *id = job->c->id;
    struct archive_set *only =
        id != NULL ? archive_sets_find(&job->sets, id, backup_now_ms()) : NULL;
    if (id != NULL && only == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no set %s", job->from->target,
                          id);
    for (size_t i = 0; i < job->sets.n; i++)
        if (!job->sets.sets[i].incomplete && (only == NULL || only == &job->sets.sets[i]))
            look_at_set(job, &job->sets.sets[i]);
    return true;
}

bool backup_copy(struct backup_copy *copy, struct rd_err *err)
{
    struct job job = {
        .c = copy, .from = &copy->from->repos[copy->from_i], .to = &copy->to->repos[copy->to_i]};
    bool ok = prepare(&job, err) && copy_all(&job, err);
    chunks_copier_close(job.copier);
    archive_sets_done(&job.sets);
    archive_sets_done(&job.have);
    return ok;
}
