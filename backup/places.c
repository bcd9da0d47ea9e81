/* places.c - a repository by what the configuration calls it: a folder, a bucket of S3 or Google, a
 * container of Azure, or a host with SFTP or WebDAV.
 */
#include "backup/places.h"

#include "backup/place_azure.h"
#include "backup/place_s3.h"
#include "backup/place_webdav.h"
#include "backup/system.h"
#include "archive/store_sftp.h"

#include <stdio.h>

/* ---- SFTP ---- */

static bool open_host(struct archive_store **ret, const struct backup_target *target,
                      const char *where, uint64_t rate, const atomic_bool *cancel,
                      struct rd_err *err)
{
    char known[4096];
    const char *hosts = backup_get(target, BACKUP_KEY_SSH_KNOWN_HOSTS), *home = backup_env("HOME");
    snprintf(known, sizeof known, "%s/.ssh/known_hosts", home != NULL ? home : "");
    const struct archive_sftp_opts opts = {.url = where,
                                           .key_file = backup_get(target, BACKUP_KEY_SSH_KEY_FILE),
                                           .known_hosts = hosts != NULL ? hosts : known,
                                           .tries = cancel != NULL,
                                           .wait_ms = backup_wait_ms,
                                           .rate = rate,
                                           .cancel = cancel};
    return archive_store_open_sftp(ret, &opts, err);
}

/* Connections that read ahead share the rate. */
static bool get_rate(const struct backup_target *target, bool is_ahead, uint64_t *ret,
                     struct rd_err *err)
{
    unsigned n = 1;
    *ret = 0;
    if (!backup_get_size(target, BACKUP_KEY_LIMIT_RATE, ret, err) ||
        !backup_get_parallel(target, &n, err))
        return false;
    if (*ret > 0 && is_ahead)
        *ret = *ret / n > 0 ? *ret / n : 1;
    return true;
}

static bool open_store(struct archive_store **ret, const struct backup_target *of,
                       const char *where, enum backup_mode mode, const atomic_bool *cancel,
                       struct rd_err *err)
{
    bool ok;
    uint64_t rate;
    struct backup_target at, *target = &at;
    backup_target_at(of, where, target);
    if (!get_rate(target, cancel != NULL, &rate, err))
        return false;
    if (strncmp(where, "s3://", 5) == 0 || strncmp(where, "gs://", 5) == 0)
        ok = backup_open_s3(ret, target, where, rate, cancel, err);
    else if (strncmp(where, "azure://", 8) == 0)
        ok = backup_open_azure(ret, target, where, rate, cancel, err);
    else if (strncmp(where, "sftp://", 7) == 0)
        ok = open_host(ret, target, where, rate, cancel, err);
    else if (backup_is_webdav(where))
        ok = backup_open_webdav(ret, target, where, rate, cancel, err);
    else if (strstr(where, "://") == NULL)
        return archive_store_open_posix(ret, where, mode == BACKUP_WRITE, err);
    else
        ok = rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                        "a repository must be a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
                        "azure://ACCOUNT/CONTAINER/PREFIX, "
                        "sftp://USER@HOST/PATH or webdavs://USER@HOST/PATH");
    if (!ok && backup_may_be_shown(where))
        rd_err_origin(err, where);
    return ok;
}

bool backup_open_store(struct archive_store **ret, const struct backup_target *target,
                       const char *where, enum backup_mode mode, struct rd_err *err)
{
    return open_store(ret, target, where, mode, NULL, err);
}

bool backup_open_again(struct archive_store **ret, const struct backup_target *target,
                       const char *where, const atomic_bool *cancel, struct rd_err *err)
{
    return open_store(ret, target, where, BACKUP_READ, cancel, err);
}
