/* webdav_put.c - an object is kept until it is complete, uploaded beside its place, and moved. */
#include "archive/webdav_put.h"

#include "archive/webdav_request.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct put {
    struct archive_webdav *s;
    char name[ARCHIVE_NAME_MAX];
    char path[ARCHIVE_WEBDAV_PATH_MAX];
    char temp[ARCHIVE_WEBDAV_PATH_MAX];
    struct rd_buf kept;
    int fd;        /* what did not fit into memory; -1: all did */
    uint64_t size; /* of the file */
};

/* ---- the bytes until the object is complete ---- */

/* A file without a name; where files need one, it has one for a moment. */
static int open_unnamed(const char *folder)
{
    char path[ARCHIVE_URL_MAX];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    int len = snprintf(path, sizeof path, "%s/upload-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC); /* mode 0600 */
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool file_fails(const struct put *put, const char *what, struct rd_err *err)
{
    rd_err_sys(err, errno, "%s the file of an upload", what);
    rd_err_origin(err, put->s->spool);
    return false;
}

static bool spill(struct put *put, struct rd_err *err)
{
    if (put->fd < 0)
        put->fd = open_unnamed(put->s->spool);
    if (put->fd < 0)
        return file_fails(put, "cannot create", err);
    for (size_t done = 0; done < put->kept.len;) {
        ssize_t n = write(put->fd, put->kept.ptr + done, put->kept.len - done);
        if (n < 0 && errno != EINTR)
            return file_fails(put, "cannot write", err);
        done += n > 0 ? (size_t)n : 0;
    }
    put->size += put->kept.len;
    rd_buf_reset(&put->kept);
    return true;
}

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0)
        if ((put->kept.len == ARCHIVE_WEBDAV_MEMORY && !spill(put, err)) ||
            !archive_remote_fill(&put->kept, ARCHIVE_WEBDAV_MEMORY, &ptr, &len, err))
            return false;
    return true;
}

/* ---- the upload ---- */

static bool send_object(struct put *put, struct archive_webdav_request *r, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    *r = (struct archive_webdav_request){.method = "PUT",
                                         .url = url,
                                         .type = "Content-Type: application/octet-stream",
                                         .body = rd_buf_slice(&put->kept),
                                         .fd = put->fd,
                                         .size = put->size};
    bool ok = archive_webdav_url(put->s, put->temp, false, url, err) &&
              archive_webdav_perform(put->s, r, err);
    r->url = NULL;
    return ok;
}

static bool is_stored(const struct archive_webdav_request *r)
{
    return r->status == 201 || r->status == 204 || r->status == 200;
}

/* A folder that was there may have been removed by another process: 409, but not of all servers. */
static bool upload(struct put *put, struct rd_err *err)
{
    char folder[ARCHIVE_WEBDAV_PATH_MAX];
    const char *last;
    struct archive_webdav_request r = {.status = 0};
    if (!archive_webdav_above(put->path, folder, &last))
        return false;
    if (strcmp(folder, put->s->folder) == 0) {
        if (!send_object(put, &r, err))
            return false;
        if (is_stored(&r))
            return true;
        if (r.status != 404 && r.status != 409 && r.status != 403)
            return archive_webdav_fail(put->s, &r, err);
    }
    put->s->folder[0] = '\0';
    if (!archive_webdav_make(put->s, folder, err) || !send_object(put, &r, err))
        return false;
    if (!is_stored(&r))
        return archive_webdav_fail(put->s, &r, err);
    memcpy(put->s->folder, folder, sizeof folder);
    return true;
}

/* A server whose disk is full, or a proxy, may have taken less than it says. */
static bool is_whole(struct put *put, struct rd_err *err)
{
    struct archive_webdav_list list = {.n = 0};
    struct rd_err failed = {0};
    bool missing;
    uint64_t size = put->fd >= 0 ? put->size : put->kept.len;
    bool ok = archive_webdav_look(put->s, put->temp, 0, &list, &missing, NULL, &failed);
    if (missing)
        rd_err_set(&failed, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the server does not show the object that it says it has stored");
    else if (ok && (list.self.is_folder || list.self.size != size))
        rd_err_set(&failed, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the server has stored %" PRIu64 " of %" PRIu64 " bytes", list.self.size, size);
    archive_webdav_list_done(&list);
    rd_err_origin(&failed, put->name);
    rd_err_adopt(err, &failed);
    return failed.code == RD_ERR_OK;
}

/* What the answer says about the object. Everything but an acknowledgement, and a refusal of the
 * only try, leaves it open. */
static bool give_name(struct put *put, struct rd_err *err)
{
    struct archive_webdav_request r;
    if (!archive_webdav_move(put->s, put->temp, put->path, false, &r, err))
        return archive_store_set_unknown(err);
    if (r.status == 201 || r.status == 204)
        return true;
    if (r.status == 412)
        return archive_store_set_exists(err, put->name);
    archive_webdav_fail(put->s, &r, err);
    bool refused = r.status >= 400 && r.status < 500 && !r.lost;
    return refused ? false : archive_store_set_unknown(err);
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    struct archive_webdav_request r;
    bool ok = true;
    if (commit) {
        ok = (put->fd < 0 || spill(put, err)) && upload(put, err) && is_whole(put, err) &&
             give_name(put, err);
        if (!ok)
            archive_webdav_delete(put->s, put->temp, false, &r, NULL);
    }
    if (put->fd >= 0)
        close(put->fd);
    rd_buf_done(&put->kept);
    rd_free(put);
    return ok;
}

bool archive_webdav_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                        struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, NULL, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    struct archive_webdav *s = archive_webdav_of(store);
    char temp[ARCHIVE_NAME_MAX + 20];
    uint32_t chance;
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    *put = (struct put){.s = s, .fd = -1};
    snprintf(put->name, sizeof put->name, "%s", name);
    bool ok = s->random(&chance, sizeof chance, err);
    if (ok) {
        snprintf(temp, sizeof temp, "%s.%08" PRIx32 ".new", put->name, chance);
        ok = archive_webdav_path(s, name, put->path, err) &&
             archive_webdav_path(s, temp, put->temp, err);
    }
    if (!ok) {
        rd_free(put);
        return false;
    }
    return rd_sink_new(ret, &ops, put, &opts, err);
}
