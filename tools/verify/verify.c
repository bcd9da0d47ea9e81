/* verify.c - `redoubt verify`: whether sets are what they were when they were made. */
#include "aof/check.h"
#include "base/pump.h"
#include "data/sound.h"
#include "capture/segment_in.h"
#include "data/spool.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"
#include "tools/verify/load.h"
#include "tools/verify/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    int level; /* enum verify_level */
    const char *id;
    const char *server; /* the program of --level load */
    size_t n_good, n_bad, n_unknown;
    size_t n_empty; /* repositories without sets */
    uint64_t n_damaged_segments, n_unknown_segments;
    struct cli_json_later streams; /* with --json */
};

/* A set under verification. */
struct job {
    struct run *run;
    struct backup_open *open;
    struct archive_repo *repo;
    struct archive_set *set;
    bool loaded;
    struct load load;
    bool authentic;        /* the manifest's signature was checked */
    bool refused;          /* the set is not sealed, although there is a key */
    struct rd_err foreign; /* why the given keys do not verify the signature */
    uint64_t keys;         /* in all snapshots */
    char finding[RD_ERR_TEXT_MAX + 300];
};

/* ---- manifest and digests ---- */

/* Without a key, digests can be verified, but not the signature. Contents need the key. */
static bool check_manifest(struct job *job, struct rd_err *err)
{
    struct archive_set *set = job->set;
    struct rd_err why = {0};
    job->refused = set->refused;
    bool proved = archive_set_prove(job->repo, set, &why);
    bool unknown = !set->refused && set->err.code == RD_ERR_OK &&
                   set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN;
    if (!proved && !(unknown && job->run->level < VERIFY_PARSE)) {
        rd_err_adopt(err, &why);
        return false;
    }
    if (!proved && backup_keys_given(&job->open->keys))
        job->foreign = why;
    job->authentic = set->m.signature == ARCHIVE_SIGNATURE_VALID;
    return set->missing == 0 || rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET,
                                           "files of the set are missing or have another size");
}

static void tick(void *ctx)
{
    cli_tick(ctx);
}

/* Reads to the end; the source itself compares. */
static bool drain(struct job *job, struct rd_src *src, struct rd_err *err)
{
    struct cli *cli = job->run->cli;
    cli->progress.src = src;
    bool ok = rd_pump(src, NULL, tick, cli, err);
    cli->progress.src = NULL;
    return ok;
}

static bool check_digests(struct job *job, struct rd_err *err)
{
    const struct archive_manifest *m = &job->set->m;
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_files; i++) {
        struct rd_src *src;
        ok = archive_set_open_stored(job->repo, job->set, &m->files[i], &src, err);
        if (ok) {
            ok = drain(job, src, err);
            rd_src_close(src);
        }
    }
    return ok;
}

/* ---- what is inside ---- */

static bool open_plain(struct job *job, const struct archive_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    return archive_set_open(job->repo, job->set, file, &job->open->keys.ring, ret, err);
}

static bool parse_snapshot(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct sound sound = {.name = file->object};
    struct rd_src *src;
    cli_seed(sound.seed);
    if (!open_plain(job, file, &src, err))
        return false;
    bool ok = sound_check(&sound, src, err);
    rd_src_close(src);
    job->keys += ok ? sound.res.keys : 0;
    return ok;
}

static const struct archive_file *find_file(const struct archive_manifest *m, const char *name)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (strcmp(m->files[i].name, name) == 0)
            return &m->files[i];
    return NULL;
}

static bool open_of_log(void *ctx, const struct aof_file *file, struct rd_src **ret,
                        struct rd_err *err)
{
    struct job *job = ctx;
    const struct archive_file *found = find_file(&job->set->m, file->name);
    if (found == NULL)
        return rd_err_sys(err, ENOENT, "%s is not in the set", file->name);
    return open_plain(job, found, ret, err);
}

static void on_finding(void *ctx, const struct aof_finding *finding)
{
    struct job *job = ctx;
    if (finding->severity == RDB_SEVERITY_ERROR && job->finding[0] == '\0')
        snprintf(job->finding, sizeof job->finding, "%.200s%s%s",
                 finding->file != NULL ? finding->file : "", finding->file != NULL ? ": " : "",
                 finding->text);
}

static bool parse_log(struct job *job, const struct archive_file *manifest, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_of_log, .finding = on_finding, .ctx = job, .spool = &for_keys);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src;
    if (!open_plain(job, manifest, &src, err))
        return false;
    cli_seed(opts.seed);
    bool ok = aof_check(src, &opts, &res, err);
    if (ok && res.verdict > AOF_VERDICT_WARNED)
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", job->finding);
    aof_check_done(&res);
    rd_src_close(src);
    spool_done(&keys);
    return ok;
}

/* Reads all plain bytes to their end, whatever the check of their contents needs of them. */
static bool parse_rest(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct rd_src *src;
    if (!open_plain(job, file, &src, err))
        return false;
    bool ok = drain(job, src, err);
    rd_src_close(src);
    return ok;
}

/* A part of the stream of a master of a cluster. */
static bool parse_stream(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    struct rd_src *src;
    uint64_t number, start;
    if (sscanf(file->name, "shard-%*u-%" SCNu64 "-%" SCNu64 ".seg", &number, &start) != 2)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the file name is not the name of a segment");
    if (!open_plain(job, file, &src, err) || !segment_in_open(&in, src, number, start, err))
        return false;
    bool ok = segment_in_verify(&in, err);
    while (ok && segment_in_next(&in, &ev, err))
        cli_tick(job->run->cli);
    ok = ok && !in.failed;
    segment_in_close(&in);
    return ok;
}

static bool parse_all(struct job *job, struct rd_err *err)
{
    const struct archive_manifest *m = &job->set->m;
    for (size_t i = 0; i < m->n_files; i++) {
        const struct archive_file *file = &m->files[i];
        bool ok = file->role == ARCHIVE_ROLE_RDB      ? parse_snapshot(job, file, err)
                  : file->role == ARCHIVE_ROLE_STREAM ? parse_stream(job, file, err)
                                                      : parse_rest(job, file, err);
        if (ok && file->role == ARCHIVE_ROLE_AOF_MANIFEST)
            ok = parse_log(job, file, err);
        if (!ok) {
            rd_err_origin(err, file->object);
            return false;
        }
    }
    bool snapshots = m->files[0].role == ARCHIVE_ROLE_RDB;
    return !snapshots || job->keys == m->keys ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                      "its number of keys differs from the manifest");
}

/* ---- a server ---- */

static bool load_all(struct job *job, struct rd_err *err)
{
    job->load = (struct load){.cli = job->run->cli,
                              .repo = job->repo,
                              .set = job->set,
                              .ring = &job->open->keys.ring,
                              .program = job->run->server};
    job->loaded = load_set(&job->load, err);
    return job->loaded;
}

/* ---- the report ---- */

static void put_load(struct cli_json *json, const struct job *job)
{
    cli_json_put_str(json, "server", job->load.server[0] != '\0' ? job->load.server : NULL);
    cli_json_put_bool(json, "loaded", job->loaded);
    if (job->loaded)
        cli_json_put_uint(json, "keys", job->load.keys);
}

/* A target may have several repositories: "nightly ID in /var/backups: ". */
static void print_set(const struct job *job)
{
    const char *origin = job->repo->store->origin;
    bool several = job->open->n > 1;
    printf("%s %s%s%s: ", job->repo->target, job->set->id, several ? " in " : "",
           several ? origin : "");
}

static void print_good(const struct job *job, const char *word)
{
    print_set(job);
    const char *signature = job->authentic ? ", signature" : "";
    if (job->loaded)
        printf("ok (%s into %s, %s key%s%s)\n", word, job->load.server,
               rd_show_count(job->load.keys).s, rd_show_plural(job->load.keys), signature);
    else
        printf("ok (%s%s)\n", word, signature);
}

/* What the set cannot help: a key that does not fit, a disk that does not answer, memory. */
bool verify_is_damage(const struct rd_err *err)
{
    return rd_err_exit_status(err->code) == CLI_FINDINGS ||
           (err->code == RD_ERR_IO && err->sys == ENOENT);
}

static void report(struct job *job, const struct rd_err *err)
{
    static const char *const words[] = {"list", "digest", "parse", "load"};
    struct run *run = job->run;
    struct cli_json *json = &run->cli->out;
    bool good = err->code == RD_ERR_OK;
    char line[1024];
    if (run->cli->json) {
        cli_json_obj(json);
        cli_json_put_str(json, "target", job->repo->target);
        cli_json_put_str(json, "repository", job->repo->store->origin);
        cli_json_put_str(json, "id", job->set->id);
        cli_json_put_str(json, "level", words[run->level]);
        cli_json_put_bool(json, "good", good);
        cli_json_put_bool(json, "authentic", job->authentic);
        cli_json_put_bool(json, "refused", job->refused);
        if (run->level == VERIFY_LOAD)
            put_load(json, job);
        if (!good) {
            cli_json_key(json, "error");
            cli_json_err(json, err);
        }
        cli_json_end(json);
    } else if (!good) {
        print_set(job);
        printf("%s: %s\n",
               job->load.refused ? "NOT LOADED"
               : job->refused    ? "REFUSED"
                                 : "DAMAGED",
               rd_err_render(err, line, sizeof line));
    } else if (!run->cli->quiet) {
        print_good(job, words[run->level]);
    }
}

/* Remembers the verdict in the repository, so that `prune` and `restore` know. A set that one
 * server does not load, and one that is not sealed, is not damaged. Where that cannot be
 * written, nothing else is wrong. */
static void remember(struct job *job, bool good)
{
    struct rd_err err = {0};
    if (job->load.refused || job->refused || job->set->marked[ARCHIVE_MARK_DAMAGED] == !good ||
        (good &&
         (job->run->level == VERIFY_LIST || job->set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN)))
        return;
    if (!archive_repo_mark(job->repo, job->set->id, ARCHIVE_MARK_DAMAGED, !good, &err))
        cli_debug(job->run->cli, "cannot mark %s: %s", job->set->id, err.text);
}

/* The key is not given: nothing is known about the set. */
static void report_unknown(const struct job *job, const struct rd_err *err)
{
    struct cli_json *json = &job->run->cli->out;
    char line[1024];
    if (!job->run->cli->json) {
        print_set(job);
        printf("not verified: %s\n", rd_err_render(err, line, sizeof line));
        return;
    }
    cli_json_obj(json);
    cli_json_put_str(json, "target", job->repo->target);
    cli_json_put_str(json, "repository", job->repo->store->origin);
    cli_json_put_str(json, "id", job->set->id);
    cli_json_put_bool(json, "unknown_key", true);
    cli_json_key(json, "error");
    cli_json_err(json, err);
    cli_json_end(json);
}

/* By `prune`, since the sets were listed. */
static bool is_removed(const struct job *job, const struct rd_err *err)
{
    return err->code == RD_ERR_IO && err->sys == ENOENT && archive_set_gone(job->repo, job->set);
}

/* False where it cannot be known. */
static bool verify_set(struct job *job, struct rd_err *ret)
{
    struct rd_err err = {0};
    struct run *run = job->run;
    cli_progress_begin(run->cli, job->set->id, job->set->bytes);
    bool good = check_manifest(job, &err) &&
                (run->level < VERIFY_DIGEST || check_digests(job, &err)) &&
                (run->level < VERIFY_PARSE || parse_all(job, &err)) &&
                (run->level < VERIFY_LOAD || load_all(job, &err));
    cli_progress_end(run->cli);
    if (good && job->foreign.code != RD_ERR_OK) {
        good = false;
        rd_err_adopt(&err, &job->foreign);
    }
    if (!good && is_removed(job, &err)) {
        cli_note(run->cli, "%s %s was removed meanwhile", job->repo->target, job->set->id);
        return true;
    }
    if (!good && err.reason.id == RD_SEAL_REASON_KEY) {
        report_unknown(job, &err);
        run->n_unknown++;
        return true;
    }
    if (!good && !job->load.refused && !verify_is_damage(&err)) {
        rd_err_adopt(ret, &err);
        rd_err_doing(ret, "the set %s of %s", job->set->id, job->repo->target);
        return false;
    }
    report(job, &err);
    remember(job, good);
    run->n_good += good;
    run->n_bad += !good;
    return true;
}

/* ---- the tool ---- */

/* ret_wrong: the first set whose manifest cannot be used, for example one of a newer version. */
static bool verify_sets(struct run *run, struct backup_open *open, struct archive_repo *repo,
                        struct archive_sets *sets, struct rd_err *ret_wrong, struct rd_err *err)
{
    const struct archive_set *only =
        run->id != NULL ? archive_sets_find(sets, run->id, cli_now_ms()) : NULL;
    bool ok = true;
    if (run->id != NULL && only == NULL)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no set %s in %s", repo->target,
                        rd_show_quote(rd_slice_str(run->id)).s, repo->store->origin);
    for (size_t i = 0; ok && i < sets->n; i++) {
        struct job job = {.run = run, .open = open, .repo = repo, .set = &sets->sets[i]};
        struct rd_err why = {0};
        if (job.set->incomplete || (only != NULL && only != job.set) || verify_set(&job, &why))
            continue;
        ok = job.set->err.code != RD_ERR_OK; /* the store works: others may be read */
        rd_err_adopt(ok ? ret_wrong : err, &why);
    }
    return ok;
}

static bool verify_stream_of(struct run *run, struct backup_open *open, struct archive_repo *repo,
                             const struct archive_sets *sets, struct rd_err *err)
{
    struct verify_stream v = {.cli = run->cli,
                              .json = run->cli->json ? &run->streams.json : NULL,
                              .repo = repo,
                              .sets = sets,
                              .ring = &open->keys.ring,
                              .level = (enum verify_level)run->level,
                              .several = open->n > 1};
    bool ok = verify_stream(&v, err);
    run->n_damaged_segments += v.n_damaged;
    run->n_unknown_segments += v.n_unknown;
    if (v.n_unknown > 0 && !run->cli->json) {
        char line[1024];
        printf("%s stream%s%s: %" PRIu64 " segment%s not verified: %s\n", repo->target,
               v.several ? " in " : "", v.several ? repo->store->origin : "", v.n_unknown,
               rd_show_plural(v.n_unknown), rd_err_render(&v.unknown, line, sizeof line));
    }
    return ok;
}

/* The sets of another repository, or of another target, do not make up for it. */
static void look_for_none(struct run *run, const struct archive_repo *repo,
                          const struct archive_sets *sets)
{
    if (run->id != NULL)
        return;
    for (size_t i = 0; i < sets->n; i++)
        if (!sets->sets[i].incomplete)
            return;
    run->n_empty++;
    cli_warn(run->cli, "%s has no set in %s", repo->target, repo->store->origin);
}

static bool verify_repo(void *ctx, struct backup_open *open, size_t at, struct rd_err *err)
{
    struct run *run = ctx;
    struct archive_repo *repo = &open->repos[at];
    struct archive_sets sets;
    if (!backup_list(&run->vault.watch, repo, &sets, err))
        return false;
    look_for_none(run, repo, &sets);
    struct rd_err wrong = {0};
    bool ok = verify_sets(run, open, repo, &sets, &wrong, err) &&
              (run->id != NULL || verify_stream_of(run, open, repo, &sets, err));
    archive_sets_done(&sets);
    if (ok)
        rd_err_adopt(err, &wrong);
    return ok && wrong.code == RD_ERR_OK;
}

/* Damage takes precedence over what could not be read. */
static int conclude(struct run *run, const struct vault_each *each)
{
    struct cli *cli = run->cli;
    if (cli->json) {
        cli_json_put_uint(&cli->out, "good", run->n_good);
        cli_json_put_uint(&cli->out, "damaged", run->n_bad);
        cli_json_put_uint(&cli->out, "unknown_keys", run->n_unknown);
        cli_json_put_uint(&cli->out, "without_sets", run->n_empty);
        vault_each_put_errors(each, &cli->out);
    }
    if (run->n_bad > 0 || run->n_damaged_segments > 0)
        return CLI_FINDINGS;
    if (run->n_unknown > 0 || run->n_unknown_segments > 0) {
        cli_warn(cli, "%zu set%s and %" PRIu64 " segment%s are sealed with keys that are not given",
                 run->n_unknown, rd_show_plural(run->n_unknown), run->n_unknown_segments,
                 rd_show_plural(run->n_unknown_segments));
        return CLI_USAGE;
    }
    if (each->status != CLI_OK)
        return each->status;
    return run->n_empty > 0 || run->n_good == 0 ? CLI_FINDINGS : CLI_OK;
}

static int verify_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct vault_each each = {0};
    struct rd_err err = {0};
    bool ok = vault_load(&run->vault, cli->args, cli->n_args, &err) &&
              vault_each_init(&each, cli, &run->vault, BACKUP_READ, &err) &&
              (!cli->json || cli_json_later_init(&run->streams, &err));
    if (ok && cli->json) {
        cli_json_key(&cli->out, "sets");
        cli_json_array(&cli->out);
    }
    if (ok)
        vault_each(&each, verify_repo, run);
    if (ok && cli->json) {
        cli_json_end(&cli->out);
        ok = cli_json_later_put(&run->streams, &cli->out, "streams", &err);
    }
    int status = ok ? conclude(run, &each) : cli_fail(cli, &err);
    vault_each_done(&each);
    return status;
}

int tool_verify(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .level = VERIFY_DIGEST};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_READING);
    opts[n++] = (struct cli_opt){.name = "level",
                                 .kind = CLI_ENUM,
                                 .words = "list|digest|parse|load",
                                 .choice = &run.level,
                                 .help = "what to verify; default: digest"};
    opts[n++] = (struct cli_opt){.name = "set",
                                 .kind = CLI_STRING,
                                 .arg = "ID",
                                 .string = &run.id,
                                 .help = "this set only, or \"latest\""};
    opts[n++] = (struct cli_opt){.name = "server",
                                 .kind = CLI_STRING,
                                 .arg = "PROGRAM",
                                 .string = &run.server,
                                 .help = "loads the sets; default: redoubt-server"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Verifies the backups of each TARGET: that all files are there (list), unchanged\n"
                 "(digest) and sound (parse), and that a server loads them (load). Verifies the\n"
                 "archived stream as well.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt verify nightly --level parse",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = verify_all(&run);
    vault_done(&run.vault);
    return status;
}
