/* layout.c - writes a set or a moment as files that a server loads. */
#include "backup/replay.h"
#include "tools/convert/convert.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/restore.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_FOLDER "appendonlydir"
#define SPOOLS     "/proc/self/fd/"

/* ---- one file ---- */

static bool write_file(struct restore *run, const struct archive_file *file, struct rd_sink *out,
                       struct rd_err *err)
{
    struct rd_src *src;
    if (!archive_set_open(run->repo, run->set, file, &run->open.keys.ring, &src, err))
        return false;
    cli_progress_begin(run->cli, file->name, file->plain.bytes);
    /* The source verifies the digests at its end. */
    bool ok = cli_copy(run->cli, src, out, err);
    cli_progress_end(run->cli);
    rd_src_close(src);
    return ok;
}

/* The snapshot of the moment. */
static bool replay(struct restore *run, struct rd_sink *out, struct rd_err *err)
{
    struct rebuild_data data;
    snapshot_in_watch_memory(run->cli);
    rebuild_data_begin(&data, cli_now_ms() * 1000);
    data.keep_unknown = run->keep_unknown;
    bool ok = backup_replay(&run->plan, &data, err) && rebuild_data_save(&data, out, err);
    restore_count(run, &data.counts);
    rebuild_data_end(&data);
    return ok;
}

/* The snapshot that is restored. `file` is that of the set, unless the set is a log. */
static bool write_snapshot(struct restore *run, const struct archive_file *file,
                           struct rd_sink *out, struct rd_err *err)
{
    if (restore_of_log(run->set))
        return restore_rebuild(run, out, err);
    if (file->node != 0)
        backup_plan_node(&run->plan, run->set, file);
    if ((run->want.goal == BACKUP_GOAL_SET && file->node == 0) || run->plan.first > run->plan.last)
        return write_file(run, file, out, err);
    return replay(run, out, err);
}

bool restore_spool(struct restore *run, const struct archive_file *file, struct spool *spool,
                   struct rd_err *err)
{
    struct rd_sink *sink;
    if (!spool_sink(spool, &sink, err))
        return false;
    if (write_snapshot(run, file, sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

/* The spool has no name, but a path under which it can be opened again. */
static bool convert_spool(struct restore *run, const struct spool *spool, const char *path,
                          struct rd_err *err)
{
    char name[40];
    struct cli cli = *run->cli;
    snprintf(name, sizeof name, SPOOLS "%d", spool->fd);
    cli.json = false;
    struct job job = convert_defaults(&cli);
    job.path = name;
    job.target = TO_RDB;
    job.input = FROM_RDB;
    job.version = run->version;
    job.dialect = run->dialect;
    job.filter = run->filter;
    job.out_path = path;
    job.force = run->force;
    job.may_be_empty = run->staged.len > 0; /* each master has a file */
    bool ok = convert_run(&job, err);
    run->keys += job.keys;
    run->nothing = ok && run->keys == 0 && filter_active(&run->filter);
    memcpy(run->cli->hint, cli.hint, sizeof cli.hint);
    return ok;
}

static bool convert_file(struct restore *run, const struct archive_file *file, const char *path,
                         struct rd_err *err)
{
    struct spool spool = {0};
    bool ok = restore_spool(run, file, &spool, err);
    if (ok && !convert_spool(run, &spool, path, err)) {
        ok = false;
        if (err != NULL && strncmp(err->origin, SPOOLS, strlen(SPOOLS)) == 0)
            snprintf(err->origin, sizeof err->origin, "%.100s of the set %s", file->name,
                     run->set->m.id);
        if (err != NULL && err->code == RD_ERR_UNSUPPORTED && run->cli->hint[0] == '\0')
            cli_hint(run->cli, "restore it without --rdb-version and --dialect, and use redoubt "
                               "convert --lossy");
    }
    spool_done(&spool);
    return ok;
}

typedef bool (*write_fn)(struct restore *run, const struct archive_file *file, struct rd_sink *out,
                         struct rd_err *err);

static bool write_to(struct restore *run, const struct archive_file *file, write_fn write,
                     const char *path, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!cli_open_out(run->cli, path, run->force, true, &sink, err))
        return false;
    if (write(run, file, sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static bool restore_file(struct restore *run, const struct archive_file *file, const char *path,
                         struct rd_err *err)
{
    return restore_converts(run) ? convert_file(run, file, path, err)
                                 : write_to(run, file, write_snapshot, path, err);
}

static bool write_text(struct restore *run, const char *path, const char *text, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!cli_open_out(run->cli, path, run->force, false, &sink, err))
        return false;
    rd_sink_write(sink, text, strlen(text));
    return rd_sink_close(sink, err);
}

/* ---- the destination ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool names_folder(const char *path)
{
    size_t len = strlen(path);
    return len > 0 && path[len - 1] == '/';
}

/* Whether a path is that of a file, existing or not, rather than of a folder. */
static bool names_file(const char *path)
{
    if (access(path, F_OK) == 0 || strcmp(path, "-") == 0)
        return !is_folder(path);
    return cli_name_ends(path, "rdb");
}

/* Whether a folder has files; a folder that does not exist has none. */
static bool has_files(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    bool any = false;
    while (dir != NULL && !any && (entry = readdir(dir)) != NULL)
        any = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir != NULL)
        closedir(dir);
    return any;
}

static bool join(char ret[RESTORE_PATH_MAX], const char *folder, const char *name,
                 struct rd_err *err)
{
    int len = snprintf(ret, RESTORE_PATH_MAX, "%s/%s", folder, name);
    return (len > 0 && len < RESTORE_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
}

static bool refuse_log(struct restore *run, const char *folder, struct rd_err *err)
{
    char log[RESTORE_PATH_MAX];
    if (!join(log, folder, LOG_FOLDER, err))
        return false;
    if (run->force || !has_files(log))
        return true;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a log already exists");
    rd_err_origin(err, log);
    cli_hint(run->cli, "with appendonly yes a server loads the log and not dump.rdb: move the "
                       "folder away first");
    return false;
}

/* ---- a log ---- */

static bool stage_in(struct restore *run, char ret[RESTORE_PATH_MAX], const char *folder,
                     const char *name, struct rd_err *err)
{
    return join(ret, folder, name, err) && restore_stage(run, ret, err);
}

static bool begin_log(struct restore *run, const char *folder, char ret[RESTORE_PATH_MAX],
                      struct rd_err *err)
{
    return join(ret, folder, LOG_FOLDER, err) && refuse_log(run, folder, err) &&
           restore_make_folder(run, folder, err) && restore_make_folder(run, ret, err);
}

static bool restore_log(struct restore *run, const char *folder, struct rd_err *err)
{
    char log[RESTORE_PATH_MAX], path[RESTORE_PATH_MAX];
    const struct archive_manifest *m = &run->set->m;
    if (!begin_log(run, folder, log, err))
        return false;
    for (size_t i = 0; i < m->n_files; i++)
        if (!stage_in(run, path, log, m->files[i].name, err) ||
            !write_to(run, &m->files[i], write_file, path, err))
            return false;
    return true;
}

/* A snapshot as the base of a log, for a server with appendonly yes. */
static bool restore_as_log(struct restore *run, const struct archive_file *file, const char *folder,
                           struct rd_err *err)
{
    char log[RESTORE_PATH_MAX], path[RESTORE_PATH_MAX];
    return begin_log(run, folder, log, err) &&
           stage_in(run, path, log, "appendonly.aof.1.base.rdb", err) &&
           restore_file(run, file, path, err) &&
           stage_in(run, path, log, "appendonly.aof.manifest", err) &&
           write_text(run, path, "file appendonly.aof.1.base.rdb seq 1 type b\n", err);
}

/* ---- layouts ---- */

static bool restore_snapshot(struct restore *run, const struct archive_file *file, const char *to,
                             struct rd_err *err)
{
    char path[RESTORE_PATH_MAX];
    if (names_folder(to) && !restore_make_folder(run, to, err))
        return false;
    if (!is_folder(to))
        return restore_file(run, file, to, err);
    return refuse_log(run, to, err) && join(path, to, "dump.rdb", err) &&
           restore_file(run, file, path, err);
}

/* ---- a cluster ---- */

/* The file that a server with cluster-enabled reads at its start: its id and its slots. The masters
 * learn of each other by CLUSTER MEET. */
static bool write_nodes(struct restore *run, const struct archive_file *file, const char *folder,
                        struct rd_err *err)
{
    const struct archive_node *node = &run->set->m.nodes[file->node - 1];
    char path[RESTORE_PATH_MAX], slots[ARCHIVE_SLOTS_MAX], text[ARCHIVE_SLOTS_MAX + 300];
    snprintf(slots, sizeof slots, "%s", node->slots);
    for (char *at = slots; *at != '\0'; at++)
        if (*at == ',')
            *at = ' ';
    snprintf(text, sizeof text,
             "%s :0@0 myself,master - 0 0 %llu connected %s\n"
             "vars currentEpoch %llu lastVoteEpoch 0\n",
             node->id, (unsigned long long)file->node, slots,
             (unsigned long long)run->set->m.n_nodes);
    return stage_in(run, path, folder, "nodes.conf", err) && write_text(run, path, text, err);
}

static bool restore_node_snapshot(struct restore *run, const struct archive_file *file,
                                  const char *folder, struct rd_err *err)
{
    char path[RESTORE_PATH_MAX];
    return refuse_log(run, folder, err) && stage_in(run, path, folder, "dump.rdb", err) &&
           restore_file(run, file, path, err);
}

static bool restore_node(struct restore *run, const struct archive_file *file, struct rd_err *err)
{
    char folder[RESTORE_PATH_MAX], name[40];
    snprintf(name, sizeof name, "shard-%llu", (unsigned long long)file->node);
    if (!join(folder, run->to, name, err) || !restore_make_folder(run, folder, err))
        return false;
    bool ok = run->layout == RESTORE_LAYOUT_AOF ? restore_as_log(run, file, folder, err)
                                                : restore_node_snapshot(run, file, folder, err);
    return ok && write_nodes(run, file, folder, err);
}

static bool restore_cluster(struct restore *run, struct rd_err *err)
{
    const struct archive_manifest *m = &run->set->m;
    if (!restore_make_folder(run, run->to, err))
        return false;
    for (size_t i = 0; i < m->n_files; i++)
        if (m->files[i].role == ARCHIVE_ROLE_RDB && !restore_node(run, &m->files[i], err))
            return false;
    return true;
}

/* A log remains one in a folder: with appendonly yes, the server would ignore dump.rdb. */
bool restore_makes_log(const struct restore *run)
{
    if (client_target_is_url(run->to))
        return false;
    return run->layout == RESTORE_LAYOUT_AUTO ? restore_of_log(run->set) && !names_file(run->to)
                                              : run->layout == RESTORE_LAYOUT_AOF;
}

static bool lay_out(struct restore *run, struct rd_err *err)
{
    const struct archive_file *file = &run->set->m.files[0];
    if (restore_of_cluster(run->set))
        return restore_cluster(run, err);
    if (!restore_makes_log(run))
        return restore_snapshot(run, file, run->to, err);
    if (names_file(run->to))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a log must be restored into a folder");
    return restore_of_log(run->set) && !restore_converts(run)
               ? restore_log(run, run->to, err)
               : restore_as_log(run, file, run->to, err);
}

bool restore_lay_out(struct restore *run, struct rd_err *err)
{
    bool ok = lay_out(run, err) && (run->nothing || restore_publish(run, err));
    restore_unstage(run, ok && !run->nothing);
    return ok;
}
