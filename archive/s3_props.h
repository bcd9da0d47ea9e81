/* s3_props.h - what new objects in S3 are given beside their bytes: encryption by the service, a
 * storage class, tags, and a lock against removal; private to archive/.
 *
 *     struct archive_s3_props props;
 *     if (!archive_s3_props_set(&props, &opts, &err))
 *         ...
 *     struct archive_s3_given given;
 *     archive_s3_props_give(&props, "nightly/sets/1/dump.rdb", now_ms, &given);
 *     ... headers given.lines[0] to given.lines[given.n - 1] ...
 *
 * Only what a repository keeps has tags and a lock: objects of sets, of the stream, of its index of
 * keys, and chunks. The storage class is that of sets and chunks: small segments of a stream are
 * soon replaced by larger ones, which costs more in the classes for rare access. Locks of runs,
 * marks and catalogues have none of this, nor has an object with a name for a while. Google Cloud
 * Storage has no tags. Limits are those of the API reference of Amazon S3 (PutObject, "Categorizing
 * your storage using tags").
 */
#ifndef ARCHIVE_S3_PROPS_H
#define ARCHIVE_S3_PROPS_H

#include "archive/store_s3.h"

#define ARCHIVE_S3_NEW ".new" /* the end of a name that an object has for a while */

enum {
    ARCHIVE_S3_PROPS = 7,    /* headers of an object, at most */
    ARCHIVE_S3_TAGS = 10,    /* of an object */
    ARCHIVE_S3_CHECKSUM = 48 /* a SHA-256 in base64 */
};

/* Headers; "": not sent. */
struct archive_s3_props {
    char sse[100];
    char storage_class[100];
    char tags[8192];
    char mode[60];
    uint64_t lock_ms;
    const char *prefix; /* of all headers */
};

struct archive_s3_given {
    const char *lines[ARCHIVE_S3_PROPS]; /* of the props, and of this struct */
    size_t n;
    char until[80];
};

/* RD_ERR_USAGE: a value is not valid. */
bool archive_s3_props_set(struct archive_s3_props *ret, const struct archive_s3_opts *opts,
                          struct rd_err *err);

/* The headers with which an object is begun. */
void archive_s3_props_give(const struct archive_s3_props *props, const char *name, int64_t now_ms,
                           struct archive_s3_given *ret);

/* Whether an object is locked: the service wants checksums with its bytes. */
bool archive_s3_props_lock(const struct archive_s3_props *props, const char *name);

#endif
