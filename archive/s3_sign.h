/* s3_sign.h - AWS Signature Version 4 of a request; private to archive/.
 *
 *     struct archive_s3_signing signing = {.method = "GET", .url = url, .region = region,
 *                                          .access = access, .secret = secret,
 *                                          .digest = hex, .now_ms = now_ms};
 *     char date[ARCHIVE_S3_DATE], header[ARCHIVE_S3_SIGNATURE];
 *     if (!archive_s3_sign(&signing, date, header, &err))
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
    ARCHIVE_S3_SIGNATURE = 1024 /* "Authorization: AWS4-HMAC-SHA256 Credential=…" */
};

struct archive_s3_signing {
    const char *method;
    const char *url; /* with its path and query escaped, and the query sorted by name */
    const char *region, *access, *secret;
    const char *digest; /* of the body, in hexadecimal digits */
    /* Lines that are sent beside Host, x-amz-content-sha256 and x-amz-date, in any order, with
     * names in lower case: "x-amz-security-token: value". NULL or "": not sent. */
    const char *headers[ARCHIVE_S3_HEADERS];
    int64_t now_ms; /* Unix time */
};

/* Makes the headers x-amz-date and Authorization, which signs all of `headers`. */
bool archive_s3_sign(const struct archive_s3_signing *signing, char ret_date[ARCHIVE_S3_DATE],
                     char ret_header[ARCHIVE_S3_SIGNATURE], struct rd_err *err);

/* The host of a URL with its port: the header Host that is signed. */
struct rd_slice archive_s3_host(const char *url);

#endif
