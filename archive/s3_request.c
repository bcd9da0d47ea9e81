#include "archive/s3_request.h"

#include "base/digest.h"
#include "base/num.h"

#include <stdio.h>

struct archive_s3 *archive_s3_of(struct archive_store *store)
{
    return (struct archive_s3 *)store;
}

/* The value of a header of this name, in lower case and with its colon; NULL: it is another one. */
static const char *header_value(const char *bytes, size_t len, const char *name)
{
    size_t skip = strlen(name);
    if (len <= skip || strncasecmp(bytes, name, skip) != 0)
        return NULL;
    while (skip < len && bytes[skip] == ' ')
        skip++;
    return bytes + skip;
}

/* An HTTP date in seconds; -1: it is none. */
static int64_t header_date(const char *value, size_t len)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)len, value);
    return (int64_t)curl_getdate(text, NULL);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct archive_s3_request *r = ctx;
    const char *value;
    size_t len = n;
    (void)size;
    while (len > 0 && (bytes[len - 1] == '\r' || bytes[len - 1] == '\n' || bytes[len - 1] == ' '))
        len--;
    const char *end = bytes + len;
    if ((value = header_value(bytes, len, "etag:")) != NULL)
        snprintf(r->etag, sizeof r->etag, "%.*s", (int)(end - value), value);
    else if ((value = header_value(bytes, len, "content-length:")) != NULL)
        r->has_length = rd_num_get_u64(rd_slice(value, (size_t)(end - value)), &r->length);
    else if ((value = header_value(bytes, len, "date:")) != NULL)
        r->date_s = header_date(value, (size_t)(end - value));
    else if ((value = header_value(bytes, len, "last-modified:")) != NULL)
        r->modified_s = header_date(value, (size_t)(end - value));
    return n;
}

static bool add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *more = header[0] != '\0' ? curl_slist_append(*list, header) : *list;
    if (more != NULL || header[0] == '\0')
        *list = more;
    return more != NULL || header[0] == '\0';
}

static bool add_signed(const struct archive_s3_signing *signing, struct curl_slist **list,
                       struct rd_err *err)
{
    char host[300], digest[sizeof "x-amz-content-sha256: " + RD_DIGEST_HEX];
    char date[ARCHIVE_S3_DATE], signature[ARCHIVE_S3_SIGNATURE];
    struct rd_slice name = archive_s3_host(signing->url);
    if (!archive_s3_sign(signing, date, signature, err))
        return false;
    snprintf(host, sizeof host, "Host: %.*s", (int)name.len, (const char *)name.ptr);
    snprintf(digest, sizeof digest, "x-amz-content-sha256: %s", signing->digest);
    return (add_header(list, host) && add_header(list, signing->content_type) &&
            add_header(list, digest) && add_header(list, date) && add_header(list, signature) &&
            add_header(list, signing->token) && add_header(list, signing->sse)) ||
           rd_err_nomem(err, 0);
}

static bool set_headers(const struct archive_s3 *s, const struct archive_s3_request *r,
                        struct curl_slist **list, struct rd_err *err)
{
    static const char type[] = "content-type: application/octet-stream";
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX];
    if (!rd_digest_of(RD_DIGEST_SHA256, r->body, sum, err))
        return false;
    rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
    const struct archive_s3_signing signing = {
        .method = r->method,
        .url = r->url,
        .region = s->region,
        .access = s->access,
        .secret = s->secret,
        .digest = hex,
        .content_type = r->body.len > 0 ? type : "",
        .token = s->token,
        .sse = r->encrypt ? s->sse : "",
        .now_ms = s->now_ms(),
    };
    if (!add_header(list, "Expect:") || !add_header(list, r->header != NULL ? r->header : "") ||
        (r->body.len == 0 && !add_header(list, "Content-Type:")))
        return rd_err_nomem(err, 0);
    return add_signed(&signing, list, err);
}

static void set_up(struct archive_s3 *s, struct archive_s3_request *r, struct curl_slist *headers)
{
    CURL *c = s->remote.curl;
    bool head = strcmp(r->method, "HEAD") == 0, get = strcmp(r->method, "GET") == 0;
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* it is signed */
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

bool archive_s3_fail(const struct archive_s3 *s, const struct archive_s3_request *r,
                     struct rd_err *err)
{
    archive_s3_refused(rd_buf_slice(r->out), r->method, r->status, err);
    rd_err_origin(err, s->store.origin);
    return false;
}

/* Whether another try may succeed. 409: S3 asks for one, because another request for the same key
 * was not finished. */
bool archive_s3_passes(const struct archive_s3_request *r, CURLcode code)
{
    if (code != CURLE_OK)
        return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
               code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL;
    if (r->status == 501 || r->status == 505)
        return false; /* it will never know how */
    return r->status == 429 || r->status == 408 || r->status == 409 || r->status >= 500;
}

bool archive_s3_fits(int len, size_t size, struct rd_err *err)
{
    return (len > 0 && (size_t)len < size) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a setting of S3 is too long");
}

bool archive_s3_set_login(struct archive_s3 *s, const char *access, const char *secret,
                          const char *token, struct rd_err *err)
{
    s->token[0] = '\0';
    return archive_s3_fits(snprintf(s->access, sizeof s->access, "%s", access), sizeof s->access,
                           err) &&
           archive_s3_fits(snprintf(s->secret, sizeof s->secret, "%s", secret), sizeof s->secret,
                           err) &&
           (token == NULL || token[0] == '\0' ||
            archive_s3_fits(snprintf(s->token, sizeof s->token, "x-amz-security-token: %s", token),
                            sizeof s->token, err));
}

/* The keys of a platform change while the store is open. */
static bool take_keys(struct archive_s3 *s, bool rejected, struct rd_err *err)
{
    if (s->keys == NULL)
        return true;
    const struct archive_s3_keys *keys = s->keys(s->keys_ctx, rejected, err);
    return keys != NULL && archive_s3_set_login(s, keys->access, keys->secret, keys->token, err);
}

/* Whether the store refused the keys, and new ones were obtained. */
static bool keys_changed(struct archive_s3 *s, const struct archive_s3_request *r)
{
    char access[sizeof s->access], secret[sizeof s->secret];
    if (s->keys == NULL || (r->status != 403 && r->status != 400 && r->status != 401))
        return false;
    memcpy(access, s->access, sizeof access);
    memcpy(secret, s->secret, sizeof secret);
    bool changed = take_keys(s, true, NULL) &&
                   (strcmp(access, s->access) != 0 || strcmp(secret, s->secret) != 0);
    explicit_bzero(secret, sizeof secret);
    return changed;
}

/* libcurl itself repeats a request if a connection that it used before ends without an answer. */
static void note_connection(struct archive_s3 *s, struct archive_s3_request *r, CURLcode code)
{
    long n = 0;
    curl_easy_getinfo(s->remote.curl, CURLINFO_NUM_CONNECTS, &n);
    r->lost = r->lost || (s->connected && n > 0);
    s->connected = code == CURLE_OK;
}

static bool once(struct archive_s3 *s, struct archive_s3_request *r, CURLcode *ret_code,
                 struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    char problem[CURL_ERROR_SIZE] = "";
    r->status = 0;
    r->length = 0;
    r->has_length = false;
    r->etag[0] = '\0';
    r->date_s = r->modified_s = -1;
    bool ok = take_keys(s, false, err) && set_headers(s, r, &headers, err);
    if (ok) {
        struct archive_remote_body body = {r->out, r->max};
        archive_remote_begin(&s->remote, r->url, "http,https", &body, problem);
        set_up(s, r, headers);
        *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
        curl_easy_getinfo(s->remote.curl, CURLINFO_RESPONSE_CODE, &r->status);
        note_connection(s, r, *ret_code);
    }
    curl_slist_free_all(headers);
    return ok;
}

/* Retries after temporary failures. Returns false if the host does not answer. Otherwise r->status
 * is the status of the response, and r->out holds its body. */
bool archive_s3_perform(struct archive_s3 *s, struct archive_s3_request *r, struct rd_err *err)
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
        if (code == CURLE_OK && !archive_s3_passes(r, code))
            return true;
        r->lost = true;
        if (!archive_s3_passes(r, code) || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return code == CURLE_OK;
        }
    }
}

bool archive_s3_is_done(const struct archive_s3_request *r)
{
    return r->status == 200 || r->status == 206 || r->status == 204;
}

/* The body of an answer that should have none is the page of a proxy, or of a portal. */
bool archive_s3_is_empty(const struct archive_s3_request *r)
{
    for (size_t i = 0; i < r->out->len; i++)
        if (memchr(" \r\n\t", r->out->ptr[i], 4) == NULL)
            return false;
    return true;
}

bool archive_s3_unexpected(const struct archive_s3 *s, const struct archive_s3_request *r,
                           struct rd_err *err)
{
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
               "the store answered %s with status %ld, and not as S3 does", r->method, r->status);
    rd_err_origin(err, s->store.origin);
    return false;
}

/* A request whose answer goes to r->out. Every status that does not say that it was done is an
 * error. */
bool archive_s3_simple(struct archive_s3 *s, struct archive_s3_request *r, struct rd_err *err)
{
    return archive_s3_perform(s, r, err) && (archive_s3_is_done(r) || archive_s3_fail(s, r, err));
}

/* The same; the answer is an empty one. With missing_ok, S3's word that there is no such object or
 * upload counts as done. */
bool archive_s3_bare(struct archive_s3 *s, struct archive_s3_request *r, bool missing_ok,
                     struct rd_err *err)
{
    struct rd_buf answer = {0};
    r->out = &answer;
    r->max = ARCHIVE_S3_ANSWER_MAX;
    bool ok = archive_s3_perform(s, r, err);
    bool missing = ok && missing_ok && r->status == 404 &&
                   (archive_s3_is_error(rd_buf_slice(&answer), "NoSuchKey") ||
                    archive_s3_is_error(rd_buf_slice(&answer), "NoSuchUpload"));
    bool right =
        r->status == (strcmp(r->method, "DELETE") == 0 ? 204 : 200) && archive_s3_is_empty(r);
    if (ok && !missing && !right)
        ok = archive_s3_is_done(r) ? archive_s3_unexpected(s, r, err) : archive_s3_fail(s, r, err);
    r->out = NULL;
    rd_buf_done(&answer);
    return ok;
}

/* Names consist of characters that need no escape. */
bool archive_s3_object_url(const struct archive_s3 *s, const char *name, const char *query,
                           char *ret, size_t size, struct rd_err *err)
{
    int len = snprintf(ret, size, "%s%s%s%s%s", s->base, s->escaped, name, query != NULL ? "?" : "",
                       query != NULL ? query : "");
    return (len > 0 && (size_t)len < size) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}
