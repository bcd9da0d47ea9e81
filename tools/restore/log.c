/* log.c - runs the log of a set on an engine, for destinations that need a snapshot. */
#include "rebuild/rebuild.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/restore.h"

static const struct archive_file *file_named(const struct archive_manifest *m, const char *name)
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

static bool open_set_file(struct restore *run, const struct archive_file *file, struct rd_src **ret,
                          struct rd_err *err)
{
    return archive_set_open(run->repo, run->set, file, &run->open.keys.ring, ret, err);
}

static bool open_log_file(void *ctx, const struct aof_file *wanted, struct rd_src **ret,
                          struct rd_err *err)
{
    struct restore *run = ctx;
    const struct archive_file *file = file_named(&run->set->m, wanted->name);
    if (file == NULL)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the set has no file %.200s",
                          wanted->name);
    if (!open_set_file(run, file, ret, err))
        return false;
    cli_progress_end(run->cli);
    cli_progress_begin(run->cli, file->name, file->plain.bytes);
    run->cli->progress.src = *ret;
    return true;
}

static bool read_manifest(struct restore *run, const struct archive_file *file,
                          struct aof_manifest *ret, struct rd_err *err)
{
    struct rd_src *src;
    if (!open_set_file(run, file, &src, err))
        return false;
    bool ok = aof_manifest_read(ret, src, NULL, NULL, err);
    rd_src_close(src);
    return ok;
}

/* The engine cannot run a command, but a server can. */
static void give_hint(struct restore *run, const struct rd_err *err)
{
    if (err != NULL && err->code == RD_ERR_UNSUPPORTED)
        cli_hint(run->cli, "restore the log into a folder, with --layout aof and without filters; "
                           "--keep-unknown omits such commands");
}

bool restore_rebuild(struct restore *run, struct rd_sink *out, struct rd_err *err)
{
    const struct rebuild_opts opts = {
        .until_ms = INT64_MIN, .now_ms = run->cli->began_ms, .keep_unknown = run->keep_unknown};
    const struct archive_file *file = manifest_file(&run->set->m);
    struct rebuild_result done = {.ended_early = false};
    struct aof_manifest manifest;
    if (file == NULL)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the set has no manifest of a log");
    const struct rebuild_log log = {
        .name = file->name, .manifest = &manifest, .open = open_log_file, .ctx = run};
    snapshot_in_watch_memory(run->cli);
    aof_manifest_init(&manifest);
    bool ok =
        read_manifest(run, file, &manifest, err) && rebuild_from_log(&opts, &log, out, &done, err);
    run->cli->progress.src = NULL;
    cli_progress_end(run->cli);
    aof_manifest_done(&manifest);
    if (!ok)
        give_hint(run, err);
    restore_count(run, &done.counts);
    return ok;
}
