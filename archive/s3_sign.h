/* s3_sign.h - AWS Signature Version 4 of a request, and that of Google Cloud Storage, which is the
 * same with other words; private to archive/.
 *
 *     struct archive_s3_signing signing = {.dialect = &archive_s3_amazon, .method = "GET",
 *                                          .url = url, .region = region,
 *                                          .access = access, .secret = secret,
 *                                          .digest = hex, .now_ms = now_ms};
 *     char digest[ARCHIVE_S3_HEADER], date[ARCHIVE_S3_DATE], header[ARCHIVE_S3_SIGNATURE];
 *     if (!archive_s3_sign(&signing, digest, date, header, &err))
 *         ...
 *
 * libcurl signs, too, but versions differ in what they make of an escaped character: 8.8 signs
 * another path than it sends, 8.14 another query.
 */
#ifndef ARCHIVE_S3_SIGN_H
#define ARCHIVE_S3_SIGN_H

#include "base/digest.h"
#include "base/err.h"

enum {
    ARCHIVE_S3_HEADERS = 12, /* that the caller adds */
    ARCHIVE_S3_LOGIN_MAX = 256,
    ARCHIVE_S3_DATE = 48,       /* "x-amz-date: 20260131T235959Z" */
    ARCHIVE_S3_HEADER = 128,    /* "x-amz-content-sha256: " and a digest */
    ARCHIVE_S3_SIGNATURE = 1024 /* "Authorization: AWS4-HMAC-SHA256 Credential=…" */
};

/* The words of a service. */
struct archive_s3_dialect {
    const char *algorithm, *secret, *service, *request; /* of signatures */
    const char *prefix;                                 /* of headers */
    const char *fresh; /* the header of a request that replaces no object */
    bool google;
};

/* "Authenticating Requests (AWS Signature Version 4)" of Amazon S3. */
extern const struct archive_s3_dialect archive_s3_amazon;
/* "Signatures" and "HTTP headers for XML API" of Google Cloud Storage, with keys for HMAC. */
extern const struct archive_s3_dialect archive_s3_google;

struct archive_s3_signing {
    const struct archive_s3_dialect *dialect;
    const char *method;
    const char *url; /* with its path and query escaped, and the query sorted by name */
    const char *region, *access, *secret;
    const char *digest; /* of the body, in hexadecimal digits */
    /* Lines that are sent beside Host, the digest and the date, in any order, with
     * names in lower case: "x-amz-security-token: value". NULL or "": not sent. */
    const char *headers[ARCHIVE_S3_HEADERS];
    int64_t now_ms; /* Unix time */
};

/* Makes the headers with the digest and the date, and Authorization, which signs these two, Host
 * and all of `headers`. */
bool archive_s3_sign(const struct archive_s3_signing *signing, char ret_digest[ARCHIVE_S3_HEADER],
                     char ret_date[ARCHIVE_S3_DATE], char ret_header[ARCHIVE_S3_SIGNATURE],
                     struct rd_err *err);

/* The host of a URL with its port: the header Host that is signed. */
struct rd_slice archive_s3_host(const char *url);

#endif
