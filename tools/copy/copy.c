/* copy.c - `redoubt copy`: the sets of a repository, in another one. */
#include "backup/copy.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <inttypes.h>
#include <stdio.h>

struct run {
    struct cli *cli;
    struct vault vault;
    const char *id;
    bool dry_run;
    size_t n_good, n_bad;
    int status; /* of the first failure */
};

static const char *const states[] = {
    [BACKUP_COPIED] = "copied",
    [BACKUP_COPY_THERE] = "there",
    [BACKUP_COPY_WANTED] = "would be copied",
    [BACKUP_COPY_FAILED] = "failed",
};

static void fail(struct run *run, const struct rd_err *err)
{
    int status = cli_report(run->cli, err);
    run->n_bad++;
    if (run->status == CLI_OK)
        run->status = status;
}

static void put_json(struct run *run, const struct backup_copied *copied)
{
    struct json_write *json = &run->cli->out;
    json_obj(json);
    json_put_str(json, "target", copied->from->target);
    json_put_str(json, "repository", copied->from->store->origin);
    json_put_str(json, "to_target", copied->to->target);
    json_put_str(json, "to_repository", copied->to->store->origin);
    json_put_str(json, "id", copied->set->id);
    json_put_str(json, "state", states[copied->state]);
    json_put_uint(json, "bytes", copied->bytes);
    json_put_uint(json, "chunks", copied->chunks.n_chunks);
    json_put_uint(json, "chunks_sent", copied->chunks.n_sent);
    json_put_uint(json, "chunks_resumed", copied->chunks.n_found);
    if (copied->state == BACKUP_COPY_FAILED) {
        json_key(json, "error");
        cli_json_err(json, &copied->err);
    }
    json_end(json);
}

static void on_set(void *ctx, const struct backup_copied *copied)
{
    struct run *run = ctx;
    if (copied->state == BACKUP_COPY_FAILED)
        fail(run, &copied->err);
    else
        run->n_good++;
    if (run->cli->json) {
        put_json(run, copied);
        return;
    }
    if (run->cli->quiet || copied->state == BACKUP_COPY_FAILED)
        return;
    printf("%s %s", copied->set->id, states[copied->state]);
    if (copied->state == BACKUP_COPIED)
        printf(" to %s, %s", copied->to->store->origin, rd_show_bytes(copied->bytes).s);
    if (copied->chunks.n_chunks > 0)
        printf(", %s of %s chunks sent", rd_show_count(copied->chunks.n_sent).s,
               rd_show_count(copied->chunks.n_chunks).s);
    printf("%s\n", copied->state == BACKUP_COPIED ? ", read back and proved" : "");
}

/* The first repository that can be opened. */
static bool find_source(struct backup_open *from, size_t *ret, struct rd_err *err)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->stores[i] != NULL) {
            *ret = i;
            return true;
        }
    rd_err_adopt(err, &from->errs[0]);
    return false;
}

static void copy_to(struct run *run, struct backup_open *from, size_t source,
                    struct backup_open *to, size_t i)
{
    struct rd_err err = {0};
    struct backup_copy copy = {.watch = &run->vault.watch,
                               .from = from,
                               .to = to,
                               .from_i = source,
                               .to_i = i,
                               .id = run->id,
                               .dry_run = run->dry_run,
                               .copied = on_set,
                               .ctx = run};
    if (backup_is_open(to, i, &err) && backup_copy(&copy, &err))
        return;
    rd_err_doing(&err, "the target %s", to->target->name);
    fail(run, &err);
}

static bool copy_sets(struct run *run, const struct backup_target *a, const struct backup_target *b,
                      struct rd_err *err)
{
    struct backup_open from, to;
    size_t source;
    if (!backup_open(a, BACKUP_READ, &from, err))
        return false;
    bool ok = find_source(&from, &source, err);
    bool opened = ok && backup_open(b, run->dry_run ? BACKUP_READ : BACKUP_WRITE, &to, err);
    if (opened && a == b && to.n < 2) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "%s has one repository: name another target to copy to", a->name);
        opened = false;
        backup_close(&to);
    }
    if (opened) {
        for (size_t i = 0; i < to.n; i++)
            if (a != b || i != source)
                copy_to(run, &from, source, &to, i);
        backup_close(&to);
    }
    backup_close(&from);
    return opened;
}

static const struct backup_target *find_target(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->vault.config.n_targets; i++)
        if (strcmp(run->vault.config.targets[i].name, name) == 0)
            return &run->vault.config.targets[i];
    return NULL;
}

static int copy(struct run *run)
{
    struct cli *cli = run->cli;
    struct rd_err err = {0};
    if (!vault_load(&run->vault, cli->args, cli->n_args, &err))
        return cli_fail(cli, &err);
    const struct backup_target *a = find_target(run, cli->args[0]);
    const struct backup_target *b = find_target(run, cli->args[cli->n_args - 1]);
    if (cli->json) {
        json_key(&cli->out, "sets");
        json_array(&cli->out);
    }
    bool ok = a != NULL && b != NULL && copy_sets(run, a, b, &err);
    if (cli->json)
        json_end(&cli->out);
    if (!ok)
        return cli_fail(cli, &err);
    if (run->n_bad > 0)
        return run->n_good > 0 ? CLI_PARTIAL : run->status;
    return CLI_OK;
}

int tool_copy(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    size_t n = vault_options(&run.vault, opts, BACKUP_FOR_READING);
    opts[n++] = (struct cli_opt){.name = "set",
                                 .kind = CLI_STRING,
                                 .arg = "ID",
                                 .string = &run.id,
                                 .help = "only this set, or latest; default: all good sets"};
    opts[n++] = (struct cli_opt){
        .name = "dry-run", .kind = CLI_FLAG, .flag = &run.dry_run, .help = "only say what"};
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] FROM [TO]",
        .about = "Copies the sets of the target FROM to the repositories of the target TO, or to\n"
                 "the other repositories of FROM. Only what is missing is sent.",
        .opts = opts,
        .min_args = 1,
        .max_args = 2,
        .example = "redoubt copy nightly offsite",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = copy(&run);
    vault_done(&run.vault);
    return status;
}
