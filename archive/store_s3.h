/* store_s3.h - a repository in a bucket of S3, or of a store with the same protocol.
 *
 *     const struct archive_s3_opts opts = {.endpoint = "https://s3.eu-central-1.amazonaws.com",
 *                                          .region = "eu-central-1", .bucket = "backups",
 *                                          .access_key = …, .secret_key = …};
 *     if (!archive_store_open_s3(&store, &opts, &err))
 *         ...
 *
 * Requests are signed with AWS Signature Version 4. Objects larger than a
 * part are uploaded in parts. A request that fails temporarily (the network, 429, 5xx) is repeated,
 * with delays that double: an upload resumes with the part that was interrupted. Memory: one part
 * and one range.
 *
 * Strings are copied. Errors never contain a key.
 */
#ifndef ARCHIVE_STORE_S3_H
#define ARCHIVE_STORE_S3_H

#include "archive/s3_keys.h"
#include "archive/store.h"

#include <stdatomic.h>

enum { ARCHIVE_S3_PART = 8 * 1024 * 1024, ARCHIVE_S3_PART_MIN = 5 * 1024 * 1024 };

struct archive_s3_opts {
    const char *endpoint; /* https://HOST[:PORT] */
    const char *region;
    const char *bucket;
    const char *prefix; /* before all names, without slashes at its ends; NULL: none */
    const char *access_key, *secret_key;
    const char *session_token; /* may be NULL */
    /* Instead of these: called before each request, and with `rejected` after the store has refused
     * the last keys. NULL: not used. */
    const struct archive_s3_keys *(*keys)(void *ctx, bool rejected, struct rd_err *err);
    void (*keys_done)(void *ctx); /* called once, also if the store cannot be opened */
    void *keys_ctx;
    const char *ca_file;       /* trusted authorities; NULL: the system's list */
    const char *sse;           /* x-amz-server-side-encryption: "AES256"; may be NULL */
    const char *storage_class; /* of sets and chunks: "STANDARD_IA"; may be NULL */
    const char *tags;          /* of what is kept: "team=data,env=prod"; may be NULL */
    const char *lock_mode;     /* of what is kept: "GOVERNANCE" or "COMPLIANCE"; may be NULL */
    uint64_t lock_ms;          /* how long such an object is locked */
    bool google;               /* a bucket of Google Cloud Storage, with its own headers */
    bool host_style;           /* BUCKET.HOST instead of HOST/BUCKET */
    size_t part_size;          /* 0: ARCHIVE_S3_PART */
    int64_t (*now_ms)(void);   /* Unix time: signatures are of a moment */
    bool (*random)(void *ret, size_t size, struct rd_err *err); /* with google: for names */
    unsigned tries;                                             /* of a request; 0: 6 */
    void (*wait_ms)(uint64_t ms);                               /* between them */
    uint64_t rate;             /* bytes a second in each direction; 0: no limit */
    const atomic_bool *cancel; /* true: requests end; NULL: none */
};

bool archive_store_open_s3(struct archive_store **ret, const struct archive_s3_opts *opts,
                           struct rd_err *err);

#endif
