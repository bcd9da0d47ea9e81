#include "backup/lay_out.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_FOLDER "appendonlydir"

/* A restore under way. */
struct job {
    struct backup_lay_out *out;
    struct backup_restore *r;
};

/* ---- one file ---- */

static bool change_file(struct job *job, const struct archive_file *file, const char *path,
                        struct rd_err *err)
{
    struct spool spool = {0};
    bool ok = backup_restore_spool(job->r, file, &spool, err) &&
              job->out->change(job->out, file, &spool, path, err);
    spool_done(&spool);
    return ok;
}

typedef bool (*write_fn)(struct backup_restore *r, const struct archive_file *file,
                         struct rd_sink *out, struct rd_err *err);

static bool write_to(struct job *job, const struct archive_file *file, write_fn write,
                     const char *path, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!job->out->open(job->out->ctx, path, true, &sink, err))
        return false;
    if (write(job->r, file, sink, err))
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

static bool restore_file(struct job *job, const struct archive_file *file, const char *path,
                         struct rd_err *err)
{
    return job->out->change != NULL ? change_file(job, file, path, err)
                                    : write_to(job, file, backup_restore_snapshot, path, err);
}

/* A file that is replaced may have most of the new one. If it was changed meanwhile, it is not
 * used. */
static bool replace_file(struct job *job, const struct archive_file *file, const char *path,
                         struct rd_err *err)
{
    struct rd_err why = {0};
    if (!job->out->replaces)
        return restore_file(job, file, path, err);
    job->r->over = path;
    bool ok = restore_file(job, file, path, &why);
    job->r->over = NULL;
    if (!ok && job->r->kept.id[0] != '\0') {
        job->r->kept = (struct chunks_over){.kept = 0};
        return restore_file(job, file, path, err);
    }
    rd_err_adopt(err, &why);
    return ok;
}

static bool write_text(struct job *job, const char *path, const char *text, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!job->out->open(job->out->ctx, path, false, &sink, err))
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

static bool ends(const char *path, const char *tail)
{
    size_t len = strlen(path), n = strlen(tail);
    return len > n && strcasecmp(path + len - n, tail) == 0;
}

/* Whether the destination is a file, existing or not, rather than a folder. */
static bool names_file(const struct backup_lay_out *out)
{
    const char *path = out->to;
    if (out->together)
        return false;
    if (access(path, F_OK) == 0 || strcmp(path, "-") == 0)
        return !is_folder(path);
    return ends(path, ".rdb") || ends(path, ".rdb.gz") || ends(path, ".rdb.lz4") ||
           ends(path, ".rdb.zst");
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

static bool join(char ret[BACKUP_PATH_MAX], const char *folder, const char *name,
                 struct rd_err *err)
{
    int len = snprintf(ret, BACKUP_PATH_MAX, "%s/%s", folder, name);
    return (len > 0 && len < BACKUP_PATH_MAX) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
}

static bool refuse_log(struct job *job, const char *folder, struct rd_err *err)
{
    char log[BACKUP_PATH_MAX];
    if (!join(log, folder, LOG_FOLDER, err))
        return false;
    if (job->out->replaces || !has_files(log))
        return true;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a log already exists");
    rd_err_origin(err, log);
    rd_watch_hint(job->r->watch,
                  "with appendonly yes a server loads the log and not dump.rdb: move the "
                  "folder away first");
    return false;
}

/* ---- a log ---- */

static bool stage_in(struct job *job, char ret[BACKUP_PATH_MAX], const char *folder,
                     const char *name, struct rd_err *err)
{
    return join(ret, folder, name, err) && backup_staging_file(&job->out->staging, ret, err);
}

static bool begin_log(struct job *job, const char *folder, char ret[BACKUP_PATH_MAX],
                      struct rd_err *err)
{
    return join(ret, folder, LOG_FOLDER, err) && refuse_log(job, folder, err) &&
           backup_staging_folder(&job->out->staging, folder, err) &&
           backup_staging_folder(&job->out->staging, ret, err);
}

static bool restore_log(struct job *job, const char *folder, struct rd_err *err)
{
    char log[BACKUP_PATH_MAX], path[BACKUP_PATH_MAX];
    const struct archive_manifest *m = &job->r->set->m;
    if (!begin_log(job, folder, log, err))
        return false;
    for (size_t i = 0; i < m->n_files; i++)
        if (!stage_in(job, path, log, m->files[i].name, err) ||
            !write_to(job, &m->files[i], backup_restore_file, path, err))
            return false;
    return true;
}

/* A snapshot as the base of a log, for a server with appendonly yes. */
static bool restore_as_log(struct job *job, const struct archive_file *file, const char *folder,
                           struct rd_err *err)
{
    char log[BACKUP_PATH_MAX], path[BACKUP_PATH_MAX];
    return begin_log(job, folder, log, err) &&
           stage_in(job, path, log, "appendonly.aof.1.base.rdb", err) &&
           restore_file(job, file, path, err) &&
           stage_in(job, path, log, "appendonly.aof.manifest", err) &&
           write_text(job, path, "file appendonly.aof.1.base.rdb seq 1 type b\n", err);
}

/* ---- layouts ---- */

static bool restore_waiting(struct job *job, const struct archive_file *file, const char *folder,
                            struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    return refuse_log(job, folder, err) && stage_in(job, path, folder, "dump.rdb", err) &&
           restore_file(job, file, path, err);
}

static bool restore_snapshot(struct job *job, const struct archive_file *file, const char *to,
                             struct rd_err *err)
{
    char path[BACKUP_PATH_MAX];
    if (job->out->together)
        return backup_staging_folder(&job->out->staging, to, err) &&
               restore_waiting(job, file, to, err);
    if (names_folder(to) && !backup_staging_folder(&job->out->staging, to, err))
        return false;
    if (!is_folder(to))
        return replace_file(job, file, to, err);
    return refuse_log(job, to, err) && join(path, to, "dump.rdb", err) &&
           replace_file(job, file, path, err);
}

/* ---- a cluster ---- */

/* The file that a server with cluster-enabled reads at its start: its id and its slots. The masters
 * learn of each other by CLUSTER MEET. */
static bool write_nodes(struct job *job, const struct archive_file *file, const char *folder,
                        struct rd_err *err)
{
    const struct archive_node *node = &job->r->set->m.nodes[file->node - 1];
    char path[BACKUP_PATH_MAX], slots[ARCHIVE_SLOTS_MAX], text[ARCHIVE_SLOTS_MAX + 300];
    snprintf(slots, sizeof slots, "%s", node->slots);
    for (char *at = slots; *at != '\0'; at++)
        if (*at == ',')
            *at = ' ';
    snprintf(text, sizeof text,
             "%s :0@0 myself,master - 0 0 %llu connected %s\n"
             "vars currentEpoch %llu lastVoteEpoch 0\n",
             node->id, (unsigned long long)file->node, slots,
             (unsigned long long)job->r->set->m.n_nodes);
    return stage_in(job, path, folder, "nodes.conf", err) && write_text(job, path, text, err);
}

static bool restore_node(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    char folder[BACKUP_PATH_MAX], name[40];
    snprintf(name, sizeof name, "shard-%llu", (unsigned long long)file->node);
    if (!join(folder, job->out->to, name, err) ||
        !backup_staging_folder(&job->out->staging, folder, err))
        return false;
    bool ok = job->out->layout == BACKUP_LAYOUT_AOF ? restore_as_log(job, file, folder, err)
                                                    : restore_waiting(job, file, folder, err);
    return ok && write_nodes(job, file, folder, err);
}

static bool restore_cluster(struct job *job, struct rd_err *err)
{
    const struct archive_manifest *m = &job->r->set->m;
    if (!backup_staging_folder(&job->out->staging, job->out->to, err))
        return false;
    for (size_t i = 0; i < m->n_files; i++)
        if (m->files[i].role == ARCHIVE_ROLE_RDB && !restore_node(job, &m->files[i], err))
            return false;
    return true;
}

bool backup_lay_out_is_log(const struct backup_lay_out *out, const struct archive_set *set)
{
    return out->layout == BACKUP_LAYOUT_AUTO ? backup_restore_is_log(set) && !names_file(out)
                                             : out->layout == BACKUP_LAYOUT_AOF;
}

static bool lay_out(struct job *job, struct rd_err *err)
{
    const struct archive_set *set = job->r->set;
    const struct archive_file *file = &set->m.files[0];
    const char *to = job->out->to;
    if (backup_restore_is_cluster(set))
        return restore_cluster(job, err);
    if (!backup_lay_out_is_log(job->out, set))
        return restore_snapshot(job, file, to, err);
    if (names_file(job->out))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a log must be restored into a folder");
    return backup_restore_is_log(set) && job->out->change == NULL
               ? restore_log(job, to, err)
               : restore_as_log(job, file, to, err);
}

static void begin_staging(struct backup_lay_out *out)
{
    out->staging =
        (struct backup_staging){.replaces = out->replaces, .check = out->check, .ctx = out->ctx};
}

bool backup_lay_out(struct backup_lay_out *out, struct backup_restore *r, struct rd_err *err)
{
    struct job job = {.out = out, .r = r};
    out->nothing = false;
    if (out->together) {
        size_t others = backup_staging_count(&out->staging);
        if (lay_out(&job, err))
            return true;
        backup_staging_forget(&out->staging, others);
        return false;
    }
    begin_staging(out);
    bool ok = lay_out(&job, err) && (out->nothing || backup_staging_publish(&out->staging, err));
    backup_staging_done(&out->staging, ok && !out->nothing);
    return ok;
}

bool backup_lay_out_begin(struct backup_lay_out *out, const char *folder, struct rd_err *err)
{
    out->together = true;
    begin_staging(out);
    return backup_staging_folder(&out->staging, folder, err);
}

bool backup_lay_out_publish(struct backup_lay_out *out, struct rd_err *err)
{
    return backup_staging_publish(&out->staging, err);
}

void backup_lay_out_done(struct backup_lay_out *out, bool complete)
{
    backup_staging_done(&out->staging, complete);
}
