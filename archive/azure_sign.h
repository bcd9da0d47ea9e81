/* azure_sign.h - the Shared Key authorization of Azure Storage; private to archive/.
 *
 *     const char *headers[] = {"Range: bytes=0-9", date, "x-ms-version: 2021-08-06", NULL};
 *     const struct archive_azure_signing signing = {.method = "GET", .url = url,
 *                                                   .account = "redis", .key = key,
 *                                                   .headers = headers};
 *     if (!archive_azure_date(now_ms, date, &err) || !archive_azure_sign(&signing, header, &err))
 *         ...
 *
 * Source: "Authorize with Shared Key" in the documentation of Azure Storage, for versions of the
 * service from 2015-02-21 on.
 */
#ifndef ARCHIVE_AZURE_SIGN_H
#define ARCHIVE_AZURE_SIGN_H

#include "base/err.h"
#include "base/slice.h"

enum {
    ARCHIVE_AZURE_ACCOUNT_MAX = 64,
    ARCHIVE_AZURE_DATE = 48,      /* "x-ms-date: Sat, 31 Jan 2026 23:59:59 GMT" */
    ARCHIVE_AZURE_SIGNATURE = 400 /* "Authorization: SharedKey ACCOUNT:…" */
};

struct archive_azure_signing {
    const char *method;
    const char *url; /* with its path and query escaped, and the query sorted by name */
    const char *account;
    struct rd_slice key; /* decoded */
    uint64_t body_len;
    /* Lines as they are sent, up to NULL; those that begin with x-ms- are sorted by name. "": none
     */
    const char *const *headers;
};

/* Makes the header x-ms-date. */
bool archive_azure_date(int64_t now_ms, char ret[ARCHIVE_AZURE_DATE], struct rd_err *err);

/* Makes the header Authorization. */
bool archive_azure_sign(const struct archive_azure_signing *signing,
                        char ret[ARCHIVE_AZURE_SIGNATURE], struct rd_err *err);

#endif
