/* source.c - reads a snapshot into a set, from a running server or from a file. */
#include "rdb/version.h"
#include "tools/backup/source.h"
#include "tools/snapshot/download.h"
#include "tools/snapshot/local.h"
#include "tools/snapshot/sound.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { AUX_MAX = 64 };

/* ---- the metadata of the snapshot ---- */

struct facts {
    struct archive_manifest *m;
    struct rdb_release writer;
    bool no_memory;
};

static void on_aux(struct facts *facts, const struct rdb_event *ev)
{
    struct archive_manifest *m = facts->m;
    char digits[RD_NUM_I64_MAX], text[AUX_MAX];
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, digits);
    int64_t seconds;
    if (ev->aux.value.more || !ev->aux.value.first || value.len >= sizeof text)
        return;
    snprintf(text, sizeof text, "%.*s", (int)value.len, (const char *)value.ptr);
    if (rdb_release_take(&facts->writer, ev->aux.name, value))
        snprintf(m->server, sizeof m->server, "%s %s", facts->writer.valkey ? "valkey" : "redis",
                 facts->writer.version);
    else if (rd_slice_is(ev->aux.name, "ctime") && rd_num_get_i64(value, &seconds) && seconds > 0 &&
             seconds < INT64_MAX / 1000)
        m->data_ms = seconds * 1000;
    else if (rd_slice_is(ev->aux.name, "repl-id") && value.len == REPL_REPLID_LEN)
        snprintf(m->replid, sizeof m->replid, "%.40s", text);
    else if (rd_slice_is(ev->aux.name, "repl-offset"))
        rd_num_get_u64(value, &m->offset);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    struct facts *facts = ctx;
    if (ev->kind == RDB_AUX)
        on_aux(facts, ev);
    if (ev->kind != RDB_KEY)
        return;
    struct archive_db *db = archive_manifest_db(facts->m, ev->key.db);
    if (db == NULL) {
        facts->no_memory = facts->m->n_dbs < ARCHIVE_DBS_MAX;
        return;
    }
    db->keys++;
    db->expires += ev->key.expire_ms != RDB_NO_EXPIRE;
}

bool source_take_snapshot(struct backup_set *set, struct rd_src *src, const char *name,
                          struct rd_err *err)
{
    struct facts facts = {.m = &set->m};
    struct sound sound = {.name = rd_src_origin(src), .event = on_event, .ctx = &facts};
    struct rd_src *tap;
    if (!backup_set_file_begin(set, name, ARCHIVE_ROLE_RDB, err))
        return false;
    bool ok = backup_set_tap(&tap, src, set, err);
    if (ok) {
        ok = sound_check(&sound, tap, err);
        rd_src_close(tap);
    }
    if (ok && facts.no_memory)
        ok = rd_err_nomem(err, sizeof(struct archive_db));
    if (!backup_set_file_end(set, ok, err))
        return false;
    /* The checksum of a snapshot including its own checksum is 0. */
    set->m.files[set->m.n_files - 1].plain.crc64 = sound.res.stored;
    set->m.rdb_version = (uint64_t)sound.res.version;
    set->m.keys += sound.res.keys;
    set->m.expires += sound.res.expires;
    set->m.functions += sound.res.functions;
    return true;
}

/* ---- a server ---- */

void source_peer_options(struct peer_opts *opts, const struct backup_target *target)
{
    peer_opts_init(opts);
    opts->user = backup_get(target, BACKUP_KEY_USER);
    opts->pass_file = backup_get(target, BACKUP_KEY_PASS_FILE);
    opts->connect.cacert = backup_get(target, BACKUP_KEY_CACERT);
    opts->connect.cert = backup_get(target, BACKUP_KEY_CERT);
    opts->connect.key = backup_get(target, BACKUP_KEY_TLS_KEY);
}

void source_hint(struct cli *cli, const struct rd_err *err)
{
    if (err->code == RD_ERR_UNSUPPORTED)
        cli_hint(cli, "scan = yes reads a server that refuses replicas key by key");
    else
        peer_hint(cli, err);
}

/* Opens a file in the spool, if the target has one: archive always has. What cannot be stored there
 * goes to the repositories at once, as without a spool. */
static bool open_spool(struct cli *cli, const struct backup_set *set, struct local *ret)
{
    const struct backup_target *target = set->open->target;
    char folder[BACKUP_PATH_MAX], line[600];
    struct rd_err err = {0};
    if (set->from == NULL && backup_get(target, BACKUP_KEY_SPOOL) == NULL)
        return false;
    if (backup_spool(target, folder, &err) && local_open(ret, folder, &err))
        return true;
    cli_warn(cli, "%s: the server waits for the upload, because the spool cannot be used: %s",
             target->name, rd_err_render(&err, line, sizeof line));
    return false;
}

/* The server is done before the first byte goes to a repository. */
static bool take_spooled(struct cli *cli, struct backup_set *set, struct download *d,
                         struct rd_src *src, struct local *local, struct rd_err *err)
{
    struct rd_src *again;
    if (!local_copy(local, src, set->cancel, err) || !local_source(local, &again, src, err))
        return false;
    if (local->whole)
        download_end(d);
    else
        cli_note(cli,
                 "%s: the spool has no room for the whole snapshot: the server waits for the "
                 "upload of the rest",
                 set->open->target->name);
    bool ok = source_take_snapshot(set, again, "dump.rdb", err);
    rd_src_close(again);
    return ok;
}

static bool take_download(struct cli *cli, struct backup_set *set, const struct client_target *peer,
                          struct rd_err *err)
{
    struct download d = {.cli = cli, .target = peer, .cancel = set->cancel};
    struct rd_src *src;
    struct local local = {.fd = -1};
    bool has_spool = open_spool(cli, set, &local);
    set->asked_server = true;
    bool ok = download_begin(&d, err) && download_source(&d, &src, err);
    if (ok) {
        ok = has_spool ? take_spooled(cli, set, &d, src, &local, err)
                       : source_take_snapshot(set, src, "dump.rdb", err);
        rd_src_close(src);
        cli_progress_end(cli);
    }
    local_close(&local);
    if (ok && repl_replid_is_set(&d.replid)) {
        snprintf(set->m.replid, sizeof set->m.replid, "%s", d.replid.hex);
        set->m.offset = d.offset;
    }
    download_end(&d);
    if (!ok && err != NULL && (d.size == 0 || err->code == RD_ERR_PROTOCOL))
        source_hint(cli, err);
    return ok;
}

static bool read_server(struct cli *cli, struct backup_set *set, const char *url, bool scan,
                        struct rd_err *err)
{
    struct peer_opts opts;
    struct client_target peer = {.port = 0};
    source_peer_options(&opts, set->open->target);
    bool ok = peer_target_find(&peer, &opts, url, err);
    if (ok) {
        snprintf(set->m.source, sizeof set->m.source, "%s", peer.name);
        ok = scan ? source_read_scan(cli, set, &peer, err) : take_download(cli, set, &peer, err);
    }
    client_target_done(&peer);
    peer_opts_done(&opts);
    return ok;
}

/* ---- files ---- */

static bool read_file(struct cli *cli, struct backup_set *set, const char *path, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_unwrapped(&src, path, NULL, err))
        return false;
    snprintf(set->m.source, sizeof set->m.source, "%s", path);
    cli_progress_begin(cli, path, rd_src_size(src));
    cli->progress.src = src;
    bool ok = source_take_snapshot(set, src, "dump.rdb", err);
    cli->progress.src = NULL;
    cli_progress_end(cli);
    rd_src_close(src);
    return ok;
}

/* The log in the folder of a server: in a folder of its own, since Redis 7.0. */
static bool find_inner(const char *folder, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                       struct rd_err *err)
{
    char name[ARCHIVE_FILE_NAME_MAX];
    struct stat st;
    bool none;
    snprintf(ret, BACKUP_PATH_MAX, "%s/appendonlydir", folder);
    *ret_is_log = source_find_log(ret, name, &none, err);
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

bool source_find_files(const char *source, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
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
    *ret_is_log = source_find_log(source, name, &none, err);
    return *ret_is_log || (none && find_inner(source, ret, ret_is_log, err));
}

static bool read_path(struct cli *cli, struct backup_set *set, const char *source,
                      struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    bool is_log;
    if (!source_find_files(source, path, &is_log, err))
        return false;
    return is_log ? source_read_log(cli, set, path, err) : read_file(cli, set, path, err);
}

/* A source given by `archive`: another address of the same server, or the snapshot with which its
 * capture began. */
static bool read_from(struct cli *cli, struct backup_set *set, struct rd_err *err)
{
    const struct backup_from *from = set->from;
    if (from->server != NULL) {
        snprintf(set->m.source, sizeof set->m.source, "%s", from->server->name);
        return take_download(cli, set, from->server, err);
    }
    if (!read_file(cli, set, from->snapshot, err))
        return false;
    snprintf(set->m.source, sizeof set->m.source, "%s", from->source);
    snprintf(set->m.replid, sizeof set->m.replid, "%s", from->replid);
    set->m.offset = from->offset;
    return true;
}

bool source_check(const struct backup_target *target, struct rd_err *err)
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

bool source_read(struct cli *cli, struct backup_set *set, struct rd_err *err)
{
    if (set->from != NULL)
        return read_from(cli, set, err);
    const struct backup_target *target = set->open->target;
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    bool cluster, scan;
    if (source == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    if (!source_check(target, err) || !backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, err) ||
        !backup_get_bool(target, BACKUP_KEY_SCAN, &scan, err))
        return false;
    if (!client_target_is_url(source))
        return read_path(cli, set, source, err);
    return cluster ? source_read_cluster(cli, set, source, err)
                   : read_server(cli, set, source, scan, err);
}

static bool read_with(void *ctx, struct backup_set *set, struct rd_err *err)
{
    return source_read(ctx, set, err);
}

bool source_take(struct cli *cli, struct backup_set *set, struct rd_err *err)
{
    const struct backup_job job = {.tool = cli->tool, .read = read_with, .ctx = cli};
    struct rd_watch watch = cli_watch(cli);
    watch.cancel = set->cancel;
    return backup_take(&watch, &job, set, err);
}
