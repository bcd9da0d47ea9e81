#include "archive/s3_request.h"

#include "base/digest.h"
#include "json/text.h"

#include <stdio.h>

struct archive_s3 *archive_s3_of(struct archive_store *store)
{
    return (struct archive_s3 *)store;
}

static bool add_signed(const struct archive_s3_signing *signing, struct curl_slist **list,
                       struct rd_err *err)
{
    char host[300], digest[ARCHIVE_S3_HEADER];
    char date[ARCHIVE_S3_DATE], signature[ARCHIVE_S3_SIGNATURE];
    struct rd_slice name = archive_s3_host(signing->url);
    if (!archive_s3_sign(signing, digest, date, signature, err))
        return false;
    snprintf(host, sizeof host, "Host: %.*s", (int)name.len, (const char *)name.ptr);
    bool ok = archive_web_add_header(list, host) && archive_web_add_header(list, digest) &&
              archive_web_add_header(list, date) && archive_web_add_header(list, signature);
    for (size_t i = 0; ok && i < ARCHIVE_S3_HEADERS; i++)
        if (signing->headers[i] != NULL)
            ok = archive_web_add_header(list, signing->headers[i]);
    return ok || rd_err_nomem(err, 0);
}

/* An upload in parts names the kind of checksum when it begins; the object is checked with them. */
static const char *set_checksum(struct archive_s3_request *r, const uint8_t *sum,
                                char ret[ARCHIVE_S3_CHECKSUM + 32])
{
    struct json_text form = {.form = JSON_BASE64};
    uint8_t text[6 * (RD_DIGEST_MAX + 3) + 16];
    if (!r->checked)
        return NULL;
    if (strcmp(r->method, "POST") == 0)
        return "x-amz-checksum-algorithm: SHA256";
    const struct rd_slice bytes = rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256));
    const uint8_t *end = json_text_put(&form, text, bytes, false);
    snprintf(r->checksum, sizeof r->checksum, "%.*s", (int)(end - text), (const char *)text);
    snprintf(ret, ARCHIVE_S3_CHECKSUM + 32, "x-amz-checksum-sha256: %s", r->checksum);
    return ret;
}

static bool set_headers(const struct archive_s3 *s, struct archive_s3_request *r,
                        struct curl_slist **list, struct rd_err *err)
{
    static const char type[] = "content-type: application/octet-stream";
    uint8_t sum[RD_DIGEST_MAX];
    char hex[RD_DIGEST_HEX], checksum[ARCHIVE_S3_CHECKSUM + 32];
    if (!rd_digest_of(RD_DIGEST_SHA256, r->body, sum, err))
        return false;
    rd_digest_hex(hex, rd_slice(sum, rd_digest_size(RD_DIGEST_SHA256)));
    struct archive_s3_given given = {.n = 0};
    struct archive_s3_signing signing = {
        .dialect = s->dialect,
        .method = r->method,
        .url = r->url,
        .region = s->region,
        .access = s->access,
        .secret = s->secret,
        .digest = hex,
        .headers = {r->body.len > 0 ? type : NULL, s->token, set_checksum(r, sum, checksum),
                    r->fresh ? s->dialect->fresh : NULL, r->source},
        .now_ms = s->now_ms(),
    };
    if (r->object != NULL)
        archive_s3_props_give(&s->props, r->object, signing.now_ms, &given);
    for (size_t i = 0; i < given.n; i++)
        signing.headers[ARCHIVE_S3_HEADERS - 1 - i] = given.lines[i];
    if (!archive_web_add_header(list, "Expect:") ||
        !archive_web_add_header(list, r->header != NULL ? r->header : "") ||
        (r->body.len == 0 && !archive_web_add_header(list, "Content-Type:")))
        return rd_err_nomem(err, 0);
    return add_signed(&signing, list, err);
}

bool archive_s3_fail(const struct archive_s3 *s, const struct archive_s3_request *r,
                     struct rd_err *err)
{
    struct rd_slice answer = rd_buf_slice(r->out);
    if (r->before > 0)
        answer = rd_slice(answer.ptr + r->before, answer.len - r->before);
    archive_s3_refused(answer, r->method, r->status, err);
    rd_err_origin(err, s->store.origin);
    return false;
}

/* 409: S3 asks for another try, because another request for the same key was not finished. */
bool archive_s3_passes(const struct archive_s3_request *r, CURLcode code)
{
    return archive_web_passes(r->status, code) || (code == CURLE_OK && r->status == 409);
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

static bool once(struct archive_s3 *s, struct archive_s3_request *r, CURLcode *ret_code,
                 struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    char problem[CURL_ERROR_SIZE] = "";
    r->status = 0;
    bool ok = take_keys(s, false, err) && set_headers(s, r, &headers, err);
    if (ok) {
        struct archive_remote_body body = {r->out, r->max};
        archive_remote_begin(&s->remote, r->url, "http,https", &body, problem);
        archive_web_set_up(&s->remote,
                           &(struct archive_web_sent){r->method, r->body, headers, s->ca_file},
                           &r->head);
        *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
        curl_easy_getinfo(s->remote.curl, CURLINFO_RESPONSE_CODE, &r->status);
        r->lost |= archive_web_repeated(&s->remote, *ret_code);
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
    r->before = r->out->len;
    for (;;) {
        struct rd_err failed = {0};
        CURLcode code = CURLE_OK;
        r->out->len = r->before;
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
    bool right = r->status == (strcmp(r->method, "DELETE") == 0 ? 204 : 200) &&
                 archive_web_is_blank(rd_buf_slice(r->out));
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
