/* s3_request.h - the requests of a store in S3; private to archive/.
 *
 *     struct rd_buf answer = {0};
 *     struct archive_s3_request r = {.method = "GET", .url = url, .out = &answer, .max = …};
 *     if (!archive_s3_simple(s, &r, &err))
 *         ...
 *
 * A request that fails temporarily is repeated. Its last answer is judged: only what S3 would say
 * counts as done.
 */
#ifndef ARCHIVE_S3_REQUEST_H
#define ARCHIVE_S3_REQUEST_H

#include "archive/remote.h"
#include "archive/s3_answer.h"
#include "archive/s3_props.h"
#include "archive/s3_sign.h"
#include "archive/store_s3.h"
#include "archive/web.h"

enum {
    ARCHIVE_S3_ANSWER_MAX = 8 * 1024 * 1024,
    ARCHIVE_S3_URL_MAX = ARCHIVE_URL_MAX + 2 * ARCHIVE_S3_ESCAPED_MAX + 64 /* with a query */
};

struct archive_s3 {
    struct archive_store store;
    struct archive_remote remote;
    char base[ARCHIVE_URL_MAX];         /* of all objects, with the slash at its end */
    char bucket[ARCHIVE_URL_MAX];       /* of the bucket itself */
    char name[100];                     /* its name */
    char prefix[ARCHIVE_NAME_MAX];      /* of all keys, with a slash at its end; or "" */
    char escaped[3 * ARCHIVE_NAME_MAX]; /* the same in a URL */
    char access[ARCHIVE_S3_LOGIN_MAX], secret[ARCHIVE_S3_LOGIN_MAX];
    char region[80];
    char token[ARCHIVE_S3_TOKEN_MAX + 40]; /* the header with the session's token, or "" */
    const struct archive_s3_dialect *dialect;
    struct archive_s3_props props;
    char *ca_file;
    const struct archive_s3_keys *(*keys)(void *ctx, bool rejected, struct rd_err *err);
    void (*keys_done)(void *ctx);
    void *keys_ctx;
    int64_t (*now_ms)(void);
    bool (*random)(void *ret, size_t size, struct rd_err *err);
    size_t part_size;
};

struct archive_s3 *archive_s3_of(struct archive_store *store);

struct archive_s3_request {
    const char *method;
    const char *url;
    struct rd_slice body;
    const char *header; /* an additional one, or NULL */
    bool fresh;         /* only if there is no such object */
    const char *source; /* the header that names an object to be copied, or NULL */
    const char *object; /* the name of the object that is begun, which is given its props; NULL */
    bool checked;       /* the SHA-256 of the body is sent as the checksum of the object */
    char checksum[ARCHIVE_S3_CHECKSUM]; /* this one */
    struct rd_buf *out;
    size_t max;    /* of out */
    size_t before; /* bytes in out that are not of the answer */
    long status;
    bool lost;                    /* there was a try whose effect is not known */
    struct archive_web_head head; /* of the answer */
};

/* Retries after temporary failures. False: the host does not answer. Otherwise r->status is the
 * status of the last answer, and *r->out its body. */
bool archive_s3_perform(struct archive_s3 *s, struct archive_s3_request *r, struct rd_err *err);

/* A request whose answer goes to r->out. Every status that does not say that it was done is an
 * error. */
bool archive_s3_simple(struct archive_s3 *s, struct archive_s3_request *r, struct rd_err *err);

/* The same; the answer is an empty one. With missing_ok, S3's word that there is no such object or
 * upload counts as done. */
bool archive_s3_bare(struct archive_s3 *s, struct archive_s3_request *r, bool missing_ok,
                     struct rd_err *err);

/* Whether the status says that the request was done. */
bool archive_s3_is_done(const struct archive_s3_request *r);
/* Whether another try may succeed. */
bool archive_s3_passes(const struct archive_s3_request *r, CURLcode code);

/* Errors about an answer; they return false. */
bool archive_s3_fail(const struct archive_s3 *s, const struct archive_s3_request *r,
                     struct rd_err *err);
bool archive_s3_unexpected(const struct archive_s3 *s, const struct archive_s3_request *r,
                           struct rd_err *err);

/* The URL of an object. */
bool archive_s3_object_url(const struct archive_s3 *s, const char *name, const char *query,
                           char *ret, size_t size, struct rd_err *err);

/* Sets the keys of the following requests. */
bool archive_s3_set_login(struct archive_s3 *s, const char *access, const char *secret,
                          const char *token, struct rd_err *err);
/* Whether snprintf() returned that all fits. RD_ERR_USAGE */
bool archive_s3_fits(int len, size_t size, struct rd_err *err);

#endif
