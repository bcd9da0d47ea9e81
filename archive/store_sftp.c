#include "archive/store_sftp.h"

#include "archive/host_keys.h"
#include "archive/ranges.h"
#include "archive/remote.h"
#include "base/mem.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { URL_MAX = ARCHIVE_URL_MAX, LIST_MAX = 64 * 1024 * 1024, DEPTH_MAX = 8, SMALL_MAX = 65536 };

struct sftp {
    struct archive_store store;
    struct archive_remote remote;
    char host[URL_MAX];   /* the URL up to the path */
    char folder[URL_MAX]; /* the path, with a slash at both ends */
    char *key_file, *known_hosts;
    char host_keys[ARCHIVE_HOST_KEYS_PATH]; /* known_hosts in another order */
    int host_keys_fd;                       /* -1: not there */
    size_t chunk;
};

static struct sftp *sftp_of(struct archive_store *store)
{
    return (struct sftp *)store;
}

/* ---- a request ---- */

struct request {
    const char *path; /* relative to the folder; with a slash at its end: list this folder */
    const char *range;
    struct rd_slice body; /* to be written */
    bool upload, append;
    bool fresh;              /* on a new connection */
    const char *commands[3]; /* instead of reading or writing */
    struct rd_buf *out;
    size_t max; /* of out */
    size_t sent;
    bool timed;         /* asks for: */
    int64_t modified_s; /* when the file was changed; -1: unknown */
    bool no_body;       /* and for nothing else */
    long connections;   /* that had to be made */
};

static size_t on_read(char *dst, size_t size, size_t n, void *ctx)
{
    struct request *r = ctx;
    size_t left = r->body.len - r->sent, cap = size * n;
    size_t len = left < cap ? left : cap;
    if (len > 0)
        memcpy(dst, r->body.ptr + r->sent, len);
    r->sent += len;
    return len;
}

static void set_host(struct sftp *s)
{
    CURL *c = s->remote.curl;
    curl_easy_setopt(c, CURLOPT_SSH_AUTH_TYPES,
                     (long)(s->key_file != NULL ? CURLSSH_AUTH_PUBLICKEY
                                                : CURLSSH_AUTH_PUBLICKEY | CURLSSH_AUTH_AGENT));
    if (s->key_file != NULL)
        curl_easy_setopt(c, CURLOPT_SSH_PRIVATE_KEYFILE, s->key_file);
    if (s->known_hosts != NULL)
        curl_easy_setopt(c, CURLOPT_SSH_KNOWNHOSTS,
                         s->host_keys_fd >= 0 ? s->host_keys : s->known_hosts);
}

static void set_transfer(struct sftp *s, struct request *r, struct curl_slist *commands)
{
    CURL *c = s->remote.curl;
    if (r->range != NULL)
        curl_easy_setopt(c, CURLOPT_RANGE, r->range);
    if (r->fresh)
        curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
    if (commands != NULL)
        curl_easy_setopt(c, CURLOPT_QUOTE, commands);
    if (commands != NULL || r->no_body)
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    if (r->timed)
        curl_easy_setopt(c, CURLOPT_FILETIME, 1L);
    if (!r->upload)
        return;
    r->sent = 0;
    curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(c, CURLOPT_READDATA, r);
    curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body.len);
    curl_easy_setopt(c, CURLOPT_APPEND, (long)r->append);
    curl_easy_setopt(c, CURLOPT_FTP_CREATE_MISSING_DIRS, 1L);
    curl_easy_setopt(c, CURLOPT_NEW_FILE_PERMS, 0600L);
    curl_easy_setopt(c, CURLOPT_NEW_DIRECTORY_PERMS, 0700L);
}

static bool make_url(const struct sftp *s, const char *path, char ret[URL_MAX], struct rd_err *err)
{
    int len = snprintf(ret, URL_MAX, "%s%s%s", s->host, s->folder, path);
    return (len > 0 && len < URL_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* False if the request cannot be prepared. */
static bool once(struct sftp *s, struct request *r, CURLcode *ret_code, struct rd_err *err)
{
    char url[URL_MAX], problem[CURL_ERROR_SIZE] = "";
    struct curl_slist *commands = NULL;
    if (!make_url(s, r->path, url, err))
        return false;
    for (size_t i = 0; i < 3 && r->commands[i] != NULL; i++) {
        struct curl_slist *more = curl_slist_append(commands, r->commands[i]);
        if (more == NULL) {
            curl_slist_free_all(commands);
            return rd_err_nomem(err, 0);
        }
        commands = more;
    }
    struct archive_remote_body body = {r->out, r->max};
    archive_remote_begin(&s->remote, url, "sftp", &body, problem);
    set_host(s);
    set_transfer(s, r, commands);
    *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
    curl_off_t modified = -1;
    if (r->timed && *ret_code == CURLE_OK)
        curl_easy_getinfo(s->remote.curl, CURLINFO_FILETIME_T, &modified);
    r->modified_s = modified;
    curl_easy_getinfo(s->remote.curl, CURLINFO_NUM_CONNECTS, &r->connections);
    if (strstr(problem, "exchange encryption keys") != NULL) {
        *ret_code = CURLE_PEER_FAILED_VERIFICATION; /* not for a while only */
        rd_err_doing(err, "agreeing with the host on a type of host key: known_hosts may lack the "
                          "host's ed25519 or ECDSA key (ssh-keyscan -t ed25519,ecdsa HOST)");
    }
    curl_slist_free_all(commands);
    return true;
}

/* Whether another attempt may succeed. */
static bool passes(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT ||
           code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_SSH ||
           code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_UPLOAD_FAILED ||
           code == CURLE_GOT_NOTHING || code == CURLE_FAILED_INIT;
}

/* Repeats a request after temporary failures. *ret_code is the last result; false with err if it is
 * an error. Requests that append are not repeated here. */
static bool perform(struct sftp *s, struct request *r, CURLcode *ret_code, struct rd_err *err)
{
    struct archive_remote_retry retry = {0};
    size_t before = r->out != NULL ? r->out->len : 0;
    for (;;) {
        struct rd_err failed = {0};
        if (r->out != NULL)
            r->out->len = before;
        *ret_code = CURLE_OK;
        if (once(s, r, ret_code, &failed) && *ret_code == CURLE_OK)
            return true;
        if (*ret_code == CURLE_OK || !passes(*ret_code) || r->append ||
            !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return false;
        }
    }
}

/* ---- lists ---- */

struct entry {
    char kind; /* '-' a file, 'd' a folder; others are ignored */
    uint64_t size;
    struct rd_slice name;
};

/* Parses a line in the format of `ls -l`: mode, links, owner, group, size, month, day, time or
 * year, name. */
static bool parse_line(struct rd_slice line, struct entry *ret)
{
    struct rd_slice field = {0};
    for (unsigned i = 0; i < 8; i++) {
        while (line.len > 0 && line.ptr[0] == ' ')
            line = rd_slice(line.ptr + 1, line.len - 1);
        const uint8_t *end = line.len > 0 ? memchr(line.ptr, ' ', line.len) : NULL;
        if (end == NULL)
            return false;
        field = rd_slice(line.ptr, (size_t)(end - line.ptr));
        line = rd_slice(end, line.len - field.len);
        if (i == 0)
            ret->kind = (char)field.ptr[0];
        bool sized = ret->kind == '-' || ret->kind == 'd'; /* devices have two numbers */
        if (i == 4 && sized && !rd_num_get_u64(field, &ret->size))
            return false;
    }
    ret->name = rd_slice(line.ptr + 1, line.len - 1);
    return ret->name.len > 0;
}

/* Cuts the next line off *text. False at the end, and with err: a line that is not understood would
 * be an object that is not there. */
static bool next_entry(struct rd_slice *text, struct entry *ret, struct rd_err *err)
{
    while (text->len > 0) {
        const uint8_t *lf = memchr(text->ptr, '\n', text->len);
        size_t len = lf != NULL ? (size_t)(lf - text->ptr) : text->len;
        struct rd_slice line = rd_slice(text->ptr, len);
        *text = rd_slice(text->ptr + len + (lf != NULL), text->len - len - (lf != NULL));
        if (!parse_line(line, ret)) {
            char quoted[100];
            rd_err_quote(quoted, sizeof quoted, line);
            return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "the host lists files in an unknown form: %s", quoted);
        }
        if (!rd_slice_is(ret->name, ".") && !rd_slice_is(ret->name, ".."))
            return true;
    }
    return false;
}

/* Whether the connection of the last request lives: the host answers on it once more. */
static bool is_connected(struct sftp *s, const char *path)
{
    struct request r = {.path = path, .timed = true, .no_body = true};
    CURLcode code;
    return once(s, &r, &code, NULL) && code == CURLE_OK && r.modified_s >= 0 && r.connections == 0;
}

/* One answer, which is complete if it succeeds. Otherwise *ret_missing may say that there is no
 * such folder. libcurl 8.14 reports a connection that ends inside a list as its regular end if the
 * status of the last answer was "ok". */
static bool ask_folder(struct sftp *s, const char *folder, bool fresh, struct rd_buf *ret,
                       bool *ret_missing, struct rd_err *err)
{
    char path[ARCHIVE_NAME_MAX + 2];
    struct request r = {.path = path, .out = ret, .max = LIST_MAX, .fresh = fresh};
    struct archive_remote_retry retry = {0};
    size_t before = ret->len;
    CURLcode code;
    snprintf(path, sizeof path, "%s%s", folder, folder[0] != '\0' ? "/" : "");
    *ret_missing = false;
    bool ok = perform(s, &r, &code, err);
    while (ok && !is_connected(s, path)) {
        if (!archive_remote_again(&s->remote, &retry))
            return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                              "the connection ended while the host listed a folder");
        ret->len = before;
        ok = perform(s, &r, &code, err);
    }
    *ret_missing = !ok && code == CURLE_REMOTE_FILE_NOT_FOUND;
    return ok;
}

static bool lists(const struct rd_buf *text, const char *name, bool *ret, struct rd_err *err)
{
    struct rd_slice rest = rd_buf_slice(text);
    struct rd_err wrong = {0};
    struct entry entry;
    *ret = false;
    while (!*ret && next_entry(&rest, &entry, &wrong))
        *ret = rd_slice_is(entry.name, name);
    rd_err_adopt(err, &wrong);
    return wrong.code == RD_ERR_OK;
}

/* When a connection ends, libssh2 still has the status of an earlier answer, and curl reports it:
 * "no such file" proves nothing unless the connection is new. But an answer that succeeds is
 * complete, so the folder above proves that the folder is not there. */
static bool is_absent(struct sftp *s, const char *folder, bool *ret, struct rd_err *err)
{
    char above[ARCHIVE_NAME_MAX];
    const char *slash = strrchr(folder, '/');
    const char *name = slash != NULL ? slash + 1 : folder;
    bool missing, there = false, top = folder[0] == '\0';
    struct rd_err failed = {0};
    struct rd_buf text = {0};
    snprintf(above, sizeof above, "%.*s", slash != NULL ? (int)(slash - folder) : 0, folder);
    bool ok = ask_folder(s, above, top, &text, &missing, &failed);
    *ret = top && missing;
    if (ok && !top) {
        ok = lists(&text, name, &there, err);
        *ret = !there;
    } else if (missing) {
        ok = top || is_absent(s, above, ret, err);
    }
    if (!ok)
        rd_err_adopt(err, &failed);
    rd_buf_done(&text);
    return ok;
}

/* Lists the folder; a folder that does not exist is empty. */
static bool read_folder(struct sftp *s, const char *folder, struct rd_buf *ret, struct rd_err *err)
{
    struct archive_remote_retry retry = {0};
    size_t before = ret->len;
    for (;;) {
        struct rd_err failed = {0};
        bool missing, absent = false;
        if (ask_folder(s, folder, retry.n > 0, ret, &missing, &failed))
            return true;
        ret->len = before;
        if (missing && is_absent(s, folder, &absent, &failed) && absent)
            return true;
        if (!missing || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return false;
        }
    }
}

struct walk {
    struct sftp *s;
    archive_each_fn *each;
    void *arg;
    struct rd_err *err;
};

static bool walk_folder(const struct walk *walk, const char *folder, unsigned depth)
{
    struct rd_buf text = {0};
    struct entry entry;
    struct rd_err wrong = {0};
    bool ok = read_folder(walk->s, folder, &text, walk->err);
    struct rd_slice rest = rd_buf_slice(&text);
    while (ok && next_entry(&rest, &entry, &wrong)) {
        char name[ARCHIVE_NAME_MAX];
        int len = snprintf(name, sizeof name, "%s/%.*s", folder, (int)entry.name.len,
                           (const char *)entry.name.ptr);
        if (len < 0 || (size_t)len >= sizeof name)
            continue;
        const struct archive_listed object = {.name = name, .size = entry.size};
        if (entry.kind == '-')
            walk->each(walk->arg, &object);
        else if (entry.kind == 'd' && depth < DEPTH_MAX)
            ok = walk_folder(walk, name, depth + 1);
    }
    rd_buf_done(&text);
    rd_err_adopt(walk->err, &wrong);
    return ok && wrong.code == RD_ERR_OK;
}

static bool sftp_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                      void *arg, struct rd_err *err)
{
    const struct walk walk = {sftp_of(store), each, arg, err};
    return walk_folder(&walk, folder, 0);
}

static bool sftp_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                      struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct rd_buf text = {0};
    struct entry entry;
    snprintf(folder, sizeof folder, "%s", name);
    char *slash = strrchr(folder, '/');
    const char *last = slash != NULL ? name + (slash - folder) + 1 : name;
    *(slash != NULL ? slash : folder) = '\0';
    struct rd_err wrong = {0};
    *ret = (struct archive_object){0};
    bool ok = read_folder(sftp_of(store), folder, &text, err);
    struct rd_slice rest = rd_buf_slice(&text);
    while (ok && !ret->there && next_entry(&rest, &entry, &wrong))
        if (entry.kind == '-' && rd_slice_is(entry.name, last))
            *ret = (struct archive_object){.there = true, .size = entry.size};
    rd_buf_done(&text);
    rd_err_adopt(err, &wrong);
    return ok && wrong.code == RD_ERR_OK;
}

/* ---- put ---- */

struct put {
    struct sftp *s;
    char name[ARCHIVE_NAME_MAX];
    char temp[ARCHIVE_NAME_MAX + 4];
    uint64_t sent; /* bytes that have arrived */
    bool begun;
    struct rd_buf chunk;
};

/* Appends the rest of the chunk after a failure: the bytes that have not arrived. */
static bool find_place(struct put *put, size_t *at, struct rd_err *err)
{
    struct archive_object object;
    if (!sftp_stat(&put->s->store, put->temp, &object, err))
        return false;
    uint64_t size = object.there ? object.size : 0;
    if (size < put->sent || size > put->sent + put->chunk.len)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          "the object has a different size than was written");
    *at = (size_t)(size - put->sent);
    return true;
}

static bool send_chunk(struct put *put, struct rd_err *err)
{
    size_t at = 0;
    struct archive_remote_retry retry = {0};
    for (;;) {
        struct request r = {.path = put->temp, .upload = true, .append = put->sent + at > 0};
        struct rd_err failed = {0};
        CURLcode code;
        r.body = rd_slice(put->chunk.ptr + at, put->chunk.len - at);
        if (perform(put->s, &r, &code, &failed))
            break;
        if (!passes(code) || !archive_remote_again(&put->s->remote, &retry) ||
            !find_place(put, &at, &failed)) {
            rd_err_adopt(err, &failed);
            return false;
        }
    }
    put->begun = true;
    put->sent += put->chunk.len;
    rd_buf_reset(&put->chunk);
    return true;
}

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0)
        if ((put->chunk.len == put->s->chunk && !send_chunk(put, err)) ||
            !archive_remote_fill(&put->chunk, put->s->chunk, &ptr, &len, err))
            return false;
    return true;
}

static bool run_commands(struct sftp *s, const char *one, const char *two, struct rd_err *err)
{
    struct request r = {.path = "", .commands = {one, two}};
    CURLcode code;
    return perform(s, &r, &code, err);
}

/* The answer to a rename may be lost: then the object exists under the new name only. */
static bool give_name(struct put *put, struct rd_err *err)
{
    char command[4 * URL_MAX];
    struct archive_object named, temp;
    struct rd_err failed = {0};
    const char *folder = put->s->folder;
    snprintf(command, sizeof command, "rename \"%s%s\" \"%s%s\"", folder, put->temp, folder,
             put->name);
    if (run_commands(put->s, command, NULL, &failed))
        return true;
    if (!sftp_stat(&put->s->store, put->name, &named, NULL) ||
        !sftp_stat(&put->s->store, put->temp, &temp, NULL)) {
        rd_err_adopt(err, &failed);
        return archive_store_set_unknown(err);
    }
    if (named.there && temp.there)
        return archive_store_set_exists(err, put->name);
    rd_err_adopt(err, &failed);
    rd_err_origin(err, put->name);
    return temp.there ? false : archive_store_set_unknown(err);
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    bool ok = true;
    if (commit)
        ok = ((put->begun && put->chunk.len == 0) || send_chunk(put, err)) && give_name(put, err);
    if ((!commit || !ok) && (put->begun || put->chunk.len > 0))
        put->s->store.ops->remove(&put->s->store, put->temp, NULL);
    rd_buf_done(&put->chunk);
    rd_free(put);
    return ok;
}

static bool sftp_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                     struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, NULL, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->s = sftp_of(store);
    snprintf(put->name, sizeof put->name, "%s", name);
    snprintf(put->temp, sizeof put->temp, "%s.new", put->name);
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- get and remove ---- */

static bool get_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                      struct rd_buf *ret, struct rd_err *err)
{
    char range[64];
    struct request r = {.path = name, .range = range, .out = ret, .max = len};
    size_t before = ret->len;
    CURLcode code;
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
    if (!perform(sftp_of(store), &r, &code, err))
        return false;
    return ret->len - before == len ||
           rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the host sent only part of a range");
}

static bool sftp_get(struct archive_store *store, const char *name, struct rd_src **ret,
                     struct rd_err *err)
{
    struct archive_object object;
    if (!sftp_stat(store, name, &object, err))
        return false;
    if (object.there)
        return archive_ranges_open(ret, store, name, object.size, get_range, err);
    return archive_store_set_missing(err, name);
}

/* The folder of an object is removed with its last object. */
static bool sftp_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    char remove[2 * URL_MAX], folder[2 * URL_MAX];
    struct sftp *s = sftp_of(store);
    struct archive_object object;
    const char *slash = strrchr(name, '/');
    if (!sftp_stat(store, name, &object, err))
        return false;
    if (!object.there)
        return true;
    snprintf(remove, sizeof remove, "rm \"%s%s\"", s->folder, name);
    snprintf(folder, sizeof folder, "*rmdir \"%s%.*s\"", s->folder,
             slash != NULL ? (int)(slash - name) : 0, name);
    return run_commands(s, remove, slash != NULL ? folder : NULL, err);
}

/* ---- times ---- */

/* When a small file was changed, by the clock of the host. */
static bool read_time(struct sftp *s, const char *path, int64_t *ret_s, struct rd_err *err)
{
    struct rd_buf out = {0};
    struct request r = {.path = path, .out = &out, .max = SMALL_MAX, .timed = true};
    CURLcode code;
    bool ok = perform(s, &r, &code, err);
    rd_buf_done(&out);
    if (ok && r.modified_s < 0)
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the host reports no time");
    *ret_s = r.modified_s;
    return ok;
}

/* Writes a file to learn the time. Another process may write and remove the same one. */
static bool sftp_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                     struct rd_err *err)
{
    struct sftp *s = sftp_of(store);
    char clock[ARCHIVE_NAME_MAX + 10], remove[2 * URL_MAX];
    int64_t then_s, now_s;
    CURLcode code;
    snprintf(clock, sizeof clock, "%s.clock", name);
    struct request r = {.path = clock, .upload = true, .body = rd_slice_str("time\n")};
    if (!read_time(s, name, &then_s, err) || !perform(s, &r, &code, err))
        return false;
    bool ok = read_time(s, clock, &now_s, err);
    snprintf(remove, sizeof remove, "*rm \"%s%s\"", s->folder, clock);
    run_commands(s, remove, NULL, NULL);
    if (!ok || now_s < then_s)
        return ok && rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the host reports no time");
    *ret_ms = (now_s - then_s) * 1000;
    return true;
}

/* ---- the store ---- */

static void sftp_free(struct sftp *s)
{
    archive_remote_close(&s->remote);
    if (s->host_keys_fd >= 0)
        close(s->host_keys_fd);
    rd_free(s->key_file);
    rd_free(s->known_hosts);
    rd_free(s);
}

static void sftp_close(struct archive_store *store)
{
    sftp_free(sftp_of(store));
}

static bool set_place(struct sftp *s, const char *url, struct rd_err *err)
{
    const char *host = strstr(url, "://");
    const char *path = host != NULL ? strchr(host + 3, '/') : NULL;
    const char *at = host != NULL ? strchr(host + 3, '@') : NULL;
    if (path == NULL || path[1] == '\0' || strlen(url) >= URL_MAX / 2 ||
        strpbrk(path, "\"\\?#%") != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "an SFTP repository must be sftp://USER@HOST:PORT/PATH");
    if (at != NULL && at < path && memchr(host + 3, ':', (size_t)(at - host - 3)) != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "an SFTP URL cannot contain a password: use a key");
    size_t len = strlen(path);
    snprintf(s->host, sizeof s->host, "%.*s", (int)(path - url), url);
    snprintf(s->folder, sizeof s->folder, "%s%s", path, path[len - 1] == '/' ? "" : "/");
    snprintf(s->store.origin, sizeof s->store.origin, "%s", url);
    return true;
}

static bool set_rest(struct sftp *s, const struct archive_sftp_opts *opts, struct rd_err *err)
{
    s->chunk = opts->chunk != 0 ? opts->chunk : ARCHIVE_SFTP_CHUNK;
    if (opts->known_hosts != NULL)
        s->host_keys_fd = archive_host_keys_open(opts->known_hosts, s->host_keys);
    return archive_remote_copy(&s->key_file, opts->key_file, err) &&
           archive_remote_copy(&s->known_hosts, opts->known_hosts, err) &&
           archive_remote_open(&s->remote, opts->tries, opts->wait_ms, opts->rate, opts->cancel,
                               err);
}

bool archive_store_open_sftp(struct archive_store **ret, const struct archive_sftp_opts *opts,
                             struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .remote = true,
        .put = sftp_put,
        .get = sftp_get,
        .range = get_range,
        .stat = sftp_stat,
        .list = sftp_list,
        .remove = sftp_remove,
        .age = sftp_age,
        .close = sftp_close,
    };
    struct sftp *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    s->store.ops = &ops;
    s->host_keys_fd = -1;
    if (!set_place(s, opts->url, err) || !set_rest(s, opts, err)) {
        sftp_free(s);
        return false;
    }
    *ret = &s->store;
    return true;
}
