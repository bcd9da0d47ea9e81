/* azure_request.h - the requests of a store in Azure; private to archive/.
 *
 *     struct rd_buf answer = {0};
 *     struct archive_azure_request r = {.method = "GET", .url = url, .out = &answer, .max = …};
 *     if (!archive_azure_perform(s, &r, &err))
 *         ... the host does not answer ...
 *     if (!archive_azure_is(&r, 200))
 *         ... archive_azure_fail(s, &r, &err) ...
 *
 * Only what the service itself would say counts: its answers have an x-ms-request-id, and its
 * errors an x-ms-error-code.
 */
#ifndef ARCHIVE_AZURE_REQUEST_H
#define ARCHIVE_AZURE_REQUEST_H

#include "archive/azure_sign.h"
#include "archive/s3_answer.h"
#include "archive/store_azure.h"
#include "archive/web.h"

enum {
    ARCHIVE_AZURE_ANSWER_MAX = 8 * 1024 * 1024,
    ARCHIVE_AZURE_ERROR_MAX = 8192,
    ARCHIVE_AZURE_KEY_MAX = 256,                                               /* bytes */
    ARCHIVE_AZURE_URL_MAX = ARCHIVE_URL_MAX + 2 * ARCHIVE_S3_ESCAPED_MAX + 128 /* with a query */
};

struct archive_azure {
    struct archive_store store;
    struct archive_remote remote;
    char account[ARCHIVE_AZURE_ACCOUNT_MAX];
    char base[ARCHIVE_URL_MAX];         /* of the container */
    char prefix[ARCHIVE_NAME_MAX];      /* of all names, with a slash at its end; or "" */
    char escaped[3 * ARCHIVE_NAME_MAX]; /* the same in a URL */
    uint8_t key[ARCHIVE_AZURE_KEY_MAX];
    size_t key_len;
    char *sas;
    char *ca_file;
    int64_t (*now_ms)(void);
    size_t part_size;
    uint64_t upload; /* random */
    uint64_t n_uploads;
};

struct archive_azure *archive_azure_of(struct archive_store *store);

struct archive_azure_request {
    const char *method;
    const char *url; /* without a SAS */
    struct rd_slice body;
    const char *header; /* Range or If-None-Match; NULL: none */
    bool blob;          /* makes a whole blob */
    struct rd_buf *out;
    size_t max;   /* of out */
    size_t begin; /* of the answer in out */
    long status;
    bool lost;                    /* there was a try whose effect is not known */
    struct archive_web_head head; /* of the answer */
};

/* Retries after temporary failures. False: the host does not answer. Otherwise r->status is the
 * status of the last answer, and *r->out its body. */
bool archive_azure_perform(struct archive_azure *s, struct archive_azure_request *r,
                           struct rd_err *err);

/* The answer without what was in r->out before. */
struct rd_slice archive_azure_body(const struct archive_azure_request *r);

/* Whether the service itself answered with this status. */
bool archive_azure_is(const struct archive_azure_request *r, long status);
/* Whether it refused the request with this status and code: 404, "BlobNotFound". */
bool archive_azure_refused(const struct archive_azure_request *r, long status, const char *code);

/* Sets err to the error of a request, with the code and the message of the service; false. */
bool archive_azure_fail(const struct archive_azure *s, const struct archive_azure_request *r,
                        struct rd_err *err);

/* The URL of an object. */
bool archive_azure_url(const struct archive_azure *s, const char *name, const char *query,
                       char *ret, size_t size, struct rd_err *err);

#endif
