#include "archive/s3_keys.h"

#include "archive/http.h"
#include "json/members.h"

#include <stdio.h>

enum { TIMEOUT_S = 5, URL_MAX = 1200, HEADER_MAX = 4200, ROLE_MAX = 100, CODE_MAX = 64 };

#define TOKEN_PATH "/latest/api/token"
#define ROLE_PATH  "/latest/meta-data/iam/security-credentials/"

void archive_s3_keys_done(struct archive_s3_keys *keys)
{
    explicit_bzero(keys, sizeof *keys);
}

static void forget(struct rd_buf *buf)
{
    if (buf->len > 0)
        explicit_bzero(buf->ptr, buf->len);
    rd_buf_done(buf);
}

/* Sends one request; its status must be 200. */
static bool ask(const char *url, bool put, const char *header, struct rd_buf *ret,
                struct rd_err *err)
{
    const struct archive_http http = {
        .url = url, .put = put, .headers = {header}, .timeout_s = TIMEOUT_S, .direct = true};
    long status;
    return archive_http_ask(&http, &status, ret, err) &&
           (status == 200 ||
            rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "it answered with status %ld", status));
}

/* Whether the text can be part of a header or a path. */
static bool is_plain(const char *text, const char *more)
{
    for (const char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || (more != NULL && strchr(more, *at) != NULL))
            return false;
    return text[0] != '\0';
}

/* Whether the text can be the value of a header, which may contain spaces. */
static bool is_value(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            return false;
    return text[0] != '\0';
}

/* ---- the keys ---- */

static bool read_member(struct json_members *in, const char *name, struct archive_s3_keys *ret,
                        char code[CODE_MAX])
{
    if (strcmp(name, "AccessKeyId") == 0)
        return json_members_string(in, ret->access, sizeof ret->access);
    if (strcmp(name, "SecretAccessKey") == 0)
        return json_members_string(in, ret->secret, sizeof ret->secret);
    if (strcmp(name, "Token") == 0)
        return json_members_string(in, ret->token, sizeof ret->token);
    if (strcmp(name, "Expiration") == 0)
        return json_members_string(in, ret->expires, sizeof ret->expires);
    if (strcmp(name, "Code") == 0)
        return json_members_string(in, code, CODE_MAX);
    return json_members_skip(in);
}

/* Without keys, the object has another code. */
static bool parse_keys(struct rd_slice text, struct archive_s3_keys *ret, struct rd_err *err)
{
    struct json_members in;
    char name[CODE_MAX], code[CODE_MAX] = "Success";
    *ret = (struct archive_s3_keys){.expires = ""};
    json_members_open(&in, text);
    json_members_begin(&in, '{');
    while (json_members_next(&in, name, sizeof name))
        read_member(&in, name, ret, code);
    json_members_close(&in);
    if (json_members_ok(&in) && strcmp(code, "Success") == 0 && is_plain(ret->access, ":") &&
        is_plain(ret->secret, NULL) && (ret->token[0] == '\0' || is_plain(ret->token, NULL)))
        return true;
    archive_s3_keys_done(ret);
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the answer has no access key");
}

static bool ask_keys(const char *url, const char *header, struct archive_s3_keys *ret,
                     struct rd_err *err)
{
    struct rd_buf answer = {0};
    bool ok = ask(url, false, header, &answer, err) && parse_keys(rd_buf_slice(&answer), ret, err);
    forget(&answer);
    return ok;
}

/* ---- an instance ---- */

static bool ask_token(const char *endpoint, char header[HEADER_MAX], struct rd_err *err)
{
    char url[URL_MAX];
    struct rd_buf answer = {0};
    snprintf(url, sizeof url, "%.1000s" TOKEN_PATH, endpoint);
    bool ok = ask(url, true, "X-aws-ec2-metadata-token-ttl-seconds: 21600", &answer, err) &&
              (rd_buf_add_byte(&answer, '\0') || rd_err_nomem(err, answer.len));
    if (ok && (answer.len > ARCHIVE_S3_TOKEN_MAX || !is_plain((const char *)answer.ptr, NULL)))
        ok = rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the answer is not a token");
    if (ok)
        snprintf(header, HEADER_MAX, "X-aws-ec2-metadata-token: %s", (const char *)answer.ptr);
    forget(&answer);
    return ok;
}

static bool ask_role(const char *endpoint, const char *header, char ret[ROLE_MAX],
                     struct rd_err *err)
{
    char url[URL_MAX];
    struct rd_buf answer = {0};
    snprintf(url, sizeof url, "%.1000s" ROLE_PATH, endpoint);
    bool ok = ask(url, false, header, &answer, err);
    if (ok) {
        const uint8_t *end = answer.len > 0 ? memchr(answer.ptr, '\n', answer.len) : NULL;
        size_t len = end != NULL ? (size_t)(end - answer.ptr) : answer.len;
        snprintf(ret, ROLE_MAX, "%.*s", (int)(len < ROLE_MAX ? len : 0),
                 len > 0 ? (const char *)answer.ptr : "");
        ok = is_plain(ret, "/?#%") ||
             rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the instance has no role");
    }
    rd_buf_done(&answer);
    return ok;
}

bool archive_s3_keys_instance(struct archive_s3_keys *ret, const char *endpoint, struct rd_err *err)
{
    char header[HEADER_MAX], role[ROLE_MAX], url[URL_MAX];
    bool ok = ask_token(endpoint, header, err) && ask_role(endpoint, header, role, err);
    if (ok) {
        snprintf(url, sizeof url, "%.1000s" ROLE_PATH "%s", endpoint, role);
        ok = ask_keys(url, header, ret, err);
    }
    explicit_bzero(header, sizeof header);
    rd_err_doing(err, "the keys of the instance");
    return ok;
}

/* ---- a container ---- */

/* The authorization must not be sent to other hosts. */
static bool may_ask(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1",     "localhost",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    const char *host = url + strlen("http://");
    if (strncmp(url, "https://", 8) == 0)
        return true;
    if (strncmp(url, "http://", 7) != 0)
        return false;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t len = strlen(hosts[i]);
        if (strncmp(host, hosts[i], len) == 0 &&
            (host[len] == '\0' || host[len] == ':' || host[len] == '/') &&
            strchr(host, '@') == NULL)
            return true;
    }
    return false;
}

bool archive_s3_keys_container(struct archive_s3_keys *ret, const char *url,
                               const char *authorization, struct rd_err *err)
{
    char header[HEADER_MAX] = "";
    bool ok = may_ask(url) || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                                         "the URL is neither https nor of this host");
    if (ok && authorization != NULL) {
        ok = (is_value(authorization) && strlen(authorization) < ARCHIVE_S3_TOKEN_MAX) ||
             rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the authorization is not valid");
        if (ok)
            snprintf(header, sizeof header, "Authorization: %s", authorization);
    }
    ok = ok && ask_keys(url, header[0] != '\0' ? header : NULL, ret, err);
    explicit_bzero(header, sizeof header);
    rd_err_doing(err, "the keys of the container");
    return ok;
}
