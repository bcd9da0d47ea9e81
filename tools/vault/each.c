/* each.c - all repositories of all targets. */
#include "base/mem.h"
#include "tools/vault/vault.h"

bool vault_each_init(struct vault_each *ret, struct cli *cli, const struct vault *vault,
                     enum backup_mode mode, struct rd_err *err)
{
    size_t size = BACKUP_STORES * sizeof *ret->errs;
    *ret = (struct vault_each){.cli = cli, .vault = vault, .mode = mode};
    ret->errs = rd_calloc(vault->config.n_targets, size);
    return ret->errs != NULL || rd_err_nomem(err, vault->config.n_targets * size);
}

static void fail(struct vault_each *each, const struct backup_target *target, struct rd_err *slot,
                 struct rd_err *err)
{
    if (slot->code != RD_ERR_OK)
        return;
    rd_err_doing(err, "the target %s", target->name);
    *slot = *err;
    int status = cli_report(each->cli, err);
    if (each->status == CLI_OK)
        each->status = status;
}

void vault_each(struct vault_each *each, vault_each_fn *work, void *ctx)
{
    for (size_t t = 0; t < each->vault->config.n_targets; t++) {
        const struct backup_target *target = &each->vault->config.targets[t];
        struct rd_err *errs = &each->errs[t * BACKUP_STORES];
        struct backup_open open;
        struct rd_err failed = {0};
        if (!backup_open(target, each->mode, &open, &failed)) {
            fail(each, target, &errs[0], &failed);
            continue;
        }
        for (size_t i = 0; i < open.n; i++) {
            struct rd_err err = {0};
            if (errs[i].code == RD_ERR_OK &&
                !(backup_is_open(&open, i, &err) && work(ctx, &open, i, &err)))
                fail(each, target, &errs[i], &err);
        }
        backup_close(&open);
    }
}

void vault_each_list(struct vault_each *each, const char *name, vault_each_fn *work, void *ctx)
{
    struct cli *cli = each->cli;
    if (cli->json) {
        json_key(&cli->out, name);
        json_array(&cli->out);
    }
    vault_each(each, work, ctx);
    if (cli->json) {
        json_end(&cli->out);
        vault_each_put_errors(each, &cli->out);
    }
}

void vault_each_put_errors(const struct vault_each *each, struct json_write *json)
{
    json_key(json, "errors");
    json_array(json);
    for (size_t i = 0; i < each->vault->config.n_targets * BACKUP_STORES; i++) {
        if (each->errs[i].code == RD_ERR_OK)
            continue;
        json_obj(json);
        json_put_str(json, "target", each->vault->config.targets[i / BACKUP_STORES].name);
        json_key(json, "error");
        cli_json_err(json, &each->errs[i]);
        json_end(json);
    }
    json_end(json);
}

void vault_each_done(struct vault_each *each)
{
    rd_free(each->errs);
    each->errs = NULL;
}
