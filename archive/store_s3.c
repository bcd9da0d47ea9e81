#include "archive/store_s3.h"

#include "archive/lock.h"
#include "archive/ranges.h"
#include "archive/remote.h"
#include "archive/s3_answer.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    URL_MAX = ARCHIVE_URL_MAX,
    ANSWER_MAX = 8 * 1024 * 1024,
    PARTS_MAX = 10000,
    TOKEN_MAX = 1024,
    ETAG_MAX = 128
};

struct s3 {
    struct archive_store store;
    struct archive_remote remote;
    char base[URL_MAX];   /* of all objects, with the slash at its end */
    char bucket[URL_MAX]; /* of the bucket itself */
    char prefix[ARCHIVE_NAME_MAX];
    char userpwd[512];
    char sigv4[100];
    char token[ARCHIVE_S3_TOKEN_MAX + 40]; /* the header with the session's token, or "" */
    char sse[100];                         /* the header, or "" */
    char *ca_file;
    const struct archive_s3_keys *(*keys)(void *ctx, bool rejected, struct rd_err *err);
    void (*keys_done)(void *ctx);
    void *keys_ctx;
    size_t part_size;
    bool (*gone)(const char *owner);
    struct archive_lock lock;
};

static struct s3 *s3_of(struct archive_store *store)
{
    return (struct s3 *)store;
}

/* ---- a request ---- */

struct request {
    const char *method;
    const char *url;
    struct rd_slice body;
    const char *header; /* an additional one, or NULL */
    bool encrypt;       /* begins an object: send the header for encryption */
    struct rd_buf *out;
    size_t max; /* of out */
    long status;
    uint64_t length;     /* Content-Length of the answer */
    char etag[ETAG_MAX]; /* ETag of the answer */
};

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct request *r = ctx;
    static const char etag[] = "etag:", length[] = "content-length:";
    size_t len = n;
    (void)size;
    while (len > 0 && (bytes[len - 1] == '\r' || bytes[len - 1] == '\n' || bytes[len - 1] == ' '))
        len--;
    if (len > sizeof etag && strncasecmp(bytes, etag, sizeof etag - 1) == 0) {
        const char *value = bytes + sizeof etag - 1;
        while (*value == ' ')
            value++;
        size_t value_len = len - (size_t)(value - bytes);
        snprintf(r->etag, sizeof r->etag, "%.*s", (int)value_len, value);
    } else if (len > sizeof length && strncasecmp(bytes, length, sizeof length - 1) == 0) {
        const char *value = bytes + sizeof length - 1;
        while (*value == ' ')
            value++;
        rd_num_get_u64(rd_slice(value, len - (size_t)(value - bytes)), &r->length);
    }
    return n;
}

static bool add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *more = header[0] != '\0' ? curl_slist_append(*list, header) : *list;
    if (more != NULL || header[0] == '\0')
        *list = more;
    return more != NULL || header[0] == '\0';
}

/* S3 requires the digest of the body as a header. libcurl before 8.1 does not add it, but signs the
 * one that is given. */
static bool add_digest(const struct request *r, struct curl_slist **list)
{
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX], header[sizeof "x-amz-content-sha256: " + RD_DIGEST_HEX];
    if (!rd_digest_of(RD_DIGEST_SHA256, r->body, sum, NULL))
        return false;
    snprintf(header, sizeof header, "x-amz-content-sha256: %s",
             rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256))));
    return add_header(list, header);
}

static bool set_headers(const struct s3 *s, const struct request *r, struct curl_slist **list)
{
    return add_header(list, "Expect:") && add_digest(r, list) &&
           add_header(list, r->body.len > 0 ? "Content-Type: application/octet-stream"
                                            : "Content-Type:") &&
           add_header(list, r->header != NULL ? r->header : "") && add_header(list, s->token) &&
           add_header(list, r->encrypt ? s->sse : "");
}

static void set_up(struct s3 *s, struct request *r, struct curl_slist *headers)
{
    CURL *c = s->remote.curl;
    bool head = strcmp(r->method, "HEAD") == 0, get = strcmp(r->method, "GET") == 0;
    curl_easy_setopt(c, CURLOPT_AWS_SIGV4, s->sigv4);
    curl_easy_setopt(c, CURLOPT_USERPWD, s->userpwd);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    if (s->ca_file != NULL)
        curl_easy_setopt(c, CURLOPT_CAINFO, s->ca_file);
    if (head) {
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    } else if (!get) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body.len > 0 ? (const char *)r->body.ptr : "");
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
    }
}

static bool refused(const struct s3 *s, const struct request *r, struct rd_err *err)
{
    archive_s3_refused(rd_buf_slice(r->out), r->method, r->status, err);
    rd_err_origin(err, s->store.origin);
    return false;
}

static bool passes(const struct request *r, CURLcode code)
{
    if (code != CURLE_OK)
        return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
               code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL;
    return r->status == 429 || r->status == 408 || r->status == 409 || r->status >= 500;
}

static bool fits(int len, size_t size, struct rd_err *err)
{
    return (len > 0 && (size_t)len < size) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a setting of S3 is too long");
}

static bool set_login(struct s3 *s, const char *access, const char *secret, const char *token,
                      struct rd_err *err)
{
    s->token[0] = '\0';
    return fits(snprintf(s->userpwd, sizeof s->userpwd, "%s:%s", access, secret), sizeof s->userpwd,
                err) &&
           (token == NULL || token[0] == '\0' ||
            fits(snprintf(s->token, sizeof s->token, "x-amz-security-token: %s", token),
                 sizeof s->token, err));
}

/* The keys of a platform change while the store is open. */
static bool take_keys(struct s3 *s, bool rejected, struct rd_err *err)
{
    if (s->keys == NULL)
        return true;
    const struct archive_s3_keys *keys = s->keys(s->keys_ctx, rejected, err);
    return keys != NULL && set_login(s, keys->access, keys->secret, keys->token, err);
}

/* Whether the store refused the keys, and new ones were obtained. */
static bool keys_changed(struct s3 *s, const struct request *r)
{
    char before[sizeof s->userpwd];
    if (s->keys == NULL || (r->status != 403 && r->status != 400 && r->status != 401))
        return false;
    memcpy(before, s->userpwd, sizeof before);
    bool changed = take_keys(s, true, NULL) && strcmp(before, s->userpwd) != 0;
    explicit_bzero(before, sizeof before);
    return changed;
}

static bool once(struct s3 *s, struct request *r, CURLcode *ret_code, struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    char problem[CURL_ERROR_SIZE] = "";
    r->status = 0;
    r->length = 0;
    r->etag[0] = '\0';
    bool ok = take_keys(s, false, err) && (set_headers(s, r, &headers) || rd_err_nomem(err, 0));
    if (ok) {
        struct archive_remote_body body = {r->out, r->max};
        archive_remote_begin(&s->remote, r->url, "http,https", &body, problem);
        set_up(s, r, headers);
        *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
        curl_easy_getinfo(s->remote.curl, CURLINFO_RESPONSE_CODE, &r->status);
    }
    curl_slist_free_all(headers);
    return ok;
}

/* Retries after temporary failures. Returns false if the host does not answer. Otherwise r->status
 * is the status of the response, and r->out holds its body. */
static bool perform(struct s3 *s, struct request *r, struct rd_err *err)
{
    struct archive_remote_retry retry = {0};
    bool renewed = false;
    size_t before = r->out->len;
    for (;;) {
        struct rd_err failed = {0};
        CURLcode code = CURLE_OK;
        r->out->len = before;
        if (!once(s, r, &code, &failed)) {
            rd_err_adopt(err, &failed);
            return false;
        }
        if (code == CURLE_OK && !renewed && keys_changed(s, r)) {
            renewed = true;
            continue;
        }
        if (code == CURLE_OK && !passes(r, code))
            return true;
        if (!passes(r, code) || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return code == CURLE_OK;
        }
    }
}

/* A request whose answer is not needed. Any status other than 2xx is an error, except 404 if it is
 * allowed. */
static bool simple(struct s3 *s, struct request *r, bool missing_ok, struct rd_err *err)
{
    struct rd_buf none = {0};
    bool own = r->out == NULL;
    if (own) {
        r->out = &none;
        r->max = ANSWER_MAX;
    }
    bool ok = perform(s, r, err);
    if (ok && (r->status < 200 || r->status > 299) && !(missing_ok && r->status == 404))
        ok = refused(s, r, err);
    if (own)
        r->out = NULL;
    rd_buf_done(&none);
    return ok;
}

static bool object_url(const struct s3 *s, const char *name, const char *query, char ret[URL_MAX],
                       struct rd_err *err)
{
    int len =
        snprintf(ret, URL_MAX, "%s%s%s%s%s%s", s->base, s->prefix, s->prefix[0] != '\0' ? "/" : "",
                 name, query != NULL ? "?" : "", query != NULL ? query : "");
    return (len > 0 && len < URL_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

/* ---- put ---- */

struct put {
    struct s3 *s;
    char name[ARCHIVE_NAME_MAX];
    char upload[TOKEN_MAX]; /* the id of the upload, escaped; "": not begun */
    struct rd_buf part;
    char (*etags)[ETAG_MAX];
    size_t n_parts;
};

static bool begin_upload(struct put *put, struct rd_err *err)
{
    char url[URL_MAX];
    struct rd_buf answer = {0};
    struct request r = {
        .method = "POST", .url = url, .encrypt = true, .out = &answer, .max = ANSWER_MAX};
    bool ok = object_url(put->s, put->name, "uploads=", url, err) && simple(put->s, &r, false, err);
    if (ok) {
        struct rd_slice id = archive_s3_text(rd_buf_slice(&answer), "UploadId");
        char *text = curl_easy_escape(put->s->remote.curl, (const char *)id.ptr, (int)id.len);
        ok = id.len > 0 && text != NULL && strlen(text) < sizeof put->upload;
        if (ok)
            snprintf(put->upload, sizeof put->upload, "%s", text);
        else
            rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store returned no upload id");
        curl_free(text);
    }
    rd_buf_done(&answer);
    return ok;
}

static bool send_part(struct put *put, struct rd_err *err)
{
    char url[URL_MAX], query[TOKEN_MAX + 64];
    struct request r = {.method = "PUT", .url = url, .body = rd_buf_slice(&put->part)};
    if (put->upload[0] == '\0' && !begin_upload(put, err))
        return false;
    if (put->n_parts == PARTS_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "an object has more than %d parts",
                          PARTS_MAX);
    void *etags = rd_realloc(put->etags, (put->n_parts + 1) * sizeof *put->etags);
    if (etags == NULL)
        return rd_err_nomem(err, sizeof *put->etags);
    put->etags = etags;
    snprintf(query, sizeof query, "partNumber=%zu&uploadId=%s", put->n_parts + 1, put->upload);
    if (!object_url(put->s, put->name, query, url, err) || !simple(put->s, &r, false, err))
        return false;
    memcpy(put->etags[put->n_parts++], r.etag, ETAG_MAX);
    rd_buf_reset(&put->part);
    return true;
}

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0)
        if ((put->part.len == put->s->part_size && !send_part(put, err)) ||
            !archive_remote_fill(&put->part, put->s->part_size, &ptr, &len, err))
            return false;
    return true;
}

static bool complete(struct put *put, struct rd_err *err)
{
    char url[URL_MAX], query[TOKEN_MAX + 64];
    struct rd_buf xml = {0}, answer = {0};
    struct request r = {.method = "POST", .url = url, .out = &answer, .max = ANSWER_MAX};
    bool ok = rd_buf_printf(&xml, "<CompleteMultipartUpload>");
    for (size_t i = 0; ok && i < put->n_parts; i++)
        ok = rd_buf_printf(&xml, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
                           put->etags[i]);
    ok = (ok && rd_buf_printf(&xml, "</CompleteMultipartUpload>")) || rd_err_nomem(err, xml.len);
    snprintf(query, sizeof query, "uploadId=%s", put->upload);
    r.body = rd_buf_slice(&xml);
    ok = ok && object_url(put->s, put->name, query, url, err) && simple(put->s, &r, false, err);
    /* A failure may be reported after a while, with status 200. */
    if (ok && memmem(answer.ptr, answer.len, "<Error>", 7) != NULL)
        ok = refused(put->s, &r, err);
    if (ok)
        put->upload[0] = '\0';
    rd_buf_done(&xml);
    rd_buf_done(&answer);
    return ok;
}

static bool put_whole(struct put *put, struct rd_err *err)
{
    char url[URL_MAX];
    struct rd_buf answer = {0};
    struct request r = {.method = "PUT",
                        .url = url,
                        .body = rd_buf_slice(&put->part),
                        .header = "If-None-Match: *",
                        .encrypt = true,
                        .out = &answer,
                        .max = ANSWER_MAX};
    bool ok = object_url(put->s, put->name, NULL, url, err) && perform(put->s, &r, err);
    if (ok && r.status == 412) {
        ok = archive_store_set_exists(err, put->name);
    } else if (ok && (r.status < 200 || r.status > 299)) {
        ok = refused(put->s, &r, err);
    }
    rd_buf_done(&answer);
    return ok;
}

static void drop_upload(struct put *put)
{
    char url[URL_MAX], query[TOKEN_MAX + 64];
    struct request r = {.method = "DELETE", .url = url};
    if (put->upload[0] == '\0')
        return;
    snprintf(query, sizeof query, "uploadId=%s", put->upload);
    if (object_url(put->s, put->name, query, url, NULL))
        simple(put->s, &r, true, NULL);
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    bool ok = true;
    if (commit && put->upload[0] == '\0')
        ok = put_whole(put, err);
    else if (commit)
        ok = (put->part.len == 0 || send_part(put, err)) && complete(put, err);
    drop_upload(put);
    rd_buf_done(&put->part);
    rd_free(put->etags);
    rd_free(put);
    return ok;
}

static bool s3_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                   struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, NULL, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->s = s3_of(store);
    snprintf(put->name, sizeof put->name, "%s", name);
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- get ---- */

static bool s3_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                    struct rd_err *err)
{
    char url[URL_MAX];
    struct request r = {.method = "HEAD", .url = url};
    *ret = (struct archive_object){0};
    if (!object_url(s3_of(store), name, NULL, url, err) || !simple(s3_of(store), &r, true, err))
        return false;
    *ret = (struct archive_object){.there = r.status != 404, .size = r.length};
    return true;
}

static bool get_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                      struct rd_buf *ret, struct rd_err *err)
{
    char url[URL_MAX], range[80];
    struct request r = {.method = "GET", .url = url, .header = range, .out = ret, .max = len};
    size_t before = ret->len;
    snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
    if (!object_url(s3_of(store), name, NULL, url, err) || !simple(s3_of(store), &r, false, err))
        return false;
    return ret->len - before == len ||
           rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store sent only part of a range");
}

static bool s3_get(struct archive_store *store, const char *name, struct rd_src **ret,
                   struct rd_err *err)
{
    struct archive_object object;
    if (!s3_stat(store, name, &object, err))
        return false;
    if (object.there)
        return archive_ranges_open(ret, store, name, object.size, get_range, err);
    rd_err_sys(err, ENOENT, "cannot open the object");
    rd_err_origin(err, name);
    return false;
}

/* ---- list and remove ---- */

struct listing {
    struct s3 *s;
    void (*each)(void *arg, const char *name, uint64_t size);
    void *arg;
    char token[TOKEN_MAX]; /* of the next page, escaped; "": the first */
    bool more;
};

static bool take_page(struct listing *l, struct rd_slice xml, struct rd_err *err)
{
    char prefix[ARCHIVE_NAME_MAX + 1];
    struct archive_s3_next next;
    snprintf(prefix, sizeof prefix, "%s%s", l->s->prefix, l->s->prefix[0] != '\0' ? "/" : "");
    if (!archive_s3_page(xml, prefix, l->each, l->arg, &next, err))
        return false;
    l->more = next.more;
    if (!next.more)
        return true;
    char *text =
        curl_easy_escape(l->s->remote.curl, (const char *)next.token.ptr, (int)next.token.len);
    bool ok = text != NULL && strlen(text) < sizeof l->token;
    if (ok)
        snprintf(l->token, sizeof l->token, "%s", text);
    curl_free(text);
    return ok || rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                            "the listing of the store continues at an invalid position");
}

static bool list_page(struct listing *l, const char *folder, struct rd_err *err)
{
    char url[2 * URL_MAX], prefix[ARCHIVE_NAME_MAX * 2];
    struct rd_buf answer = {0};
    struct request r = {.method = "GET", .url = url, .out = &answer, .max = ANSWER_MAX};
    snprintf(prefix, sizeof prefix, "%s%s%s/", l->s->prefix, l->s->prefix[0] != '\0' ? "/" : "",
             folder);
    char *text = curl_easy_escape(l->s->remote.curl, prefix, 0);
    if (text == NULL)
        return rd_err_nomem(err, sizeof prefix);
    int len = snprintf(url, sizeof url, "%s?%s%s%slist-type=2&prefix=%s", l->s->bucket,
                       l->token[0] != '\0' ? "continuation-token=" : "", l->token,
                       l->token[0] != '\0' ? "&" : "", text);
    curl_free(text);
    bool ok = (len > 0 && (size_t)len < sizeof url) ||
              rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of a folder is too long");
    ok = ok && simple(l->s, &r, false, err) && take_page(l, rd_buf_slice(&answer), err);
    rd_buf_done(&answer);
    return ok;
}

static bool s3_list(struct archive_store *store, const char *folder,
                    void (*each)(void *arg, const char *name, uint64_t size), void *arg,
                    struct rd_err *err)
{
    struct listing l = {.s = s3_of(store), .each = each, .arg = arg};
    do {
        if (!list_page(&l, folder, err))
            return false;
    } while (l.more);
    return true;
}

static bool s3_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    char url[URL_MAX];
    struct request r = {.method = "DELETE", .url = url};
    return object_url(s3_of(store), name, NULL, url, err) && simple(s3_of(store), &r, true, err);
}

/* ---- the store ---- */

static bool s3_lock(struct archive_store *store, const char *name, const char *owner,
                    struct rd_err *err)
{
    struct s3 *s = s3_of(store);
    return archive_lock_take(&s->lock, store, name, owner, s->gone, err);
}

static void s3_unlock(struct archive_store *store)
{
    archive_lock_drop(&s3_of(store)->lock, store);
}

static void s3_free(struct s3 *s)
{
    archive_remote_close(&s->remote);
    if (s->keys_done != NULL)
        s->keys_done(s->keys_ctx);
    rd_free(s->ca_file);
    explicit_bzero(s->userpwd, sizeof s->userpwd);
    explicit_bzero(s->token, sizeof s->token);
    rd_free(s);
}

static void s3_close(struct archive_store *store)
{
    s3_unlock(store);
    s3_free(s3_of(store));
}

static bool set_place(struct s3 *s, const struct archive_s3_opts *opts, struct rd_err *err)
{
    const char *host = strstr(opts->endpoint, "://");
    if (host == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the endpoint is not https://HOST");
    host += 3;
    int scheme = (int)(host - opts->endpoint), len;
    if (host[0] != '\0' && host[strlen(host) - 1] == '/')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the endpoint ends with a slash");
    if (opts->host_style)
        len = snprintf(s->base, sizeof s->base, "%.*s%s.%s/", scheme, opts->endpoint, opts->bucket,
                       host);
    else
        len = snprintf(s->base, sizeof s->base, "%s/%s/", opts->endpoint, opts->bucket);
    if (!fits(len, sizeof s->base - ARCHIVE_NAME_MAX * 2, err))
        return false;
    snprintf(s->bucket, sizeof s->bucket, "%s", s->base);
    if (!opts->host_style)
        s->bucket[len - 1] = '\0';
    snprintf(s->store.origin, sizeof s->store.origin, "s3://%s%s%s", opts->bucket,
             opts->prefix != NULL ? "/" : "", opts->prefix != NULL ? opts->prefix : "");
    return opts->prefix == NULL ||
           fits(snprintf(s->prefix, sizeof s->prefix, "%s", opts->prefix), sizeof s->prefix, err);
}

static bool set_secrets(struct s3 *s, const struct archive_s3_opts *opts, struct rd_err *err)
{
    if (!fits(snprintf(s->sigv4, sizeof s->sigv4, "aws:amz:%s:s3", opts->region), sizeof s->sigv4,
              err))
        return false;
    if (opts->sse != NULL &&
        !fits(snprintf(s->sse, sizeof s->sse, "x-amz-server-side-encryption: %s", opts->sse),
              sizeof s->sse, err))
        return false;
    return s->keys != NULL ||
           set_login(s, opts->access_key, opts->secret_key, opts->session_token, err);
}

static bool set_rest(struct s3 *s, const struct archive_s3_opts *opts, struct rd_err *err)
{
    s->part_size = opts->part_size != 0 ? opts->part_size : ARCHIVE_S3_PART;
    s->gone = opts->gone;
    return archive_remote_copy(&s->ca_file, opts->ca_file, err) &&
           archive_remote_open(&s->remote, opts->tries, opts->wait_ms, err);
}

bool archive_store_open_s3(struct archive_store **ret, const struct archive_s3_opts *opts,
                           struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .put = s3_put,
        .get = s3_get,
        .stat = s3_stat,
        .list = s3_list,
        .remove = s3_remove,
        .lock = s3_lock,
        .unlock = s3_unlock,
        .close = s3_close,
    };
    struct s3 *s = rd_calloc(1, sizeof *s);
    if (s == NULL) {
        if (opts->keys_done != NULL)
            opts->keys_done(opts->keys_ctx);
        return rd_err_nomem(err, sizeof *s);
    }
    s->store.ops = &ops;
    s->keys = opts->keys;
    s->keys_done = opts->keys_done;
    s->keys_ctx = opts->keys_ctx;
    if (!set_place(s, opts, err) || !set_secrets(s, opts, err) || !set_rest(s, opts, err)) {
        s3_free(s);
        return false;
    }
    *ret = &s->store;
    return true;
}
