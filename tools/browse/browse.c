/* browse.c - `redoubt browse`: the page of web/ for what a browser cannot open itself. */
#include "tools/browse/browse.h"

#include "base/mem.h"
#include "backup/restore.h"
#include "json/write.h"
#include "tools/input/server_in.h"
#include "tools/tools.h"
#include "tools/vault/vault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, ITEMS_MAX = 10000, PAGE_MAX = 64 << 20 };

enum item_kind { ITEM_FILE, ITEM_SERVER, ITEM_SET };

/* What the page can open, one file of it. */
struct item {
    enum item_kind kind;
    char *path; /* the name in the page; owned */
    char *from; /* of ITEM_FILE: where it is; of ITEM_SET: the id; owned */
    uint64_t size;
    char file[ARCHIVE_FILE_NAME_MAX]; /* of ITEM_SET */
    int64_t time_ms;
    bool inside; /* of a folder: not behind a symbolic link */
    bool apart;  /* the page opens it only when its user chooses it */
};

struct run {
    struct cli *cli;
    struct vault vault;
    struct peer_opts servers;
    const char *page;
    uint64_t port;
    bool scan;
    bool json;
    struct rd_buf items; /* struct item */
    struct spool spool;  /* of a server */
    struct backup_open repositories;
    bool open;
    struct spool restored; /* of the request that is being answered */
    const struct item *wanted;
};

static struct item *items_of(const struct run *run)
{
    return (struct item *)(void *)run->items.ptr;
}

static size_t n_items(const struct run *run)
{
    return run->items.len / sizeof(struct item);
}

static char *copy_text(const char *text)
{
    char *copy = rd_alloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Adopts nothing: path and from are copied. */
static struct item *add_item(struct run *run, enum item_kind kind, const char *path,
                             const char *from, struct rd_err *err)
{
    struct item item = {.kind = kind, .path = copy_text(path), .from = copy_text(from)};
    if (n_items(run) >= ITEMS_MAX) {
        rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d files", ITEMS_MAX);
    } else if (item.path == NULL || item.from == NULL ||
               !rd_buf_add(&run->items, &item, sizeof item)) {
        rd_err_nomem(err, strlen(path));
    } else {
        return &items_of(run)[n_items(run) - 1];
    }
    rd_free(item.path);
    rd_free(item.from);
    return NULL;
}

/* ---- files and folders ---- */

/* Names of the files of snapshots, logs and captures. Nothing else of a folder is served. */
static bool is_data(const char *name)
{
    static const char *const ends[] = {".rdb", ".aof", ".manifest", ".seg", ".segment"};
    static const char *const packed[] = {"", ".gz", ".lz4", ".zst"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
            char end[24];
            int n = snprintf(end, sizeof end, "%s%s", ends[i], packed[k]);
            if (len > (size_t)n && strcmp(name + len - (size_t)n, end) == 0)
                return true;
        }
    return false;
}

static bool add_folder(struct run *run, const char *from, const char *path, int depth,
                       struct rd_err *err);

static bool add_entry(struct run *run, const char *from, const char *path, const char *name,
                      int depth, struct rd_err *err)
{
    struct stat st;
    struct rd_buf place = {0}, shown = {0};
    bool ok = rd_buf_add(&place, from, strlen(from)) && rd_buf_add(&place, "/", 1) &&
              rd_buf_add(&place, name, strlen(name) + 1) &&
              rd_buf_add(&shown, path, strlen(path)) && rd_buf_add(&shown, "/", 1) &&
              rd_buf_add(&shown, name, strlen(name) + 1);
    const char *where = (const char *)place.ptr, *as = (const char *)shown.ptr;
    if (!ok) {
        rd_err_nomem(err, strlen(name));
    } else if (lstat(where, &st) != 0) {
        ok = errno == ENOENT || rd_err_sys(err, errno, "cannot examine %s", as);
    } else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
        ok = add_folder(run, where, as, depth + 1, err);
    } else if (S_ISREG(st.st_mode) && is_data(name)) {
        struct item *item = add_item(run, ITEM_FILE, as, where, err);
        ok = item != NULL;
        if (ok) {
            item->size = (uint64_t)st.st_size;
            item->inside = true;
        }
    }
    rd_buf_done(&place);
    rd_buf_done(&shown);
    return ok;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_folder(struct run *run, const char *from, const char *path, int depth,
                       struct rd_err *err)
{
    struct dirent **names;
    int n = scandir(from, &names, NULL, by_name);
    bool ok = n >= 0;
    if (!ok) {
        rd_err_sys(err, errno, "cannot read the folder");
        rd_err_origin(err, from);
    }
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.')
            ok = ok && add_entry(run, from, path, names[i]->d_name, depth, err);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return ok;
}

static const char *last_name(char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0 ? "folder"
                                                                                       : name;
}

static bool add_path(struct run *run, const char *path, const struct stat *st, struct rd_err *err)
{
    char *own = copy_text(path);
    bool ok = own != NULL || rd_err_nomem(err, strlen(path));
    if (ok && S_ISDIR(st->st_mode)) {
        const char *name = last_name(own);
        ok = add_folder(run, own, name, 1, err);
        if (ok && n_items(run) == 0)
            ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                            "the folder has no snapshot, log or capture");
    } else if (ok && S_ISREG(st->st_mode)) {
        struct item *item = add_item(run, ITEM_FILE, last_name(own), path, err);
        ok = item != NULL;
        if (ok)
            item->size = (uint64_t)st->st_size;
    } else if (ok) {
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "neither a file nor a folder");
    }
    if (!ok && err->origin[0] == '\0')
        rd_err_origin(err, path);
    rd_free(own);
    return ok;
}

/* ---- a server ---- */

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
    struct item *item = add_item(run, ITEM_SERVER, name, "", err);
    if (item == NULL)
        return false;
    item->size = run->spool.size;
    item->time_ms = run->cli->began_ms;
    return true;
}

/* ---- backups ---- */

static bool has_set(const struct run *run, const char *id)
{
    for (size_t i = 0; i < n_items(run); i++)
        if (strcmp(items_of(run)[i].from, id) == 0)
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
        struct item *item = add_item(run, ITEM_SET, path, set->id, err);
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

static bool add_target(struct run *run, struct rd_err *err)
{
    struct backup_config *config = &run->vault.config;
    if (!backup_open(&config->targets[0], BACKUP_READ, &run->repositories, err))
        return false;
    run->open = true;
    for (size_t i = 0; i < run->repositories.n; i++) {
        struct rd_err one = {0};
        if (backup_is_open(&run->repositories, i, &one) &&
            add_sets(run, &run->repositories.repos[i], &one))
            continue;
        cli_report(run->cli, &one);
        *err = one;
    }
    if (n_items(run) > 0)
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

static bool restore_item(struct run *run, const struct item *item, struct rd_err *err)
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

static bool open_file(const struct item *item, int *ret_fd, uint64_t *ret_len, struct rd_err *err)
{
    struct stat st;
    int links = item->inside ? O_NOFOLLOW : 0;
    int fd = open(item->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | links);
    if (fd < 0 || fstat(fd, &st) != 0) {
        rd_err_sys(err, errno, "cannot open");
    } else if (!S_ISREG(st.st_mode)) {
        rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "is no file any more");
    } else {
        *ret_fd = fd;
        *ret_len = (uint64_t)st.st_size;
        return true;
    }
    if (fd >= 0)
        close(fd);
    rd_err_origin(err, item->path);
    return false;
}

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
    const struct item *item = &items_of(run)[at];
    bool ok;
    if (item->kind == ITEM_FILE)
        return open_file(item, ret_fd, ret_len, err);
    if (item->kind == ITEM_SERVER)
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

static bool put_list(const struct run *run, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_sink *sink;
    struct json_write json;
    if (!rd_sink_open_buf(&sink, ret, NULL, err))
        return false;
    json_init(&json, sink);
    json_obj(&json);
    json_key(&json, "files");
    json_array(&json);
    for (size_t i = 0; i < n_items(run); i++) {
        const struct item *item = &items_of(run)[i];
        json_obj(&json);
        json_put_str(&json, "path", item->path);
        json_put_offset(&json, "bytes", item->size);
        json_put_bool(&json, "apart", item->apart);
        if (item->time_ms != 0)
            json_put_str(&json, "time", rd_show_time(item->time_ms).s);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    return rd_sink_close(sink, err);
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
                                    .n_items = n_items(run),
                                    .port = (uint16_t)run->port,
                                    .open = open_item,
                                    .ready = on_ready,
                                    .ctx = run};
    bool ok = put_list(run, &list, err) && backup_random(random, sizeof random, err);
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
    bool is_server = what != NULL && server_in_is(what);
    bool is_path = what != NULL && !is_server && stat(what, &st) == 0;
    if ((!is_server && !is_path && !find_target(run, err)) || !read_page(run, page, err))
        return false;
    bool ok = is_server ? add_server(run, what, err)
              : is_path ? add_path(run, what, &st, err)
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
    for (size_t i = 0; i < n_items(run); i++) {
        rd_free(items_of(run)[i].path);
        rd_free(items_of(run)[i].from);
    }
    rd_buf_done(&run->items);
    spool_done(&run->spool);
    if (run->open)
        backup_close(&run->repositories);
    peer_opts_done(&run->servers);
    vault_done(&run->vault);
}

int tool_browse(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli};
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
        SERVER_IN_OPTIONS(&run.scan, &run.servers),
    };
    _Static_assert(sizeof own / sizeof *own + BACKUP_KEY_COUNT + 2 <= VAULT_OPTS, "room");
    memcpy(opts + n, own, sizeof own);
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] FILE|DIR|URL|TARGET",
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
