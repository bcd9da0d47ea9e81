/* instance.c - keys of S3 from the platform, renewed before they expire. */
#include "backup/instance.h"

#include "backup/system.h"
#include "archive/s3_keys.h"
#include "base/mem.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>

enum { AHEAD_MS = 300000, AUTHORIZATION_MAX = 4096 };

struct instance {
    struct archive_s3_keys keys;
    int64_t expires_ms; /* INT64_MAX: never; INT64_MIN: there are no keys yet */
};

/* The first line of the file that AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names; it is rotated. */
static bool read_authorization(const char *path, struct rd_buf *ret, struct rd_err *err)
{
    if (!backup_read_file(path, AUTHORIZATION_MAX, ret, err))
        return false;
    if (!rd_buf_add_byte(ret, '\0'))
        return rd_err_nomem(err, ret->len);
    ret->ptr[strcspn((const char *)ret->ptr, "\r\n")] = '\0';
    return true;
}

static bool ask_container(struct archive_s3_keys *ret, const char *url, struct rd_err *err)
{
    const char *path = backup_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *authorization = backup_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    struct rd_buf text = {0};
    bool ok = path == NULL || read_authorization(path, &text, err);
    if (ok && path != NULL)
        authorization = (const char *)text.ptr;
    ok = ok && archive_s3_keys_container(ret, url, authorization, err);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}

/* The variables are those that the platforms set and other programs read. */
static bool ask_platform(struct archive_s3_keys *ret, struct rd_err *err)
{
    const char *relative = backup_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = backup_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *endpoint = backup_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char url[1000];
    if (relative != NULL) {
        snprintf(url, sizeof url, ARCHIVE_S3_CONTAINER "%s%.900s", relative[0] == '/' ? "" : "/",
                 relative);
        full = url;
    }
    if (full != NULL)
        return ask_container(ret, full, err);
    return archive_s3_keys_instance(ret, endpoint != NULL ? endpoint : ARCHIVE_S3_INSTANCE, err);
}

static bool renew(struct instance *i, struct rd_err *err)
{
    struct archive_s3_keys keys;
    int64_t expires_ms = INT64_MAX;
    if (!ask_platform(&keys, err))
        return false;
    bool ok =
        keys.expires[0] == '\0' || rd_time_get(keys.expires, 0, &expires_ms) ||
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the keys have no valid time of expiry");
    if (ok) {
        i->keys = keys;
        i->expires_ms = expires_ms;
    }
    archive_s3_keys_done(&keys);
    return ok;
}

/* Keys that are about to expire are used as long as they hold if there are no others. */
static const struct archive_s3_keys *get_keys(void *ctx, bool rejected, struct rd_err *err)
{
    struct instance *i = ctx;
    struct rd_err failed = {0};
    int64_t now = backup_now_ms();
    bool due = i->expires_ms == INT64_MIN ||
               (i->expires_ms != INT64_MAX && i->expires_ms - AHEAD_MS <= now);
    if ((due || rejected) && !renew(i, &failed) && (i->expires_ms <= now || rejected)) {
        rd_err_adopt(err, &failed);
        return NULL;
    }
    return &i->keys;
}

static void free_keys(void *ctx)
{
    struct instance *i = ctx;
    archive_s3_keys_done(&i->keys);
    rd_free(i);
}

bool backup_instance_keys(struct archive_s3_opts *opts, struct rd_err *err)
{
    struct instance *i = rd_calloc(1, sizeof *i);
    if (i == NULL)
        return rd_err_nomem(err, sizeof *i);
    i->expires_ms = INT64_MIN;
    opts->keys = get_keys;
    opts->keys_done = free_keys;
    opts->keys_ctx = i;
    return true;
}
