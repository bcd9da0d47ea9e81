/* restore.c - `redoubt restore`: a set, laid out so that a server loads it. */
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum layout { LAYOUT_AUTO, LAYOUT_RDB, LAYOUT_AOF };

struct run {
    struct cli *cli;
    struct vault vault;
    const char *to, *id;
    bool force, dry_run;
    int layout; /* enum layout */
    struct vault_open open;
    struct archive_repo *repo;
    const struct archive_set *set;
};

#define LOG_FOLDER "appendonlydir"

/* ---- one file ---- */

/* The digests hold when the source has come to its end; then the file gets its name. */
static bool copy(struct run *run, struct rd_src *src, struct rd_sink *sink, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status;
    run->cli->progress.src = src;
    while ((status = rd_src_need(src, 1, &s)) == RD_SRC_OK && rd_sink_write(sink, s.ptr, s.len)) {
        rd_src_consume(src, s.len);
        cli_tick(run->cli);
    }
    run->cli->progress.src = NULL;
    if (status != RD_SRC_END)
        rd_err_adopt(err, status == RD_SRC_FAIL ? rd_src_err(src) : rd_sink_err(sink));
    return status == RD_SRC_END;
}

static bool restore_file(struct run *run, const struct archive_file *file, const char *path,
                         struct rd_err *err)
{
    struct rd_src *src;
    struct rd_sink *sink;
    if (!archive_set_open(run->repo, run->set, file, &run->open.keys.ring, &src, err))
        return false;
    bool ok = cli_open_out(run->cli, path, run->force, true, &sink, err);
    if (ok) {
        cli_progress_begin(run->cli, file->name, file->plain.bytes);
        ok = copy(run, src, sink, err);
        cli_progress_end(run->cli);
        if (ok)
            ok = rd_sink_close(sink, err);
        else
            rd_sink_abort(sink);
    }
    rd_src_close(src);
    return ok;
}

static bool write_text(struct run *run, const char *path, const char *text, struct rd_err *err)
{
    struct rd_sink *sink;
    if (!cli_open_out(run->cli, path, run->force, false, &sink, err))
        return false;
    rd_sink_write(sink, text, strlen(text));
    return rd_sink_close(sink, err);
}

/* ---- where to ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a folder has files; one that is not there has none. */
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

static bool make_folder(const char *path, struct rd_err *err)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return true;
    rd_err_sys(err, errno, "cannot create the folder");
    rd_err_origin(err, path);
    return false;
}

static bool join(char ret[4096], const char *folder, const char *name, struct rd_err *err)
{
    int len = snprintf(ret, 4096, "%s/%s", folder, name);
    return (len > 0 && len < 4096) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
}

static bool of_snapshot(const struct archive_set *set)
{
    return set->m.n_files == 1 && set->m.files[0].role == ARCHIVE_ROLE_RDB;
}

static bool refuse_log(struct run *run, const char *folder, struct rd_err *err)
{
    char log[4096];
    if (!join(log, folder, LOG_FOLDER, err))
        return false;
    if (run->force || !has_files(log))
        return true;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "there is a log already");
    rd_err_origin(err, log);
    cli_hint(run->cli, "with appendonly yes a server loads the log and not dump.rdb: move the "
                       "folder away first");
    return false;
}

/* ---- layouts ---- */

static bool restore_log(struct run *run, const char *folder, struct rd_err *err)
{
    char log[4096], path[4096];
    const struct archive_manifest *m = &run->set->m;
    if (!join(log, folder, LOG_FOLDER, err) || !refuse_log(run, folder, err) ||
        !make_folder(folder, err) || !make_folder(log, err))
        return false;
    /* The manifest comes last, in the set as well: without it there is no log. */
    for (size_t i = 0; i < m->n_files; i++)
        if (!join(path, log, m->files[i].name, err) || !restore_file(run, &m->files[i], path, err))
            return false;
    return true;
}

/* A snapshot as the base of a log, for a server with appendonly yes. */
static bool restore_as_log(struct run *run, const char *folder, struct rd_err *err)
{
    static const char base[] = "appendonly.aof.1.base.rdb";
    char log[4096], path[4096];
    if (!join(log, folder, LOG_FOLDER, err) || !refuse_log(run, folder, err) ||
        !make_folder(folder, err) || !make_folder(log, err))
        return false;
    return join(path, log, base, err) && restore_file(run, &run->set->m.files[0], path, err) &&
           join(path, log, "appendonly.aof.manifest", err) &&
           write_text(run, path, "file appendonly.aof.1.base.rdb seq 1 type b\n", err);
}

static bool restore_snapshot(struct run *run, struct rd_err *err)
{
    char path[4096];
    if (!is_folder(run->to))
        return restore_file(run, &run->set->m.files[0], run->to, err);
    return refuse_log(run, run->to, err) && join(path, run->to, "dump.rdb", err) &&
           restore_file(run, &run->set->m.files[0], path, err);
}

static bool restore_set(struct run *run, struct rd_err *err)
{
    if (strstr(run->to, "://") != NULL) {
        cli_hint(run->cli,
                 "redoubt restore TARGET --to - | redoubt convert --to resp --restore - | "
                 "redis-cli --pipe");
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "a set is restored into a file or folder, not into a server");
    }
    bool snapshot = of_snapshot(run->set);
    if (!snapshot && run->layout == LAYOUT_RDB)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "the set is a log: it cannot be restored as dump.rdb");
    if (snapshot && run->layout != LAYOUT_AOF)
        return restore_snapshot(run, err);
    if (strcmp(run->to, "-") == 0 || (access(run->to, F_OK) == 0 && !is_folder(run->to)))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a log is restored into a folder");
    return snapshot ? restore_as_log(run, run->to, err) : restore_log(run, run->to, err);
}

/* ---- the tool ---- */

static void tell(struct run *run)
{
    struct cli *cli = run->cli;
    const struct archive_manifest *m = &run->set->m;
    bool log = !of_snapshot(run->set) || run->layout == LAYOUT_AOF;
    if (cli->json) {
        cli_json_put_str(&cli->out, "target", run->repo->target);
        cli_json_put_str(&cli->out, "repository", run->repo->store->origin);
        cli_json_put_str(&cli->out, "id", run->set->id);
        cli_json_put_str(&cli->out, "to", run->to);
        cli_json_put_bool(&cli->out, "dry_run", run->dry_run);
        cli_json_put_str(&cli->out, "layout", log ? "aof" : "rdb");
        cli_json_key(&cli->out, "objects");
        cli_json_array(&cli->out);
        for (size_t i = 0; i < m->n_files; i++)
            cli_json_str(&cli->out, m->files[i].object);
        cli_json_end(&cli->out);
        return;
    }
    if (cli->quiet || strcmp(run->to, "-") == 0)
        return;
    printf("%s: set %s of %s, %s %s\n", run->to, run->set->id, run->repo->target,
           run->dry_run ? "would be restored from" : "restored from", run->repo->store->origin);
    for (size_t i = 0; run->dry_run && i < m->n_files; i++)
        printf("  %s, %s\n", m->files[i].object, cli_bytes(m->files[i].stored.bytes).s);
    if (!log)
        cli_note(cli, "a server with appendonly yes does not load dump.rdb: see --layout aof");
}

static bool restore_from(struct run *run, struct archive_sets *sets, struct rd_err *err)
{
    run->set = archive_sets_find(sets, run->id);
    if (run->set == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no good set %s",
                          run->repo->target,
                          run->id != NULL ? cli_quote(rd_slice_str(run->id)).s : "");
    if (run->set->err.code != RD_ERR_OK) {
        rd_err_adopt(err, &run->set->err);
        return false;
    }
    if (!run->dry_run && !restore_set(run, err))
        return false;
    tell(run);
    return true;
}

/* From the first repository that has what is asked for. */
static bool restore_target(struct run *run, struct rd_err *err)
{
    bool ok = false;
    if (!vault_open(&run->vault.targets[0], VAULT_READ, &run->open, err))
        return false;
    for (size_t i = 0; !ok && i < run->open.n; i++) {
        struct archive_sets sets;
        struct rd_err failed = {0};
        run->repo = &run->open.repos[i];
        if (archive_repo_list(run->repo, &sets, &failed)) {
            ok = restore_from(run, &sets, &failed);
            archive_sets_done(&sets);
        }
        if (ok)
            break;
        bool last = i + 1 == run->open.n || strcmp(run->to, "-") == 0;
        if (!last)
            cli_report(run->cli, &failed);
        rd_err_reset(err);
        rd_err_adopt(err, &failed);
        if (last)
            break;
    }
    vault_close(&run->open);
    return ok;
}

static int restore(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (run->to == NULL)
        return cli_usage_error(cli, "missing option: --to DIR or FILE");
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (run->vault.n_targets != 1)
        return cli_usage_error(cli, "the configuration has several targets: name one");
    return restore_target(run, &err) ? CLI_OK : cli_fail(cli, &err);
}

int tool_restore(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts, VAULT_FOR_REPOSITORY | VAULT_FOR_KEYS);
    const struct cli_opt own[] = {
        {.name = "to",
         .kind = CLI_STRING,
         .arg = "DIR|FILE",
         .string = &run.to,
         .help = "where; \"-\" is standard output"},
        {.name = "set",
         .kind = CLI_STRING,
         .arg = "ID",
         .string = &run.id,
         .help = "this set; else the newest good one"},
        {.name = "layout",
         .kind = CLI_ENUM,
         .words = "auto|rdb|aof",
         .choice = &run.layout,
         .help = "dump.rdb, or a log for a server with appendonly yes"},
        {.name = "dry-run", .kind = CLI_FLAG, .flag = &run.dry_run, .help = "only say what"},
        {.name = "force", .kind = CLI_FLAG, .flag = &run.force, .help = "replace what is there"},
    };
    memcpy(opts + n, own, sizeof own);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET] --to DIR|FILE",
        .about = "Restores a backup into a file, or into a folder as a server wants it. A file\n"
                 "appears under its name when every digest holds.",
        .opts = opts,
        .max_args = 1,
        .example = "redoubt restore nightly --to out.rdb",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = restore(&run);
    vault_done(&run.vault);
    return status;
}
