/* browse.c - `redoubt browse`: the page of web/ for what a browser cannot open itself. */
#include "tools/browse/browse.h"
#include "tools/browse/items.h"

#include "backup/restore.h"
#include "tools/input/server_in.h"
#include "tools/input/snapshot_in.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_MAX = 64 << 20 };

struct run {
    struct cli *cli;
    struct vault vault;
    struct peer_opts servers;
    const char *page;
    uint64_t port;
    bool scan;
    bool json;
    int64_t moment_ms; /* INT64_MIN: none */
    struct browse_items items;
    struct spool spool; /* of a server, standard input or a moment */
    struct backup_open repositories;
    bool open;
    struct spool restored; /* of the request that is being answered */
    const struct browse_item *wanted;
};

/* ---- a server, standard input ---- */

static bool add_spool(struct run *run, const char *name, int64_t time_ms, struct rd_err *err)
{
    struct browse_item *item = browse_items_add(&run->items, BROWSE_SPOOL, name, "", err);
    if (item == NULL)
        return false;
    item->size = run->spool.size;
    item->time_ms = time_ms;
    return true;
}

static bool add_server(struct run *run, const char *url, struct rd_err *err)
{
    const struct server_in_opts opts = {.scan = run->scan, .servers = &run->servers};
    char name[200];
    const char *host = strstr(url, "://");
    snprintf(name, sizeof name, "%.180s.rdb", host != NULL ? host + 3 : url);
    for (char *c = name; *c != '\0'; c++)
        if (strchr("/:@?[]", *c) != NULL)
            *c = '-';
    if (!server_in_read(run->cli, url, &opts, &run->spool, err))
        return false;
    return add_spool(run, name, run->cli->began_ms, err);
}

static bool add_input(struct run *run, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, "-", NULL, err))
        return false;
    bool ok = spool_copy(&run->spool, src, NULL, NULL, err);
    rd_src_close(src);
    return ok && add_spool(run, "standard-input", 0, err);
}

/* ---- backups ---- */

static bool has_set(const struct run *run, const char *id)
{
    for (size_t i = 0; i < browse_items_n(&run->items); i++)
        if (strcmp(browse_items_at(&run->items, i)->from, id) == 0)
            return true;
    return false;
}

/* A log is restored as the snapshot of its data; a cluster has a snapshot for each master. */
static bool add_set(struct run *run, const struct archive_set *set, struct rd_err *err)
{
    bool cluster = backup_restore_is_cluster(set);
    for (size_t i = 0; i < set->m.n_files; i++) {
        const struct archive_file *file = &set->m.files[i];
        char path[ARCHIVE_ID_MAX + 60];
        if (cluster && file->role != ARCHIVE_ROLE_RDB)
            continue;
        if (cluster)
            snprintf(path, sizeof path, "%s-%llu.rdb", set->id, (unsigned long long)file->node);
        else
            snprintf(path, sizeof path, "%s.rdb", set->id);
        struct browse_item *item = browse_items_add(&run->items, BROWSE_SET, path, set->id, err);
        if (item == NULL)
            return false;
        item->apart = true;
        item->time_ms = set->time_ms;
        item->size = backup_restore_is_log(set) ? RD_NO_OFFSET : file->plain.bytes;
        snprintf(item->file, sizeof item->file, "%s", file->name);
        if (!cluster)
            return true;
    }
    return true;
}

static bool add_sets(struct run *run, struct archive_repo *repo, struct rd_err *err)
{
    struct archive_sets sets;
    bool ok = backup_list(&run->vault.watch, repo, &sets, err);
    if (!ok)
        return false;
    for (size_t i = sets.n; ok && i-- > 0;)
        if (archive_set_good(&sets.sets[i]) && !has_set(run, sets.sets[i].id))
            ok = add_set(run, &sets.sets[i], err);
    archive_sets_done(&sets);
    return ok;
}

static bool find_target(struct run *run, struct rd_err *err)
{
    return vault_load(&run->vault, run->cli->args, run->cli->n_args, err) &&
           (run->vault.config.n_targets == 1 ||
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                       "the configuration has several targets: name one"));
}

/* The data of the moment. */
static bool on_moment(struct backup_restore *r, struct rd_err *err)
{
    struct run *run = r->ctx;
    spool_done(&run->spool);
    if (backup_restore_is_cluster(r->set))
        return rd_err_set(
            err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
            "a moment of a cluster has several snapshots: redoubt restore writes them");
    return backup_restore_spool(r, &r->set->m.files[0], &run->spool, err);
}

static bool add_moment(struct run *run, const char *target, struct rd_err *err)
{
    struct backup_restore r = {.watch = &run->vault.watch,
                               .want = {.goal = BACKUP_GOAL_TIME, .ms = run->moment_ms},
                               .now_ms = run->cli->began_ms,
                               .write = on_moment,
                               .ctx = run};
    char name[200];
    snprintf(name, sizeof name, "%.100s-%s.rdb", target, rd_show_time(run->moment_ms).s);
    if (!backup_restore_from(&r, &run->repositories, err))
        return false;
    snapshot_in_warn_unknown(run->cli, &r.counts, false);
    return add_spool(run, name, run->moment_ms, err);
}

static bool add_target(struct run *run, struct rd_err *err)
{
    struct backup_config *config = &run->vault.config;
    if (!backup_open(&config->targets[0], BACKUP_READ, &run->repositories, err))
        return false;
    run->open = true;
    if (run->moment_ms != INT64_MIN && !add_moment(run, config->targets[0].name, err))
        return false;
    for (size_t i = 0; i < run->repositories.n; i++) {
        struct rd_err one = {0};
        if (backup_is_open(&run->repositories, i, &one) &&
            add_sets(run, &run->repositories.repos[i], &one))
            continue;
        cli_report(run->cli, &one);
        *err = one;
    }
    if (browse_items_n(&run->items) > 0)
        return true;
    return err->code != RD_ERR_OK
               ? false
               : rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the target has no good set");
}

/* The file of the set that was asked for. */
static bool on_set(struct backup_restore *r, struct rd_err *err)
{
    struct run *run = r->ctx;
    spool_done(&run->restored);
    for (size_t i = 0; i < r->set->m.n_files; i++)
        if (strcmp(r->set->m.files[i].name, run->wanted->file) == 0)
            return backup_restore_spool(r, &r->set->m.files[i], &run->restored, err);
    return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the set has no file %s any more",
                      run->wanted->file);
}

static bool restore_item(struct run *run, const struct browse_item *item, struct rd_err *err)
{
    struct backup_restore r = {.watch = &run->vault.watch,
                               .want = {.goal = BACKUP_GOAL_SET, .ms = INT64_MIN, .id = item->from},
                               .now_ms = run->cli->began_ms,
                               .write = on_set,
                               .ctx = run};
    run->wanted = item;
    return backup_restore_from(&r, &run->repositories, err);
}

/* ---- serving ---- */

static bool open_spool(const struct spool *spool, int *ret_fd, uint64_t *ret_len,
                       struct rd_err *err)
{
    int fd = spool->open ? fcntl(spool->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0)
        return rd_err_sys(err, spool->open ? errno : ENODATA, "cannot open the data");
    *ret_fd = fd;
    *ret_len = spool->size;
    return true;
}

static bool open_item(void *ctx, size_t at, int *ret_fd, uint64_t *ret_len, struct rd_err *err)
{
    struct run *run = ctx;
    const struct browse_item *item = browse_items_at(&run->items, at);
    bool ok;
    if (item->kind == BROWSE_FILE)
        return browse_open_file(&run->items, item, ret_fd, ret_len, err);
    if (item->kind == BROWSE_SPOOL)
        return open_spool(&run->spool, ret_fd, ret_len, err);
    ok = restore_item(run, item, err) && open_spool(&run->restored, ret_fd, ret_len, err);
    spool_done(&run->restored);
    if (!ok)
        cli_report(run->cli, err);
    return ok;
}

static bool on_ready(void *ctx, const char *url)
{
    const struct run *run = ctx;
    if (run->json)
        printf("{\"url\":\"%s\"}\n", url);
    else
        printf("%s\n", url);
    if (!run->json)
        cli_note(run->cli, "open this address in a browser on this computer; Ctrl-C ends it");
    return fflush(stdout) == 0;
}

static bool read_page(struct run *run, struct rd_buf *ret, struct rd_err *err)
{
    const char *path = run->page != NULL ? run->page : REDOUBT_PAGE;
    struct rd_err own = {0};
    if (backup_read_file(path, PAGE_MAX, ret, &own))
        return true;
    if (run->page == NULL)
        cli_hint(run->cli, "./run web in the sources of Redoubt writes the page; name it with "
                           "--page FILE");
    *err = own;
    return false;
}

static bool serve(struct run *run, struct rd_slice page, struct rd_err *err)
{
    uint8_t random[BROWSE_TOKEN_BYTES];
    struct rd_buf list = {0};
    struct browse_http_opts opts = {.page = page,
                                    .n_items = browse_items_n(&run->items),
                                    .port = (uint16_t)run->port,
                                    .open = open_item,
                                    .ready = on_ready,
                                    .ctx = run};
    bool ok =
        browse_items_list(&run->items, &list, err) && backup_random(random, sizeof random, err);
    if (ok) {
        for (size_t i = 0; i < sizeof random; i++)
            snprintf(opts.token + 2 * i, 3, "%02x", random[i]);
        opts.list = rd_buf_slice(&list);
        ok = browse_http_serve(&opts, err);
    }
    rd_buf_done(&list);
    return ok;
}

/* The cheap errors come first: reading a server takes long. */
static bool work(struct run *run, struct rd_buf *page, struct rd_err *err)
{
    struct stat st;
    const char *what = run->cli->n_args > 0 ? run->cli->args[0] : NULL;
    bool is_input = what != NULL && strcmp(what, "-") == 0;
    bool is_server = what != NULL && !is_input && server_in_is(what);
    bool is_path = what != NULL && !is_input && !is_server && stat(what, &st) == 0;
    bool is_target = !is_input && !is_server && !is_path;
    if (run->moment_ms != INT64_MIN && !is_target)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "--target-time is for a target");
    if ((is_target && !find_target(run, err)) || !read_page(run, page, err))
        return false;
    bool ok = is_input    ? add_input(run, err)
              : is_server ? add_server(run, what, err)
              : is_path   ? browse_add_path(&run->items, what, &st, err)
                          : add_target(run, err);
    return ok && serve(run, rd_buf_slice(page), err);
}

static int browse(struct run *run)
{
    struct rd_err err = {0};
    struct rd_buf page = {0};
    if (run->port > UINT16_MAX)
        return cli_usage_error(run->cli, "--port must be at most 65535");
    bool ok = work(run, &page, &err);
    rd_buf_done(&page);
    return ok ? CLI_OK : cli_fail(run->cli, &err);
}

static void done(struct run *run)
{
    browse_items_done(&run->items);
    spool_done(&run->spool);
    if (run->open)
        backup_close(&run->repositories);
    peer_opts_done(&run->servers);
    vault_done(&run->vault);
}

int tool_browse(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .moment_ms = INT64_MIN};
    struct cli_opt opts[VAULT_OPTS] = {0};
    vault_init(&run.vault, cli);
    peer_opts_init(&run.servers);
    size_t n = vault_options(&run.vault, opts,
                             BACKUP_FOR_REPOSITORY | BACKUP_FOR_KEYS | BACKUP_FOR_READING);
    const struct cli_opt own[] = {
        {.name = "port",
         .kind = CLI_COUNT,
         .arg = "N",
         .number = &run.port,
         .help = "listen on this port; default: one that is free"},
        {.name = "page",
         .kind = CLI_STRING,
         .arg = "FILE",
         .string = &run.page,
         .help = "the page that ./run web wrote"},
        {.name = "target-time",
         .kind = CLI_TIME,
         .arg = "T",
         .time_ms = &run.moment_ms,
         .help = "of an archive: also the data as of this time"},
        {.name = "at", .kind = CLI_TIME, .arg = "T", .time_ms = &run.moment_ms},
        SERVER_IN_OPTIONS(&run.scan, &run.servers),
    };
    _Static_assert(sizeof own / sizeof *own + BACKUP_KEY_COUNT + 2 <= VAULT_OPTS, "room");
    memcpy(opts + n, own, sizeof own);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] FILE|DIR|-|URL|TARGET",
        .about =
            "Shows a file, a folder, a server or the backups of a target in a browser on this\n"
            "computer. It can only read, and only who has the printed address can.",
        .opts = opts,
        .max_args = 1,
        .json_lines = &run.json,
        .example = "redoubt browse nightly",
    };
    int status;
    if (cli_parse(cli, &usage, argc, argv, &status))
        status = browse(&run);
    done(&run);
    return status;
}
