#include "archive/s3_sign.h"

#include "archive/hmac.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SUM = ARCHIVE_HMAC, STAMP = 32, SCOPE = 160, HEX = 2 * SUM + 1 };

const struct archive_s3_dialect archive_s3_amazon = {.algorithm = "AWS4-HMAC-SHA256",
                                                     .secret = "AWS4",
                                                     .service = "s3",
                                                     .request = "aws4_request",
                                                     .prefix = "x-amz-",
                                                     .fresh = "if-none-match: *"};
const struct archive_s3_dialect archive_s3_google = {.algorithm = "GOOG4-HMAC-SHA256",
                                                     .secret = "GOOG4",
                                                     .service = "storage",
                                                     .request = "goog4_request",
                                                     .prefix = "x-goog-",
                                                     .fresh = "x-goog-if-generation-match: 0",
                                                     .google = true};

/* ---- the canonical request ---- */

struct rd_slice archive_s3_host(const char *url)
{
    const char *at = strstr(url, "://");
    at = at != NULL ? at + 3 : url;
    return rd_slice(at, strcspn(at, "/?"));
}

static bool add_path(struct rd_buf *text, const char *url)
{
    struct rd_slice host = archive_s3_host(url);
    const char *path = (const char *)host.ptr + host.len, *query = strchr(path, '?');
    size_t len = query != NULL ? (size_t)(query - path) : strlen(path);
    return rd_buf_printf(text, "%.*s\n%s\n", len > 0 ? (int)len : 1, len > 0 ? path : "/",
                         query != NULL ? query + 1 : "");
}

/* "x-amz-name: value" as "x-amz-name:value", and its name. */
static bool add_header(struct rd_buf *text, struct rd_buf *names, const char *header)
{
    size_t len = strcspn(header, ":");
    const char *value = header + len + 1 + strspn(header + len + 1, " ");
    return rd_buf_printf(text, "%.*s:%s\n", (int)len, header, value) &&
           rd_buf_printf(names, "%s%.*s", names->len > 0 ? ";" : "", (int)len, header);
}

static int by_name(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    size_t n = strcspn(*left, ":"), m = strcspn(*right, ":");
    int order = memcmp(*left, *right, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

static bool add_headers(struct rd_buf *text, struct rd_buf *names,
                        const struct archive_s3_signing *s, const char *digest, const char *date)
{
    char host[300];
    const char *all[ARCHIVE_S3_HEADERS + 3] = {host, digest, date};
    size_t n = 3;
    struct rd_slice name = archive_s3_host(s->url);
    snprintf(host, sizeof host, "host: %.*s", (int)name.len, (const char *)name.ptr);
    for (size_t i = 0; i < ARCHIVE_S3_HEADERS; i++)
        if (s->headers[i] != NULL && s->headers[i][0] != '\0')
            all[n++] = s->headers[i];
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++)
        if (!add_header(text, names, all[i]))
            return false;
    return true;
}

static bool digest_of(const struct archive_s3_signing *s, const char *digest, const char *date,
                      struct rd_buf *names, char ret[HEX], struct rd_err *err)
{
    struct rd_buf text = {0};
    uint8_t sum[SUM];
    bool ok = rd_buf_printf(&text, "%s\n", s->method) && add_path(&text, s->url) &&
              add_headers(&text, names, s, digest, date) && rd_buf_add_byte(&text, '\n') &&
              rd_buf_add(&text, names->ptr, names->len) &&
              rd_buf_printf(&text, "\n%s", s->digest) && rd_buf_add_byte(names, '\0');
    ok = ok ? rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&text), sum, err)
            : rd_err_nomem(err, text.len);
    if (ok)
        rd_digest_hex(ret, rd_slice(sum, SUM));
    rd_buf_done(&text);
    return ok;
}

/* ---- the signature ---- */

static bool sign(const struct archive_s3_signing *s, const char *stamp, const char *scope,
                 const char digest[HEX], char ret[HEX], struct rd_err *err)
{
    char text[32 + STAMP + SCOPE + HEX], secret[ARCHIVE_S3_LOGIN_MAX + 8];
    const struct archive_s3_dialect *d = s->dialect;
    uint8_t key[SUM];
    int len = snprintf(secret, sizeof secret, "%s%s", d->secret, s->secret);
    bool ok = archive_hmac(rd_slice(secret, (size_t)len), rd_slice(stamp, 8), key, err) &&
              archive_hmac(rd_slice(key, SUM), rd_slice_str(s->region), key, err) &&
              archive_hmac(rd_slice(key, SUM), rd_slice_str(d->service), key, err) &&
              archive_hmac(rd_slice(key, SUM), rd_slice_str(d->request), key, err);
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s", d->algorithm, stamp, scope, digest);
    ok = ok && archive_hmac(rd_slice(key, SUM), rd_slice_str(text), key, err);
    if (ok)
        rd_digest_hex(ret, rd_slice(key, SUM));
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(key, sizeof key);
    return ok;
}

bool archive_s3_sign(const struct archive_s3_signing *s, char ret_digest[ARCHIVE_S3_HEADER],
                     char ret_date[ARCHIVE_S3_DATE], char ret_header[ARCHIVE_S3_SIGNATURE],
                     struct rd_err *err)
{
    const struct archive_s3_dialect *d = s->dialect;
    char stamp[STAMP], scope[SCOPE], digest[HEX], signature[HEX];
    struct rd_buf names = {0};
    time_t now = (time_t)(s->now_ms / 1000);
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL || strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm) == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the clock shows no time");
    snprintf(ret_date, ARCHIVE_S3_DATE, "%sdate: %s", d->prefix, stamp);
    snprintf(ret_digest, ARCHIVE_S3_HEADER, "%scontent-sha256: %s", d->prefix, s->digest);
    int len =
        snprintf(scope, sizeof scope, "%.8s/%s/%s/%s", stamp, s->region, d->service, d->request);
    if (len >= SCOPE || strlen(s->secret) > ARCHIVE_S3_LOGIN_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a setting of S3 is too long");
    bool ok = digest_of(s, ret_digest, ret_date, &names, digest, err) &&
              sign(s, stamp, scope, digest, signature, err);
    if (ok)
        len = snprintf(ret_header, ARCHIVE_S3_SIGNATURE,
                       "Authorization: %s Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                       d->algorithm, s->access, scope, (const char *)names.ptr, signature);
    rd_buf_done(&names);
    return ok && (len < ARCHIVE_S3_SIGNATURE ||
                  rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a setting of S3 is too long"));
}
