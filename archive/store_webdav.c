#include "archive/store_webdav.h"

#include "archive/page.h"
#include "archive/ranges.h"
#include "archive/webdav_put.h"
#include "archive/webdav_request.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { DEPTH_MAX = 8, TRIES = 3, OLD_S = 24 * 3600 };

/* ---- what is there ---- */

static bool lists(const struct archive_webdav_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(archive_webdav_name(list, i), name) == 0)
            return true;
    return false;
}

/* Whether the folder above lacks it: status 404 alone may come from a proxy. */
static bool is_absent(struct archive_webdav *s, const char *path, bool *ret, struct rd_err *err)
{
    char above[ARCHIVE_WEBDAV_PATH_MAX];
    const char *name;
    struct archive_webdav_list list = {.n = 0};
    bool missing;
    if (!archive_webdav_above(path, above, &name)) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the server lists no folder of this path, not even the root");
        rd_err_origin(err, s->store.origin);
        return false;
    }
    bool ok = archive_webdav_look(s, above, 1, &list, &missing, NULL, err);
    if (ok)
        *ret = !lists(&list, name);
    archive_webdav_list_done(&list);
    return ok || (missing && is_absent(s, above, ret, err));
}

/* An object (depth 0), or what is in a folder (depth 1). *ret_there: false if it is proved to be
 * missing. It may appear or disappear between two requests. */
static bool look(struct archive_webdav *s, const char *path, unsigned depth,
                 struct archive_webdav_list *ret, bool *ret_there, int64_t *ret_date_s,
                 struct rd_err *err)
{
    for (unsigned i = 0; i < TRIES; i++) {
        bool missing, absent;
        *ret_there = archive_webdav_look(s, path, depth, ret, &missing, ret_date_s, err);
        if (*ret_there)
            return true;
        if (!missing || !is_absent(s, path, &absent, err))
            return false;
        if (absent)
            return true;
    }
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "the server lists it, but answers PROPFIND with status 404");
    rd_err_origin(err, s->store.origin);
    return false;
}

static bool look_at_object(struct archive_store *store, const char *name,
                           struct archive_webdav_entry *ret, bool *ret_there, int64_t *ret_date_s,
                           struct rd_err *err)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX];
    struct archive_webdav *s = archive_webdav_of(store);
    struct archive_webdav_list list = {.n = 0};
    if (!archive_webdav_path(s, name, path, err))
        return false;
    bool ok = look(s, path, 0, &list, ret_there, ret_date_s, err);
    *ret = list.self;
    *ret_there = ok && *ret_there && !ret->is_folder;
    archive_webdav_list_done(&list);
    return ok;
}

static bool webdav_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                        struct rd_err *err)
{
    struct archive_webdav_entry entry;
    bool there;
    *ret = (struct archive_object){0};
    if (!look_at_object(store, name, &entry, &there, NULL, err))
        return false;
    if (there)
        *ret = (struct archive_object){.there = true, .size = entry.size};
    return true;
}

/* Both times are those of the server. */
static bool webdav_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                       struct rd_err *err)
{
    struct archive_webdav_entry entry;
    bool there;
    int64_t date_s;
    if (!look_at_object(store, name, &entry, &there, &date_s, err))
        return false;
    if (!there || entry.modified_s < 0 || date_s < entry.modified_s)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the server reports no time");
    *ret_ms = (date_s - entry.modified_s) * 1000;
    return true;
}

/* ---- get ---- */

/* A server may send a whole object as such. */
static bool is_range(const struct archive_webdav_request *r, uint64_t offset, size_t len,
                     size_t got)
{
    char want[64];
    int n = snprintf(want, sizeof want, "bytes %" PRIu64 "-%" PRIu64 "/", offset, offset + len - 1);
    bool right = r->status == 206 ? strncasecmp(r->head.range, want, (size_t)n) == 0 : offset == 0;
    return right && got == len;
}

static bool get_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                      struct rd_buf *ret, struct rd_err *err)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX], url[ARCHIVE_URL_MAX], range[80];
    struct archive_webdav *s = archive_webdav_of(store);
    size_t before = ret->len;
    struct rd_err failed = {0};
    struct archive_webdav_request r = {.method = "GET",
                                       .url = url,
                                       .headers = {range},
                                       .out = ret,
                                       .wanted = {206, offset == 0 ? 200 : 0},
                                       .max = before + len};
    snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
    if (!archive_webdav_path(s, name, path, err) || !archive_webdav_url(s, path, false, url, err))
        return false;
    bool ok = archive_webdav_perform(s, &r, &failed);
    if (r.status == 200 && (offset > 0 || r.is_long))
        ok = rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                        "the server sends no ranges of objects");
    else if (ok && r.status != 206 && r.status != 200)
        ok = archive_webdav_fail(s, &r, err);
    else if (r.is_long || (ok && !is_range(&r, offset, len, ret->len - before)))
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                        "the server sent another range than the one that was asked for");
    else if (!ok)
        rd_err_adopt(err, &failed);
    if (!ok)
        ret->len = before;
    return ok;
}

static bool webdav_get(struct archive_store *store, const char *name, struct rd_src **ret,
                       struct rd_err *err)
{
    struct archive_object object;
    if (!webdav_stat(store, name, &object, err))
        return false;
    if (object.there)
        return archive_ranges_open(ret, store, name, object.size, get_range, err);
    return archive_store_set_missing(err, name);
}

/* ---- list ---- */

struct walk {
    struct archive_webdav *s;
    archive_each_fn *each;
    void *arg;
    bool only_old; /* only what interrupted uploads left, a day ago */
    struct rd_err *err;
};

/* Not changed for a day, by the clock of the server. */
static bool rests(const struct archive_webdav_entry *entry, int64_t date_s)
{
    return entry->modified_s >= 0 && date_s >= 0 && date_s - entry->modified_s >= OLD_S;
}

/* NAME.RANDOM.new */
static bool is_old(const char *name, const struct archive_webdav_entry *entry, int64_t date_s)
{
    size_t len = strlen(name);
    return len > 13 && strcmp(name + len - 4, ".new") == 0 && name[len - 13] == '.' &&
           strspn(name + len - 12, "0123456789abcdef") == 8 && rests(entry, date_s);
}

/* Names of segments may be longer than those that users give: archive_name_ok() has a limit. */
static bool is_ours(const char *last)
{
    return last[0] != '.' && strchr(last, '/') == NULL && archive_page_name_ok(last);
}

static bool walk_folder(const struct walk *walk, const char *folder, unsigned depth)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX], name[ARCHIVE_NAME_MAX];
    struct archive_webdav_list list = {.n = 0};
    bool there = false;
    int64_t date_s = -1;
    bool ok = archive_webdav_path(walk->s, folder, path, walk->err) &&
              look(walk->s, path, 1, &list, &there, &date_s, walk->err);
    for (size_t i = 0; ok && there && i < list.n; i++) {
        const struct archive_webdav_entry *e = &list.entries[i];
        const char *last = archive_webdav_name(&list, i);
        int len = snprintf(name, sizeof name, "%s/%s", folder, last);
        if (!is_ours(last) || len < 0 || (size_t)len >= sizeof name)
            continue; /* not of a repository */
        const struct archive_listed object = {
            .name = name, .size = e->size, .version = e->version[0] != '\0' ? e->version : NULL};
        if (e->is_folder)
            ok = depth == DEPTH_MAX || walk_folder(walk, name, depth + 1);
        else if (!walk->only_old || is_old(last, e, date_s))
            walk->each(walk->arg, &object);
    }
    archive_webdav_list_done(&list);
    return ok;
}

static bool webdav_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                        void *arg, struct rd_err *err)
{
    const struct walk walk = {.s = archive_webdav_of(store), .each = each, .arg = arg, .err = err};
    return walk_folder(&walk, folder, 0);
}

/* ---- remove ---- */

static bool webdav_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX];
    struct archive_webdav *s = archive_webdav_of(store);
    struct archive_webdav_request r;
    struct archive_object object;
    if (!archive_webdav_path(s, name, path, err) || !archive_webdav_delete(s, path, false, &r, err))
        return false;
    if (r.status == 204)
        return true;
    if (r.status != 404 && r.status != 410 && (r.status < 200 || r.status > 299))
        return archive_webdav_fail(s, &r, err);
    return webdav_stat(store, name, &object, err) &&
           (!object.there || archive_webdav_fail(s, &r, err));
}

static void remove_old(void *arg, const struct archive_listed *object)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX];
    struct archive_webdav_request r;
    if (archive_webdav_path(arg, object->name, path, NULL))
        archive_webdav_delete(arg, path, false, &r, NULL);
}

/* list() shows the remains of uploads as well, but not all that look for objects remove them. */
static void webdav_clean(struct archive_store *store, const char *folder)
{
    struct archive_webdav *s = archive_webdav_of(store);
    const struct walk walk = {.s = s, .each = remove_old, .arg = s, .only_old = true};
    walk_folder(&walk, folder, 0);
}

static bool is_empty(struct archive_webdav *s, const char *path)
{
    struct archive_webdav_list list = {.n = 0};
    bool missing;
    bool ret = archive_webdav_look(s, path, 1, &list, &missing, NULL, NULL) &&
               list.self.is_folder && list.n == 0;
    archive_webdav_list_done(&list);
    return ret;
}

/* DELETE would delete what another process puts into the folder at this moment. Whether it was
 * renamed, the new name shows: servers do not agree on the status. */
static void remove_empty(struct archive_webdav *s, const char *path)
{
    char away[ARCHIVE_WEBDAV_PATH_MAX];
    struct archive_webdav_request r;
    uint32_t chance;
    if (!is_empty(s, path) || !s->random(&chance, sizeof chance, NULL))
        return;
    int len = snprintf(away, sizeof away, "%s.%08" PRIx32 ".old", path, chance);
    if (len < 0 || (size_t)len >= sizeof away ||
        !archive_webdav_move(s, path, away, true, &r, NULL))
        return;
    s->folder[0] = '\0';
    if (is_empty(s, away))
        archive_webdav_delete(s, away, true, &r, NULL);
    else
        archive_webdav_move(s, away, path, true, &r, NULL);
}

static void webdav_tidy(struct archive_store *store, const char *folder)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX], inner[ARCHIVE_WEBDAV_PATH_MAX];
    struct archive_webdav *s = archive_webdav_of(store);
    struct archive_webdav_list list = {.n = 0};
    bool missing;
    int64_t date_s = -1;
    if (!archive_webdav_path(s, folder, path, NULL) ||
        !archive_webdav_look(s, path, 1, &list, &missing, &date_s, NULL))
        return;
    for (size_t i = 0; i < list.n; i++) {
        const char *name = archive_webdav_name(&list, i);
        int len = snprintf(inner, sizeof inner, "%s/%s", path, name);
        if (list.entries[i].is_folder && rests(&list.entries[i], date_s) && is_ours(name) &&
            (size_t)len < sizeof inner)
            remove_empty(s, inner);
    }
    archive_webdav_list_done(&list);
}

/* ---- the store ---- */

static void webdav_free(struct archive_webdav *s)
{
    archive_remote_close(&s->remote);
    if (s->password != NULL)
        explicit_bzero(s->password, strlen(s->password));
    rd_free(s->user);
    rd_free(s->password);
    rd_free(s->ca_file);
    rd_free(s->spool);
    rd_free(s);
}

static void webdav_close(struct archive_store *store)
{
    webdav_free(archive_webdav_of(store));
}

static bool bad_url(const char *what, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "a WebDAV repository must be webdav://USER@HOST:PORT/PATH or webdavs://…: %s",
                      what);
}

/* [USER@]HOST[:PORT] */
static bool set_host(struct archive_webdav *s, const char *scheme, struct rd_slice place,
                     const char *user, struct rd_err *err)
{
    char name[300];
    const char *text = (const char *)place.ptr, *at = memrchr(text, '@', place.len);
    const char *host = at != NULL ? at + 1 : text;
    size_t len = place.len - (size_t)(host - text);
    if (at != NULL && memchr(text, ':', (size_t)(at - text)) != NULL)
        return bad_url("the URL cannot contain a password; use webdav-pass-file", err);
    if (at != NULL && (at == text || !archive_webdav_decode(name, sizeof name,
                                                            rd_slice(text, (size_t)(at - text)))))
        return bad_url("the user is not valid", err);
    if (len == 0 || len > 200 || host[0] == ':')
        return bad_url("it has no host", err);
    for (size_t i = 0; i < len; i++)
        if (host[i] <= ' ' || host[i] > '~' || strchr("\\\"<>?#%{}|^`", host[i]) != NULL)
            return bad_url("the host is not valid", err);
    snprintf(s->host, sizeof s->host, "%s://%.*s", scheme, (int)len, host);
    return archive_remote_copy(&s->user, at != NULL ? name : user, err);
}

static bool set_path(struct archive_webdav *s, const char *path, struct rd_err *err)
{
    char part[ARCHIVE_WEBDAV_PATH_MAX];
    size_t len = 0;
    if (strpbrk(path, "?#") != NULL)
        return bad_url("? and # in the path must be written as %3F and %23", err);
    while (path[0] == '/' && path[1] != '\0') {
        size_t n = strcspn(++path, "/");
        if (!archive_webdav_decode(part, sizeof part, rd_slice(path, n)))
            return bad_url("a % in the path must be written as %25", err);
        if (part[0] == '\0' || strcmp(part, ".") == 0 || strcmp(part, "..") == 0 ||
            strchr(part, '/') != NULL)
            return bad_url("no part of the path may be empty, \".\", \"..\" or contain a slash",
                           err);
        for (const char *c = part; *c != '\0'; c++)
            if ((uint8_t)*c < ' ' || *c == 127)
                return bad_url("the path contains a control character", err);
        if (len + strlen(part) + 2 > sizeof s->path / 3)
            return bad_url("the path is too long", err);
        len += (size_t)snprintf(s->path + len, sizeof s->path - len, "/%s", part);
        path += n;
    }
    return true;
}

static bool set_place(struct archive_webdav *s, const struct archive_webdav_opts *opts,
                      struct rd_err *err)
{
    bool secure = strncmp(opts->url, "webdavs://", 10) == 0;
    if (!secure && strncmp(opts->url, "webdav://", 9) != 0)
        return bad_url("it has another scheme", err);
    const char *place = opts->url + (secure ? 10 : 9), *path = strchr(place, '/');
    if (path == NULL)
        return bad_url("it has no path", err);
    snprintf(s->store.origin, sizeof s->store.origin, "%s", opts->url);
    return set_host(s, secure ? "https" : "http", rd_slice(place, (size_t)(path - place)),
                    opts->user, err) &&
           set_path(s, path, err);
}

static bool set_rest(struct archive_webdav *s, const struct archive_webdav_opts *opts,
                     struct rd_err *err)
{
    if ((s->user == NULL) != (opts->password == NULL))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          s->user == NULL ? "webdav-pass-file needs a user: webdav-user"
                                          : "no password: webdav-pass-file or WEBDAV_PASSWORD");
    s->auth = (long)(CURLAUTH_BASIC | CURLAUTH_DIGEST);
    return archive_remote_copy(&s->password, opts->password, err) &&
           archive_remote_copy(&s->ca_file, opts->ca_file, err) &&
           archive_remote_copy(&s->spool, opts->spool, err) &&
           archive_remote_open(&s->remote, opts->tries, opts->wait_ms, opts->rate, opts->cancel,
                               err);
}

bool archive_store_open_webdav(struct archive_store **ret, const struct archive_webdav_opts *opts,
                               struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .remote = true,
        .put = archive_webdav_put,
        .get = webdav_get,
        .range = get_range,
        .stat = webdav_stat,
        .list = webdav_list,
        .remove = webdav_remove,
        .clean = webdav_clean,
        .tidy = webdav_tidy,
        .age = webdav_age,
        .close = webdav_close,
    };
    struct archive_webdav *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    s->store.ops = &ops;
    s->random = opts->random;
    if (!set_place(s, opts, err) || !set_rest(s, opts, err)) {
        webdav_free(s);
        return false;
    }
    *ret = &s->store;
    return true;
}
