/* check_config.c - `redoubt check-config`: checks whether a backup would work. */
#include "archive/http.h"
#include "base/buf.h"
#include "backup/login.h"
#include "backup/metrics.h"
#include "backup/probe.h"
#include "backup/prune.h"
#include "backup/source.h"
#include "tools/metrics/metrics.h"
#include "tools/tools.h"
#include "tools/vault/hint.h"
#include "tools/vault/vault.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct cli *cli;
    struct vault vault;
    int status;
};

static void say(struct run *run, const struct backup_target *target, const char *what,
                const char *where, const struct rd_err *err)
{
    struct json_write *json = &run->cli->out;
    bool ok = err->code == RD_ERR_OK;
    char line[1024];
    if (!ok && run->status == CLI_OK)
        run->status = rd_err_exit_status(err->code);
    if (run->cli->json) {
        json_obj(json);
        json_put_str(json, "target", target->name);
        json_put_str(json, "check", what);
        json_put_str(json, "where", where);
        json_put_bool(json, "ok", ok);
        if (!ok) {
            json_key(json, "error");
            cli_json_err(json, err);
        }
        json_end(json);
    } else if (ok && !run->cli->quiet) {
        printf("%s: %s %s: ok\n", target->name, what, rd_show_plain(rd_slice_str(where)).s);
    } else if (!ok) {
        printf("%s: %s: %s\n", target->name, what, rd_err_render(err, line, sizeof line));
        if (run->cli->hint[0] != '\0')
            printf("  hint: %s\n", run->cli->hint);
    }
    run->cli->hint[0] = '\0';
}

/* ---- the repository ---- */

/* Locks, and sets that are never replaced, need a store that refuses an object that exists. */
static bool refuses_existing(struct archive_repo *repo, const char *name, struct rd_err *err)
{
    struct rd_err why = {0};
    if (archive_store_write(repo->store, name, rd_slice_str("another object"), &why))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "the store replaces objects that exist%s: its locks do not keep two runs "
                          "apart",
                          strncmp(repo->store->origin, "s3://", 5) == 0 ||
                                  strncmp(repo->store->origin, "azure://", 8) == 0
                              ? " (it does not honour If-None-Match)"
                              : "");
    if (!archive_store_exists(&why))
        rd_err_adopt(err, &why);
    return archive_store_exists(&why);
}

/* Writes a small object, reads it and removes it. *ret_exclusive: what the store says when it is
 * written again. */
static bool round_trip(struct archive_repo *repo, struct rd_err *ret_exclusive, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    uint32_t chance;
    struct rd_buf back = {0};
    if (!backup_random(&chance, sizeof chance, err))
        return false;
    /* Where a run must be able to remove objects, even if the store protects the others. */
    snprintf(name, sizeof name, "%s/locks/probe-%08x", repo->target, (unsigned)chance);
    if (!archive_store_write(repo->store, name, rd_slice(&chance, sizeof chance), err))
        return false;
    bool ok = archive_store_read(repo->store, name, 100, &back, err);
    if (ok && !rd_slice_eq(rd_buf_slice(&back), rd_slice(&chance, sizeof chance)))
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                        "the object that was read differs from the one that was written");
    rd_buf_done(&back);
    if (ok)
        refuses_existing(repo, name, ret_exclusive);
    return repo->store->ops->remove(repo->store, name, ok ? err : NULL) && ok;
}

/* ---- the tool ---- */

/* Whether others than the owner can read the key. */
static void look_at_key(struct run *run, const struct backup_target *target)
{
    const char *path = backup_get(target, BACKUP_KEY_KEY_FILE);
    struct stat st;
    if (path != NULL && stat(path, &st) == 0 && (st.st_mode & 077) != 0)
        cli_warn(run->cli, "%s: others can read the key: chmod 600", path);
}

static const char *source_name(const struct backup_target *target)
{
    const char *source = backup_get(target, BACKUP_KEY_SOURCE);
    if (source == NULL)
        return backup_get(target, BACKUP_KEY_SENTINEL) != NULL ? "of sentinels" : "";
    return client_target_is_url(source) ? "of a server" : source;
}

static bool is_http(const char *url)
{
    size_t len = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    return len != 0 && url[len] != '\0' && strchr("/?#:", url[len]) == NULL;
}

/* Nothing is sent: a monitoring service would take it for a backup. URLs are not printed: they may
 * be secrets. */
static void check_heartbeat(struct run *run, const struct backup_target *target)
{
    static const enum backup_key urls[] = {BACKUP_KEY_HEARTBEAT_URL,
                                           BACKUP_KEY_HEARTBEAT_FAILED_URL};
    struct rd_err err = {0};
    for (size_t i = 0; i < sizeof urls / sizeof *urls && err.code == RD_ERR_OK; i++) {
        const char *url = backup_get(target, urls[i]);
        if (url == NULL || !archive_http_built("heartbeats", &err))
            continue;
        if (!is_http(url))
            rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET,
                       "%s must begin with http://HOST or https://HOST", backup_key_name(urls[i]));
    }
    if (err.code != RD_ERR_OK)
        say(run, target, "heartbeat", "", &err);
}

/* The folder in which a file is replaced. */
static bool check_folder_of(const char *path, struct rd_err *err)
{
    char folder[BACKUP_PATH_MAX];
    struct stat st;
    int len = snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (len < 0 || (size_t)len >= sizeof folder)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the path is too long");
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        slash[slash == folder] = '\0';
    bool ok = access(folder, W_OK | X_OK) == 0 || rd_err_sys(err, errno, "cannot write there");
    if (ok && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "it is not a regular file");
    if (!ok)
        rd_err_origin(err, path);
    return ok;
}

static void check_metrics(struct run *run, const struct backup_target *target)
{
    static const enum backup_key files[] = {BACKUP_KEY_METRICS_FILE,
                                            BACKUP_KEY_ARCHIVE_METRICS_FILE};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct rd_err err = {0};
        const char *path = backup_get(target, files[i]);
        if (path != NULL && !check_folder_of(path, &err))
            say(run, target, backup_key_name(files[i]), path, &err);
    }
}

static bool check_values(const struct backup_target *target, struct rd_err *err)
{
    static const enum backup_key words[] = {BACKUP_KEY_PRUNE,     BACKUP_KEY_CLUSTER,
                                            BACKUP_KEY_SCAN,      BACKUP_KEY_S3_INSTANCE_KEYS,
                                            BACKUP_KEY_KEY_INDEX, BACKUP_KEY_MERGE};
    static const enum backup_key times[] = {BACKUP_KEY_ARCHIVE_INTERVAL, BACKUP_KEY_BASE_INTERVAL,
                                            BACKUP_KEY_RESTORE_TIME};
    static const enum backup_key sizes[] = {BACKUP_KEY_SEGMENT_SIZE, BACKUP_KEY_SPOOL_SIZE,
                                            BACKUP_KEY_LIMIT_RATE};
    uint64_t number;
    bool word, ok = backup_get_time(target, BACKUP_KEY_LOCK_WAIT, &number, err) &&
                    backup_get_time(target, BACKUP_KEY_MERGE_GRACE, &number, err) &&
                    backup_get_expiry(target, &number, err);
    for (size_t i = 0; ok && i < sizeof times / sizeof *times; i++)
        ok = backup_get_interval(target, times[i], &number, err);
    for (size_t i = 0; ok && i < sizeof sizes / sizeof *sizes; i++)
        ok = backup_get_size(target, sizes[i], &number, err);
    for (size_t i = 0; ok && i < sizeof words / sizeof *words; i++)
        ok = backup_get_bool(target, words[i], &word, err);
    return ok;
}

static bool check_endpoint(const struct backup_target *target, const char *where,
                           struct rd_err *err)
{
    struct backup_target at;
    backup_target_at(target, where, &at);
    const char *endpoint = backup_get(&at, BACKUP_KEY_S3_ENDPOINT);
    return endpoint == NULL || is_http(endpoint) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "s3-endpoint must begin with http://HOST or https://HOST");
}

/* What only a run of its own would notice. */
static bool check_settings(const struct backup_target *target, struct rd_err *err)
{
    struct backup_set set = {.open = NULL};
    const char *where;
    for (size_t i = 0; (where = backup_repository(target, i)) != NULL; i++)
        if (!check_endpoint(target, where, err))
            return false;
    const char *listen = backup_get(target, BACKUP_KEY_METRICS_LISTEN);
    if (listen != NULL && !metrics_check_address(listen, err)) {
        rd_err_doing(err, "metrics-listen");
        return false;
    }
    return backup_settings(target, &set, err) && backup_source_check(target, err) &&
           check_values(target, err) && backup_login_check(target, err) &&
           backup_metrics_check(target, err);
}

/* The folder of what is not stored yet, if the target needs one for certain. */
static void check_spool(struct run *run, const struct backup_target *target)
{
    char path[BACKUP_PATH_MAX] = "";
    bool cluster = false;
    struct rd_err err = {0};
    backup_get_bool(target, BACKUP_KEY_CLUSTER, &cluster, NULL);
    if (!cluster && backup_get(target, BACKUP_KEY_SPOOL) == NULL)
        return;
    if (backup_spool(target, path, &err) && access(path, W_OK | X_OK) != 0) {
        rd_err_sys(&err, errno, "cannot write to the spool");
        rd_err_origin(&err, path);
    } else if (err.code == RD_ERR_OK) {
        backup_spool_is_ours(target, path, &err);
    }
    say(run, target, "spool", path, &err);
}

static void check_target(struct run *run, const struct backup_target *target)
{
    struct archive_retention rules;
    struct backup_open open;
    struct rd_err err = {0};
    if (!check_settings(target, &err))
        say(run, target, "settings", "", &err);
    rd_err_reset(&err);
    if (!backup_probe(target, &err)) {
        const char *hint = vault_hint_text(true, &err);
        if (hint != NULL)
            cli_hint(run->cli, "%s", hint);
    }
    say(run, target, "source", source_name(target), &err);
    rd_err_reset(&err);
    check_spool(run, target);
    backup_prune_rules(target, &rules, &err);
    say(run, target, "keep", archive_retention_given(&rules) ? "rules" : "everything", &err);
    rd_err_reset(&err);
    check_heartbeat(run, target);
    check_metrics(run, target);
    if (!backup_open(target, BACKUP_WRITE, &open, &err)) {
        const char *where = backup_get(target, BACKUP_KEY_REPOSITORY);
        say(run, target, "repository", backup_may_be_shown(where) ? where : "", &err);
        return;
    }
    look_at_key(run, target);
    say(run, target, "sealed", open.keys.n_keys + open.keys.passphrase.len > 0 ? "yes" : "no",
        &err);
    for (size_t i = 0; i < open.n; i++) {
        const char *where = open.stores[i] != NULL ? open.stores[i]->origin : "";
        rd_err_reset(&err);
        bool ok = open.stores[i] != NULL && round_trip(&open.repos[i], &err, &open.errs[i]);
        say(run, target, "repository", where, &open.errs[i]);
        if (ok)
            say(run, target, "exclusive", where, &err);
    }
    backup_close(&open);
}

static int check_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (cli->json) {
        json_key(&cli->out, "checks");
        json_array(&cli->out);
    }
    for (size_t i = 0; i < run->vault.config.n_targets; i++)
        check_target(run, &run->vault.config.targets[i]);
    if (cli->json)
        json_end(&cli->out);
    return run->status;
}

int tool_check_config(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    vault_options(&run.vault, opts,
                  BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_SOURCE | BACKUP_FOR_WRITING |
                      BACKUP_FOR_KEEP | BACKUP_FOR_BACKUP);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [TARGET…]",
        .about = "Checks the configuration of backups: reaches each source, and writes, reads and\n"
                 "removes a small object in each repository.",
        .opts = opts,
        .max_args = CLI_MANY,
        .example = "redoubt check-config nightly",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = check_all(&run);
    vault_done(&run.vault);
    return status;
}
