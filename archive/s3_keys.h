/* s3_keys.h - access keys of S3 that a host or a container gets from its platform.
 *
 *     struct archive_s3_keys keys;
 *     if (!archive_s3_keys_instance(&keys, ARCHIVE_S3_INSTANCE, &err))
 *         ...
 *     ... keys.access, keys.secret, keys.token until keys.expires ...
 *     archive_s3_keys_done(&keys);
 *
 * The platform is asked directly, without a proxy. No error contains a part of an answer.
 */
#ifndef ARCHIVE_S3_KEYS_H
#define ARCHIVE_S3_KEYS_H

#include "base/err.h"

#define ARCHIVE_S3_INSTANCE  "http://169.254.169.254"
#define ARCHIVE_S3_CONTAINER "http://169.254.170.2"

enum { ARCHIVE_S3_KEY_MAX = 256, ARCHIVE_S3_TOKEN_MAX = 4096, ARCHIVE_S3_TIME_MAX = 64 };

struct archive_s3_keys {
    char access[ARCHIVE_S3_KEY_MAX];
    char secret[ARCHIVE_S3_KEY_MAX];
    char token[ARCHIVE_S3_TOKEN_MAX];  /* of the session; may be empty */
    char expires[ARCHIVE_S3_TIME_MAX]; /* RFC 3339; empty: they do not expire */
};

/* Gets the keys from the metadata service of an instance, version 2: a token, the name of the role,
 * its keys. Version 1, which works without a token, is not used. */
bool archive_s3_keys_instance(struct archive_s3_keys *ret, const char *endpoint,
                              struct rd_err *err);

/* Gets the keys from the URL that the container was given. authorization: the value of this header,
 * or NULL. The URL must be https:, or its host this host or one that platforms use. */
bool archive_s3_keys_container(struct archive_s3_keys *ret, const char *url,
                               const char *authorization, struct rd_err *err);

/* Clears the keys. */
void archive_s3_keys_done(struct archive_s3_keys *keys);

#endif
