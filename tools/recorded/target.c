/* The stream that `redoubt archive` keeps of a target, as the input. */
#include "tools/recorded/recorded.h"

#include <stdio.h>

static bool open_base(void *ctx, struct rd_src **ret, struct rd_err *err)
{
    return backup_extract_base(ctx, ret, err);
}

static bool extract_from(struct recorded *r, size_t i, struct rd_err *err)
{
    if (!backup_is_open(&r->open, i, err))
        return false;
    r->extract = (struct backup_extract){.watch = &r->vault.watch,
                                         .repo = &r->open.repos[i],
                                         .keys = &r->open.keys,
                                         .since_ms = r->since_ms,
                                         .no_index = r->no_index || r->distrusted};
    if (!r->extract.no_index)
        r->extract.cache = recorded_cache(r);
    if (backup_extract(&r->extract, err))
        return true;
    backup_extract_done(&r->extract);
    return false;
}

/* Uses the first repository that can be read. */
static bool extract(struct recorded *r, struct rd_err *err)
{
    bool ok = false;
    if (!backup_open(&r->vault.config.targets[0], BACKUP_READ, &r->open, err))
        return false;
    r->has_open = true;
    for (size_t i = 0; !ok && i < r->open.n; i++) {
        struct rd_err failed = {0};
        ok = extract_from(r, i, &failed);
        if (!ok && i + 1 < r->open.n)
            cli_report(r->cli, &failed);
        else if (!ok)
            rd_err_adopt(err, &failed);
    }
    return ok;
}

static bool load_target(struct recorded *r, struct rd_err *err)
{
    char *names[1] = {r->path};
    if (r->in != NULL)
        snprintf(r->path, sizeof r->path, "%s", r->in);
    r->vault.config.path = r->config;
    if (!vault_load(&r->vault, names, r->in != NULL, err))
        return false;
    if (r->vault.config.n_targets != 1)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the configuration has several targets: name one with --in");
    snprintf(r->path, sizeof r->path, "%s", r->vault.config.targets[0].name);
    return true;
}

bool recorded_open_target(struct recorded *r, struct rd_err *err)
{
    if ((r->vault.config.n_targets == 0 && !load_target(r, err)) || !extract(r, err))
        return false;
    r->base = (struct history_base){.fs = r->extract.fs,
                                    .name = r->extract.set,
                                    .offset = r->extract.base_offset,
                                    .size = r->extract.base_size,
                                    .time_us = r->extract.base_ms * 1000,
                                    .open = open_base,
                                    .ctx = &r->extract,
                                    .failed = &r->extract.failed};
    r->indexes.given = r->extract.no_index ? NULL : &r->extract.fs;
    return history_tape_open_based(&r->tape, &r->base, r->path, err);
}
