#include "archive/webdav_request.h"

#include <stdio.h>
#include <unistd.h>

enum { LIST_MAX = 64 * 1024 * 1024, DROPPED_MAX = 1024 * 1024, LIST_TRIES = 3 };

struct archive_webdav *archive_webdav_of(struct archive_store *store)
{
    return (struct archive_webdav *)store;
}

/* ---- paths ---- */

bool archive_webdav_path(const struct archive_webdav *s, const char *name,
                         char ret[ARCHIVE_WEBDAV_PATH_MAX], struct rd_err *err)
{
    int len = snprintf(ret, ARCHIVE_WEBDAV_PATH_MAX, "%s/%s", s->path, name);
    return (len > 0 && len < ARCHIVE_WEBDAV_PATH_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

bool archive_webdav_above(const char *path, char ret[ARCHIVE_WEBDAV_PATH_MAX],
                          const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    *ret_name = slash + 1;
    snprintf(ret, ARCHIVE_WEBDAV_PATH_MAX, "%.*s", (int)(slash - path), path);
    return true;
}

bool archive_webdav_url(const struct archive_webdav *s, const char *path, bool is_folder,
                        char ret[ARCHIVE_URL_MAX], struct rd_err *err)
{
    char escaped[ARCHIVE_URL_MAX];
    int len = archive_web_escape(escaped, sizeof escaped, rd_slice_str(path), true)
                  ? snprintf(ret, ARCHIVE_URL_MAX, "%s%s%s", s->host, escaped, is_folder ? "/" : "")
                  : 0;
    return (len > 0 && len < ARCHIVE_URL_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* ---- one request ---- */

struct transfer {
    CURL *curl;
    struct archive_webdav_request *r;
};

/* Only the body of an answer with a wanted status is kept. */
static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    const struct transfer *t = ctx;
    struct archive_webdav_request *r = t->r;
    (void)size;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &r->status);
    if (r->out == NULL || (r->status != r->wanted[0] && r->status != r->wanted[1])) {
        r->dropped += n;
        return r->dropped > DROPPED_MAX ? 0 : n;
    }
    r->is_long = r->out->len + n > r->max;
    return !r->is_long && rd_buf_add(r->out, bytes, n) ? n : 0;
}

static size_t on_read(char *dst, size_t size, size_t n, void *ctx)
{
    struct archive_webdav_request *r = ctx;
    ssize_t got = pread(r->fd, dst, size * n, (off_t)r->sent);
    if (got < 0)
        return CURL_READFUNC_ABORT;
    r->sent += (uint64_t)got;
    return (size_t)got;
}

static int on_seek(void *ctx, curl_off_t offset, int origin)
{
    struct archive_webdav_request *r = ctx;
    r->sent = (uint64_t)offset;
    return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void set_login(const struct archive_webdav *s)
{
    CURL *c = s->remote.curl;
    if (s->user == NULL)
        return;
    curl_easy_setopt(c, CURLOPT_USERNAME, s->user);
    curl_easy_setopt(c, CURLOPT_PASSWORD, s->password);
    curl_easy_setopt(c, CURLOPT_HTTPAUTH, s->auth);
}

static void set_file(const struct archive_webdav *s, struct archive_webdav_request *r)
{
    CURL *c = s->remote.curl;
    r->sent = 0;
    curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(c, CURLOPT_READDATA, r);
    curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(c, CURLOPT_SEEKDATA, r);
    curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->size);
}

/* An empty value keeps libcurl from sending one of its own. */
static bool make_headers(const struct archive_webdav_request *r, struct curl_slist **ret,
                         struct rd_err *err)
{
    const char *const all[] = {
        "Expect:", r->type != NULL ? r->type : "Content-Type:", r->headers[0], r->headers[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!archive_web_add_header(ret, all[i] != NULL ? all[i] : ""))
            return rd_err_nomem(err, 0);
    return true;
}

static void note_answer(struct archive_webdav *s, struct archive_webdav_request *r, CURLcode code)
{
    const long basic = (long)CURLAUTH_BASIC, digest = (long)CURLAUTH_DIGEST;
    long asked = 0;
    curl_easy_getinfo(s->remote.curl, CURLINFO_RESPONSE_CODE, &r->status);
    curl_easy_getinfo(s->remote.curl, CURLINFO_HTTPAUTH_AVAIL, &asked);
    r->lost = archive_web_repeated(&s->remote, code) || r->lost;
    if (code == CURLE_OK && r->status != 401 && (asked & (basic | digest)) != 0)
        s->auth = (asked & digest) != 0 ? digest : basic;
}

/* False if the request cannot be prepared. */
static bool once(struct archive_webdav *s, struct archive_webdav_request *r, CURLcode *ret_code,
                 struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    char problem[CURL_ERROR_SIZE] = "";
    struct transfer transfer = {s->remote.curl, r};
    CURL *c = s->remote.curl;
    r->status = 0;
    r->dropped = 0;
    r->is_long = false;
    bool ok = make_headers(r, &headers, err);
    if (ok) {
        archive_remote_begin(&s->remote, r->url, "http,https", NULL, problem);
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
        const struct archive_web_sent sent = {r->method, r->body, headers, s->ca_file};
        archive_web_set_up(&s->remote, &sent, &r->head);
        set_login(s);
        if (r->size > 0)
            set_file(s, r);
        *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
        note_answer(s, r, *ret_code);
    }
    curl_slist_free_all(headers);
    return ok;
}

/* Whether another try may succeed: not while a disk is full, but after a lock. */
static bool passes(const struct archive_webdav_request *r, CURLcode code)
{
    return code != CURLE_ABORTED_BY_CALLBACK && code != CURLE_WRITE_ERROR && r->status != 507 &&
           (archive_web_passes(r->status, code) || r->status == 423);
}

bool archive_webdav_perform(struct archive_webdav *s, struct archive_webdav_request *r,
                            struct rd_err *err)
{
    struct archive_remote_retry retry = {0};
    size_t before = r->out != NULL ? r->out->len : 0;
    for (;;) {
        struct rd_err failed = {0};
        CURLcode code = CURLE_OK;
        if (r->out != NULL)
            r->out->len = before;
        if (!once(s, r, &code, &failed)) {
            rd_err_adopt(err, &failed);
            return false;
        }
        /* What was not read of an answer does not matter if its status is not a wanted one. */
        bool answered = code == CURLE_OK || (code == CURLE_WRITE_ERROR && r->dropped > 0);
        if (answered && !passes(r, CURLE_OK))
            return true;
        r->lost = true;
        if (!passes(r, answered ? CURLE_OK : code) || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return answered;
        }
    }
}

static const char *meaning(long status)
{
    return status == 401                    ? " (the user or the password is not accepted)"
           : status == 403                  ? " (not allowed)"
           : status == 405 || status == 501 ? " (it may not be a WebDAV server)"
           : status == 423                  ? " (locked)"
           : status == 507                  ? " (no space left)"
           : status >= 300 && status < 400  ? " (a redirection, which is not followed)"
                                            : "";
}

bool archive_webdav_fail(const struct archive_webdav *s, const struct archive_webdav_request *r,
                         struct rd_err *err)
{
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the server answered %s with status %ld%s",
               r->method, r->status, meaning(r->status));
    rd_err_origin(err, s->store.origin);
    return false;
}

/* ---- lists ---- */

static bool ask_list(struct archive_webdav *s, struct archive_webdav_request *r,
                     struct rd_buf *answer, struct rd_err *err)
{
    static const char body[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                               "<propfind xmlns=\"DAV:\"><prop><resourcetype/><getcontentlength/>"
                               "<getlastmodified/><getetag/></prop></propfind>\n";
    r->method = "PROPFIND";
    r->type = "Content-Type: application/xml; charset=utf-8";
    r->body = rd_slice_str(body);
    r->out = answer;
    r->wanted[0] = 207;
    r->max = LIST_MAX;
    rd_buf_reset(answer);
    bool ok = archive_webdav_perform(s, r, err);
    if (!ok && r->is_long)
        rd_err_doing(err, "a list of more than %d bytes", LIST_MAX);
    return ok;
}

/* A list that is not valid may have been cut, or be that of a folder that changed meanwhile. */
bool archive_webdav_look(struct archive_webdav *s, const char *path, unsigned depth,
                         struct archive_webdav_list *ret, bool *ret_missing, int64_t *ret_date_s,
                         struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct rd_buf answer = {0};
    struct archive_remote_retry retry = {0};
    struct archive_webdav_request r = {.url = url,
                                       .headers = {depth > 0 ? "Depth: 1" : "Depth: 0"}};
    *ret_missing = false;
    bool ok = archive_webdav_url(s, path, depth > 0 || path[0] == '\0', url, err);
    while (ok) {
        struct rd_err failed = {0};
        ok = ask_list(s, &r, &answer, err);
        *ret_missing = ok && r.status == 404;
        if (!ok || r.status != 207) {
            ok = ok && !*ret_missing && archive_webdav_fail(s, &r, err);
            break;
        }
        if (archive_webdav_parse(rd_buf_slice(&answer), path, ret, &failed))
            break;
        if (retry.n + 1 == LIST_TRIES || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            rd_err_origin(err, s->store.origin);
            ok = false;
        }
    }
    rd_buf_done(&answer);
    if (ret_date_s != NULL)
        *ret_date_s = r.head.date_s;
    return ok;
}

/* ---- changes ---- */

bool archive_webdav_delete(struct archive_webdav *s, const char *path, bool is_folder,
                           struct archive_webdav_request *r, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    *r = (struct archive_webdav_request){.method = "DELETE", .url = url};
    bool ok = archive_webdav_url(s, path, is_folder, url, err) && archive_webdav_perform(s, r, err);
    r->url = NULL;
    return ok;
}

/* RFC 4918 allows a path as the destination, which Apache 2.4 refuses. */
bool archive_webdav_move(struct archive_webdav *s, const char *from, const char *to, bool is_folder,
                         struct archive_webdav_request *r, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX], there[ARCHIVE_URL_MAX], header[ARCHIVE_URL_MAX + 20];
    *r = (struct archive_webdav_request){
        .method = "MOVE", .url = url, .headers = {"Overwrite: F", header}};
    bool ok = archive_webdav_url(s, from, is_folder, url, err) &&
              archive_webdav_url(s, to, is_folder, there, err);
    if (ok) {
        snprintf(header, sizeof header, "Destination: %s", there);
        ok = archive_webdav_perform(s, r, err);
    }
    r->url = r->headers[1] = NULL;
    return ok;
}

static bool ask_make(struct archive_webdav *s, const char *path, struct archive_webdav_request *r,
                     struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    *r = (struct archive_webdav_request){.method = "MKCOL", .url = url};
    bool ok = archive_webdav_url(s, path, true, url, err) && archive_webdav_perform(s, r, err);
    r->url = NULL;
    return ok;
}

static bool is_folder(struct archive_webdav *s, const char *path)
{
    struct archive_webdav_list list = {.n = 0};
    bool missing;
    bool ret = archive_webdav_look(s, path, 0, &list, &missing, NULL, NULL) && list.self.is_folder;
    archive_webdav_list_done(&list);
    return ret;
}

/* 201: it was made. 409: the folder above is missing, for which some servers say 404. Everything
 * else, such as 405, may mean that it exists. */
bool archive_webdav_make(struct archive_webdav *s, const char *path, struct rd_err *err)
{
    char above[ARCHIVE_WEBDAV_PATH_MAX];
    const char *name;
    struct archive_webdav_request r;
    if (!ask_make(s, path, &r, err))
        return false;
    if ((r.status == 409 || r.status == 404) && archive_webdav_above(path, above, &name) &&
        above[0] != '\0') {
        if (!archive_webdav_make(s, above, err) || !ask_make(s, path, &r, err))
            return false;
    }
    return r.status == 201 || is_folder(s, path) || archive_webdav_fail(s, &r, err);
}
