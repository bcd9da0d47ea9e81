/* log.c - reads a log on disk into a set.
 *
 * All files are opened before the first is read, because open files stay readable when the server
 * removes their names after a rewrite. The manifest is read again afterwards; if it has changed,
 * everything is opened again. Each file is read up to its size at that moment, because the server
 * only appends. An incomplete command or transaction at the end is left out.
 */
#include "backup/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof/check.h"
#include "backup/system.h"
#include "base/mem.h"
#include "base/pump.h"
#include "data/spool.h"

enum { TRIES = 200, WAIT_MS = 50, MANIFEST_MAX = 16 * 1024 * 1024 };

struct pinned {
    int folder;
    char manifest_name[ARCHIVE_FILE_NAME_MAX];
    struct rd_buf text; /* of the manifest */
    struct aof_manifest manifest;
    int *fds; /* of the manifest's files; -1: history */
    uint64_t *sizes;
    char finding[RD_ERR_TEXT_MAX + 300];
};

/* ---- reading a part of a file ---- */

struct part {
    int fd;
    uint64_t at, end;
};

static enum rd_src_status part_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct part *p = impl;
    size_t want = p->end - p->at < cap ? (size_t)(p->end - p->at) : cap;
    ssize_t n = 0;
    *ret_len = 0;
    if (want == 0)
        return RD_SRC_END;
    while ((n = pread(p->fd, buf, want, (off_t)p->at)) < 0 && errno == EINTR)
        ;
    if (n <= 0) {
        if (n < 0)
            rd_err_sys(err, errno, "cannot read");
        else
            rd_err_set(err, RD_ERR_IO, p->at, "the file was truncated while it was read");
        return RD_SRC_FAIL;
    }
    p->at += (uint64_t)n;
    *ret_len = (size_t)n;
    return RD_SRC_OK;
}

static bool part_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct part *p = impl;
    (void)err;
    p->at = offset < p->end ? offset : p->end;
    return true;
}

static bool open_part(struct rd_src **ret, int fd, uint64_t size, const char *name,
                      struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = part_read, .seek = part_seek, .close = rd_free};
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = name, .total = size, .sized = true);
    struct part *p = rd_calloc(1, sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    *p = (struct part){.fd = fd, .end = size};
    return rd_src_new(ret, &ops, p, &opts, err);
}

/* ---- pinning ---- */

/* A folder that cannot be read may have a log. */
static bool cannot_open(const char *folder, bool *ret_none, struct rd_err *err)
{
    *ret_none = false;
    rd_err_sys(err, errno, "cannot open the folder");
    rd_err_origin(err, folder);
    return false;
}

bool backup_log_find(const char *folder, char ret[ARCHIVE_FILE_NAME_MAX], bool *ret_none,
                     struct rd_err *err)
{
    static const char tail[] = ".manifest";
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t n = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);
        if (len < sizeof tail || strcmp(entry->d_name + len + 1 - sizeof tail, tail) != 0 ||
            strncmp(entry->d_name, "temp-", 5) == 0 || len >= ARCHIVE_FILE_NAME_MAX)
            continue;
        memcpy(ret, entry->d_name, len + 1);
        n++;
    }
    if (dir != NULL)
        closedir(dir);
    else if (errno != ENOENT && errno != ENOTDIR)
        return cannot_open(folder, ret_none, err);
    *ret_none = n == 0;
    if (n > 1) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "it has more than one log");
        rd_err_origin(err, folder);
    }
    return n == 1;
}

static void unpin(struct pinned *p)
{
    for (size_t i = 0; p->fds != NULL && i < aof_manifest_count(&p->manifest); i++)
        if (p->fds[i] >= 0)
            close(p->fds[i]);
    rd_free(p->fds);
    rd_free(p->sizes);
    p->fds = NULL;
    p->sizes = NULL;
    aof_manifest_done(&p->manifest);
    rd_buf_done(&p->text);
}

static bool read_manifest(const struct pinned *p, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    int fd = openat(p->folder, p->manifest_name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rd_err_sys(err, errno, "cannot open %s", p->manifest_name);
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = p->manifest_name);
    if (!rd_src_open_fd(&src, fd, true, &opts, err))
        return false;
    bool ok = rd_pump_to_buf(src, MANIFEST_MAX, ret, err);
    rd_src_close(src);
    if (!ok)
        rd_err_origin(err, p->manifest_name);
    return ok;
}

static bool parse_manifest(struct pinned *p, struct rd_err *err)
{
    struct rd_src *src;
    const struct rd_src_opts opts = RD_SRC_OPTS(.origin = p->manifest_name);
    if (!rd_src_open_memory(&src, rd_buf_slice(&p->text), &opts, err))
        return false;
    bool ok = aof_manifest_read(&p->manifest, src, NULL, NULL, err);
    rd_src_close(src);
    return ok;
}

static bool open_files(struct pinned *p, struct rd_err *err)
{
    size_t n = aof_manifest_count(&p->manifest);
    struct stat st;
    p->fds = rd_alloc((n + 1) * sizeof *p->fds);
    p->sizes = rd_calloc(n + 1, sizeof *p->sizes);
    for (size_t i = 0; p->fds != NULL && i < n; i++)
        p->fds[i] = -1;
    if (p->fds == NULL || p->sizes == NULL)
        return rd_err_nomem(err, n);
    for (size_t i = 0; i < n; i++) {
        const struct aof_file *file = aof_manifest_file(&p->manifest, i);
        if (file->type == AOF_HISTORY)
            continue;
        p->fds[i] = openat(p->folder, file->name, O_RDONLY | O_CLOEXEC);
        if (p->fds[i] < 0 || fstat(p->fds[i], &st) != 0)
            return rd_err_sys(err, errno, "cannot open %s", file->name);
        p->sizes[i] = (uint64_t)st.st_size;
    }
    return true;
}

/* One try; *ret_again: the server has changed something meanwhile. */
static bool pin_once(struct pinned *p, bool *ret_again, struct rd_err *err)
{
    struct rd_buf after = {0};
    aof_manifest_init(&p->manifest);
    bool ok = read_manifest(p, &p->text, err) && parse_manifest(p, err);
    bool opened = ok && open_files(p, err);
    *ret_again = ok && !opened && err->sys == ENOENT;
    if (opened) {
        ok = read_manifest(p, &after, err);
        *ret_again = ok && !rd_slice_eq(rd_buf_slice(&after), rd_buf_slice(&p->text));
    }
    rd_buf_done(&after);
    return ok && opened && !*ret_again;
}

static bool pin(struct pinned *p, const char *folder, struct rd_err *err)
{
    bool none, again = true;
    struct rd_err failed = {0};
    p->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->folder < 0)
        return rd_err_sys(err, errno, "cannot open the folder");
    if (!backup_log_find(folder, p->manifest_name, &none, err))
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "there is no log");
    for (unsigned i = 0; again && i < TRIES; i++) {
        if (i > 0)
            usleep(WAIT_MS * 1000);
        rd_err_reset(&failed);
        if (pin_once(p, &again, &failed))
            return true;
        unpin(p);
    }
    if (failed.code == RD_ERR_OK)
        rd_err_set(&failed, RD_ERR_IO, RD_NO_OFFSET, "the log keeps changing");
    rd_err_adopt(err, &failed);
    return false;
}

/* ---- the check ---- */

static bool open_pinned(void *ctx, const struct aof_file *file, struct rd_src **ret,
                        struct rd_err *err)
{
    struct pinned *p = ctx;
    for (size_t i = 0; i < aof_manifest_count(&p->manifest); i++)
        if (p->fds[i] >= 0 && strcmp(aof_manifest_file(&p->manifest, i)->name, file->name) == 0)
            return open_part(ret, p->fds[i], p->sizes[i], file->name, err);
    return rd_err_sys(err, ENOENT, "cannot open %s", file->name);
}

static void on_finding(void *ctx, const struct aof_finding *finding)
{
    struct pinned *p = ctx;
    if (finding->severity == RDB_SEVERITY_ERROR && p->finding[0] == '\0')
        snprintf(p->finding, sizeof p->finding, "%.200s%s%s",
                 finding->file != NULL ? finding->file : "", finding->file != NULL ? ": " : "",
                 finding->text);
}

/* Cuts what is torn off the end of the last file. */
static bool cut_tail(struct pinned *p, const struct aof_check_result *res, struct rd_err *err)
{
    const struct aof_check_file *last = res->files[res->n_files - 1];
    for (size_t i = 0; i < aof_manifest_count(&p->manifest); i++) {
        if (p->fds[i] < 0 || strcmp(aof_manifest_file(&p->manifest, i)->name, last->name) != 0)
            continue;
        p->sizes[i] = last->ok_up_to;
        return true;
    }
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", p->finding);
}

static bool check(struct pinned *p, struct backup_set *set, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_pinned, .finding = on_finding, .ctx = p, .spool = &for_keys);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src;
    if (!rd_src_open_memory(&src, rd_buf_slice(&p->text), NULL, err))
        return false;
    bool ok = backup_random(opts.seed, sizeof opts.seed, err) && aof_check(src, &opts, &res, err);
    if (ok && res.verdict == AOF_VERDICT_TORN)
        ok = cut_tail(p, &res, err);
    else if (ok && res.verdict > AOF_VERDICT_TORN)
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", p->finding);
    if (ok && res.last_time != AOF_NO_TIME)
        set->m.data_ms = res.last_time * 1000;
    aof_check_done(&res);
    rd_src_close(src);
    spool_done(&keys);
    return ok;
}

/* ---- copying ---- */

static bool copy_file(struct pinned *p, size_t i, struct backup_set *set, struct rd_err *err)
{
    const struct aof_file *file = aof_manifest_file(&p->manifest, i);
    enum archive_role role = file->type == AOF_BASE ? ARCHIVE_ROLE_AOF_BASE : ARCHIVE_ROLE_AOF_INCR;
    struct rd_src *src;
    if (!backup_set_file_begin(set, file->name, role, err))
        return false;
    bool ok = open_part(&src, p->fds[i], p->sizes[i], file->name, err);
    if (ok) {
        ok = backup_set_copy(set, src, err);
        rd_src_close(src);
    }
    return backup_set_file_end(set, ok, err);
}

/* Without the history files, which are not copied. */
static bool copy_manifest(struct pinned *p, struct backup_set *set, struct rd_err *err)
{
    if (!backup_set_file_begin(set, p->manifest_name, ARCHIVE_ROLE_AOF_MANIFEST, err))
        return false;
    for (size_t i = aof_manifest_count(&p->manifest); i-- > 0;)
        if (aof_manifest_file(&p->manifest, i)->type == AOF_HISTORY)
            aof_manifest_remove(&p->manifest, i);
    bool ok = aof_manifest_write(&p->manifest, set->sink);
    if (!ok)
        rd_err_adopt(err, rd_sink_err(set->sink));
    return backup_set_file_end(set, ok, err);
}

static bool copy_all(struct pinned *p, struct backup_set *set, struct rd_err *err)
{
    size_t n = aof_manifest_count(&p->manifest);
    for (size_t i = 0; i < n; i++)
        if (p->fds[i] >= 0 && !copy_file(p, i, set, err))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (p->fds[i] >= 0)
            close(p->fds[i]);
        p->fds[i] = -1;
    }
    return copy_manifest(p, set, err);
}

bool backup_log_read(const struct rd_watch *watch, struct backup_set *set, const char *folder,
                     struct rd_err *err)
{
    struct pinned p = {.folder = -1};
    snprintf(set->m.source, sizeof set->m.source, "%s", folder);
    rd_watch_begin(watch, folder, RD_NO_OFFSET, NULL);
    bool pinned = pin(&p, folder, err);
    bool ok = pinned && check(&p, set, err) && copy_all(&p, set, err);
    if (pinned)
        unpin(&p);
    if (p.folder >= 0)
        close(p.folder);
    rd_watch_end(watch);
    if (!ok)
        rd_err_origin(err, folder);
    return ok;
}
