/* check_config.c - `redoubt check-config`: checks whether a backup would work. */
#include "archive/http.h"
#include "base/buf.h"
#include "tools/backup/priv.h"
#include "client/peer.h"
#include "tools/prune/prune.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct cli *cli;
    struct vault vault;
    int status;
};

static void say(struct run *run, const struct vault_target *target, const char *what,
                const char *where, const struct rd_err *err)
{
    struct cli_json *json = &run->cli->out;
    bool ok = err->code == RD_ERR_OK;
    char line[1024];
    if (!ok && run->status == CLI_OK)
        run->status = rd_err_exit_status(err->code);
    if (run->cli->json) {
        cli_json_obj(json);
        cli_json_put_str(json, "target", target->name);
        cli_json_put_str(json, "check", what);
        cli_json_put_str(json, "where", where);
        cli_json_put_bool(json, "ok", ok);
        if (!ok) {
            cli_json_key(json, "error");
            cli_json_err(json, err);
        }
        cli_json_end(json);
    } else if (ok && !run->cli->quiet) {
        printf("%s: %s %s: ok\n", target->name, what, cli_plain(rd_slice_str(where)).s);
    } else if (!ok) {
        printf("%s: %s: %s\n", target->name, what, rd_err_render(err, line, sizeof line));
    }
}

/* ---- the repository ---- */

/* Writes a small object, reads it and removes it. */
static bool round_trip(struct archive_repo *repo, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    uint32_t chance;
    struct rd_buf back = {0};
    if (!vault_random(&chance, sizeof chance, err))
        return false;
    snprintf(name, sizeof name, "%s/probe-%08x", repo->target, (unsigned)chance);
    if (!archive_store_write(repo->store, name, rd_slice(&chance, sizeof chance), err))
        return false;
    bool ok = archive_store_read(repo->store, name, 100, &back, err);
    if (ok && !rd_slice_eq(rd_buf_slice(&back), rd_slice(&chance, sizeof chance)))
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                        "the object that was read differs from the one that was written");
    rd_buf_done(&back);
    return repo->store->ops->remove(repo->store, name, ok ? err : NULL) && ok;
}

/* ---- the source ---- */

static bool ask_server(struct run *run, const struct vault_target *target, const char *url,
                       struct rd_err *err)
{
    struct peer_opts opts;
    struct client_target place = {.port = 0};
    struct client_peer *peer = NULL;
    struct client_peer_reply reply = {0};
    backup_peer_options(&opts, target);
    bool ok = peer_target_find(&place, &opts, url, err) && client_peer_open(&peer, &place, err) &&
              client_peer_ask(peer, "PING", &reply, err) &&
              client_peer_ask(peer, "REPLCONF listening-port 0", &reply, err);
    client_peer_reply_done(&reply);
    client_peer_close(peer);
    client_target_done(&place);
    peer_opts_done(&opts);
    if (!ok)
        peer_hint(run->cli, err);
    return ok;
}

static bool check_source(struct run *run, const struct vault_target *target, struct rd_err *err)
{
    const char *source = vault_get(target, VAULT_KEY_SOURCE);
    if (source == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no source is given");
    if (client_target_is_url(source))
        return ask_server(run, target, source, err);
    if (access(source, R_OK) == 0)
        return true;
    rd_err_sys(err, errno, "cannot read the source");
    rd_err_origin(err, source);
    return false;
}

/* ---- the tool ---- */

/* Whether others than the owner can read the key. */
static void look_at_key(struct run *run, const struct vault_target *target)
{
    const char *path = vault_get(target, VAULT_KEY_KEY_FILE);
    struct stat st;
    if (path != NULL && stat(path, &st) == 0 && (st.st_mode & 077) != 0)
        cli_warn(run->cli, "%s: others can read the key: chmod 600", path);
}

static const char *source_name(const struct vault_target *target)
{
    const char *source = vault_get(target, VAULT_KEY_SOURCE);
    if (source == NULL)
        return "";
    return client_target_is_url(source) ? "of a server" : source;
}

/* Nothing is sent: a monitoring service would take it for a backup. */
static void check_heartbeat(struct run *run, const struct vault_target *target)
{
    struct rd_err err = {0};
    if ((vault_get(target, VAULT_KEY_HEARTBEAT_URL) != NULL ||
         vault_get(target, VAULT_KEY_HEARTBEAT_FAILED_URL) != NULL) &&
        !archive_http_built("heartbeats", &err))
        say(run, target, "heartbeat", "", &err);
}

static void check_target(struct run *run, const struct vault_target *target)
{
    struct archive_retention rules;
    struct vault_open open;
    struct rd_err err = {0};
    check_source(run, target, &err);
    say(run, target, "source", source_name(target), &err);
    rd_err_reset(&err);
    prune_rules(target, &rules, &err);
    say(run, target, "keep", archive_retention_given(&rules) ? "rules" : "everything", &err);
    rd_err_reset(&err);
    check_heartbeat(run, target);
    if (!vault_open(target, VAULT_WRITE, &open, &err)) {
        say(run, target, "repository", vault_get(target, VAULT_KEY_REPOSITORY), &err);
        return;
    }
    look_at_key(run, target);
    say(run, target, "sealed", open.keys.n_keys + open.keys.passphrase.len > 0 ? "yes" : "no",
        &err);
    for (size_t i = 0; i < open.n; i++) {
        if (open.stores[i] != NULL)
            round_trip(&open.repos[i], &open.errs[i]);
        say(run, target, "repository", open.stores[i] != NULL ? open.stores[i]->origin : "",
            &open.errs[i]);
    }
    vault_close(&open);
}

static int check_all(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_json_key(&cli->out, "checks");
        cli_json_array(&cli->out);
    }
    for (size_t i = 0; i < run->vault.n_targets; i++)
        check_target(run, &run->vault.targets[i]);
    if (cli->json)
        cli_json_end(&cli->out);
    return run->status;
}

int tool_check_config(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    vault_options(&run.vault, opts,
                  VAULT_FOR_REPOSITORY | VAULT_FOR_KEYS | VAULT_FOR_SOURCE | VAULT_FOR_WRITING |
                      VAULT_FOR_KEEP | VAULT_FOR_BACKUP);
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
