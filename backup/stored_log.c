#include "backup/stored_log.h"

#include <string.h>

#include "rebuild/rebuild.h"

const struct archive_file *backup_stored_file(const struct archive_manifest *m, const char *name)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (strcmp(m->files[i].name, name) == 0)
            return &m->files[i];
    return NULL;
}

static const struct archive_file *manifest_file(const struct archive_manifest *m)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (m->files[i].role == ARCHIVE_ROLE_AOF_MANIFEST)
            return &m->files[i];
    return NULL;
}

static bool open_file(struct backup_stored_log *log, const struct archive_file *file,
                      struct rd_src **ret, struct rd_err *err)
{
    return archive_set_open(log->repo, log->set, file, log->ring, ret, err);
}

static bool open_of_log(void *ctx, const struct aof_file *wanted, struct rd_src **ret,
                        struct rd_err *err)
{
    struct backup_stored_log *log = ctx;
    const struct archive_file *file = backup_stored_file(&log->set->m, wanted->name);
    if (file == NULL)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the set has no file %.200s",
                          wanted->name);
    if (!open_file(log, file, ret, err))
        return false;
    rd_watch_end(log->watch);
    rd_watch_begin(log->watch, file->name, file->plain.bytes, *ret);
    return true;
}

static bool read_manifest(struct backup_stored_log *log, const struct archive_file *file,
                          struct aof_manifest *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!open_file(log, file, &src, err))
        return false;
    bool ok = aof_manifest_read(ret, src, NULL, NULL, err);
    rd_src_close(src);
    return ok;
}

bool backup_stored_log_save(struct backup_stored_log *log, struct rd_sink *out, struct rd_err *err)
{
    const struct rebuild_opts opts = {
        .until_ms = INT64_MIN, .now_ms = log->now_ms, .keep_unknown = log->keep_unknown};
    const struct archive_file *file = manifest_file(&log->set->m);
    struct rebuild_result done = {.ended_early = false};
    struct aof_manifest manifest;
    if (file == NULL)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the set has no manifest of a log");
    const struct rebuild_log in = {
        .name = file->name, .manifest = &manifest, .open = open_of_log, .ctx = log};
    aof_manifest_init(&manifest);
    bool ok =
        read_manifest(log, file, &manifest, err) && rebuild_from_log(&opts, &in, out, &done, err);
    rd_watch_end(log->watch);
    aof_manifest_done(&manifest);
    log->counts = done.counts;
    log->advice = done.advice;
    return ok;
}
