/* source.c - reads a snapshot into a set, from a running server or from a file. */
#include "backup/source.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "backup/cluster.h"
#include "backup/local.h"
#include "backup/log.h"
#include "backup/login.h"
#include "backup/scan.h"
#include "backup/snapshot.h"
#include "backup/spool_file.h"
#include "backup/system.h"
#include "capture/download.h"

/* ---- a server ---- */

/* Opens a file in the spool, if the target has one: archive always has. What cannot be stored there
 * goes to the repositories at once, as without a spool. */
static bool open_spool(const struct rd_watch *watch, const struct backup_set *set,
                       struct backup_local *ret)
{
    const struct backup_target *target = set->open->target;
    char folder[BACKUP_PATH_MAX], line[600];
    struct rd_err err = {0};
    if (set->from == NULL && backup_get(target, BACKUP_KEY_SPOOL) == NULL)
        return false;
    if (backup_spool(target, folder, &err) && backup_local_open(ret, folder, &err))
        return true;
    rd_watch_warn(watch,
                  "%s: the server waits for the upload, because the spool cannot be used: %s",
                  target->name, rd_err_render(&err, line, sizeof line));
    return false;
}

/* The server is done before the first byte goes to a repository. */
static bool take_spooled(struct backup_set *set, struct capture_download *d, struct rd_src *src,
                         struct backup_local *local, struct rd_err *err)
{
    struct rd_src *again;
    if (!backup_local_copy(local, src, set->cancel, err) ||
        !backup_local_source(local, &again, src, err))
        return false;
    if (local->whole)
        capture_download_end(d);
    else
        rd_watch_note(d->watch,
                      "%s: the spool has no room for the whole snapshot: the server waits for the "
                      "upload of the rest",
                      set->open->target->name);
    bool ok = backup_snapshot_take(set, again, "dump.rdb", err);
    rd_src_close(again);
    return ok;
}

static bool take_download(const struct rd_watch *watch, struct backup_set *set,
                          const struct client_target *server, struct rd_err *err)
{
    struct capture_download d = {.watch = watch, .target = server};
    struct rd_src *src;
    struct backup_local local = {.fd = -1};
    bool has_spool = open_spool(watch, set, &local);
    set->asked_server = true;
    bool ok = capture_download_begin(&d, err) && capture_download_source(&d, &src, err);
    if (ok) {
        ok = has_spool ? take_spooled(set, &d, src, &local, err)
                       : backup_snapshot_take(set, src, "dump.rdb", err);
        rd_src_close(src);
        rd_watch_end(watch);
    }
    backup_local_close(&local);
    if (ok && repl_replid_is_set(&d.replid)) {
        snprintf(set->m.replid, sizeof set->m.replid, "%s", d.replid.hex);
        set->m.offset = d.offset;
    }
    set->refused = !ok && d.size == 0;
    capture_download_end(&d);
    return ok;
}

static bool read_server(const struct rd_watch *watch, struct backup_set *set, const char *url,
                        bool scan, struct rd_err *err)
{
    struct client_opts opts;
    struct client_target server;
    if (!backup_login_find(set->open->target, url, &opts, &server, err))
        return false;
    snprintf(set->m.source, sizeof set->m.source, "%s", server.name);
    bool ok =
        scan ? backup_scan_read(watch, set, &server, err) : take_download(watch, set, &server, err);
    client_target_done(&server);
    return ok;
}

/* ---- files ---- */

static bool read_src(const struct rd_watch *watch, struct backup_set *set, struct rd_src *src,
                     const char *path, struct rd_err *err)
{
    snprintf(set->m.source, sizeof set->m.source, "%.*s", (int)sizeof set->m.source - 1, path);
    rd_watch_begin(watch, path, rd_src_size(src), src);
    bool ok = backup_snapshot_take(set, src, "dump.rdb", err);
    rd_watch_end(watch);
    rd_src_close(src);
    return ok;
}

static bool read_file(const struct rd_watch *watch, struct backup_set *set, const char *path,
                      struct rd_err *err)
{
    struct rd_src *src;
    return rd_src_open_unwrapped(&src, path, NULL, err) && read_src(watch, set, src, path, err);
}

/* The log in the folder of a server: in a folder of its own, since Redis 7.0. */
static bool find_inner(const char *folder, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                       struct rd_err *err)
{
    char name[ARCHIVE_FILE_NAME_MAX];
    struct stat st;
    bool none;
    snprintf(ret, BACKUP_PATH_MAX, "%s/appendonlydir", folder);
    *ret_is_log = backup_log_find(ret, name, &none, err);
    if (*ret_is_log || !none)
        return *ret_is_log;
    snprintf(ret, BACKUP_PATH_MAX, "%s/appendonly.aof", folder);
    if (stat(ret, &st) == 0) {
        rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                   "the log of a server before Redis 7.0 cannot be copied: use the URL of the "
                   "server, or the path of dump.rdb");
        rd_err_origin(err, ret);
        return false;
    }
    snprintf(ret, BACKUP_PATH_MAX, "%s/dump.rdb", folder);
    return true;
}

bool backup_source_find(const char *source, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                        struct rd_err *err)
{
    char name[ARCHIVE_FILE_NAME_MAX];
    struct stat st;
    bool none;
    *ret_is_log = false;
    if (stat(source, &st) != 0) {
        rd_err_sys(err, errno, "cannot open the source");
        rd_err_origin(err, source);
        return false;
    }
    snprintf(ret, BACKUP_PATH_MAX, "%s", source);
    if (!S_ISDIR(st.st_mode))
        return true;
    *ret_is_log = backup_log_find(source, name, &none, err);
    return *ret_is_log || (none && find_inner(source, ret, ret_is_log, err));
}

static bool read_path(const struct rd_watch *watch, struct backup_set *set, const char *source,
                      struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    bool is_log;
    if (!backup_source_find(source, path, &is_log, err))
        return false;
    return is_log ? backup_log_read(watch, set, path, err) : read_file(watch, set, path, err);
}

/* A source given by `archive`: another address of the same server, or the snapshot with which its
 * capture began. */
static bool read_from(const struct rd_watch *watch, struct backup_set *set, struct rd_err *err)
{
    const struct backup_from *from = set->from;
    if (from->server != NULL) {
        snprintf(set->m.source, sizeof set->m.source, "%s", from->server->name);
        return take_download(watch, set, from->server, err);
    }
    struct rd_src *src;
    bool ok = from->spool == NULL
                  ? read_file(watch, set, from->snapshot, err)
                  : backup_spool_file_open(&src, from->spool, from->name, from->snapshot, err) &&
                        read_src(watch, set, src, from->snapshot, err);
    if (!ok)
        return false;
    snprintf(set->m.source, sizeof set->m.source, "%s", from->source);
    snprintf(set->m.replid, sizeof set->m.replid, "%s", from->replid);
    set->m.offset = from->offset;
    return true;
}

bool backup_source_check(const struct backup_target *target, struct rd_err *err)
{
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    bool cluster, scan;
    if (!backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err) ||
        !backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err))
        return false;
    if (cluster && scan)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "cluster and scan cannot be combined: use a target for each master");
    if ((cluster || scan) && source != NULL && !client_target_is_url(source))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s needs the URL of a server",
                          cluster ? "cluster" : "scan");
    return true;
}

static bool read_source(void *ctx, struct backup_set *set, struct rd_err *err)
{
    const struct backup_source *from = ctx;
    if (set->from != NULL)
        return read_from(from->watch, set, err);
    const struct backup_target *target = set->open->target;
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    bool cluster, scan;
    if (source == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    if (!backup_source_check(target, err) ||
        !backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err) ||
        !backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err))
        return false;
    if (!client_target_is_url(source))
        return read_path(from->watch, set, source, err);
    return cluster ? backup_cluster_read(from, set, source, err)
                   : read_server(from->watch, set, source, scan, err);
}

bool backup_source_take(const struct backup_source *source, struct backup_set *set,
                        struct rd_err *err)
{
    struct backup_source from = *source;
    const struct backup_job job = {.tool = source->tool, .read = read_source, .ctx = &from};
    return backup_take(source->watch, &job, set, err);
}
