/* places.c - a repository by what the configuration calls it: a folder, a bucket of S3, a container
 * of Azure, or a host.
 */
#include "backup/places.h"

#include "backup/instance.h"
#include "backup/place_azure.h"
#include "backup/place_webdav.h"
#include "backup/system.h"
#include "archive/http.h"
#include "archive/retain.h"
#include "archive/store_sftp.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum { SECRET_MAX = 4096 };

/* A hundred years. */
static const uint64_t LOCK_MAX_MS = 36525ULL * 24 * 3600 * 1000;

/* ---- S3 ---- */

struct secrets {
    struct rd_buf text;
    const char *access_key, *secret_key, *session_token;
};

/* The first two lines of text, which are terminated in place. */
static bool split_lines(struct secrets *s, struct rd_err *err)
{
    if (!rd_buf_add_byte(&s->text, '\0'))
        return rd_err_nomem(err, s->text.len);
    char *rest = (char *)s->text.ptr;
    s->access_key = strsep(&rest, "\r\n");
    while (rest != NULL && (rest[0] == '\n' || rest[0] == '\r'))
        rest++;
    s->secret_key = rest != NULL ? strsep(&rest, "\r\n") : "";
    return (s->access_key[0] != '\0' && s->secret_key[0] != '\0') ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "it must contain two lines: the id of the access key, and the secret");
}

static bool find_secrets(struct secrets *s, const struct backup_target *target, struct rd_err *err)
{
    const char *file = backup_get(target, BACKUP_KEY_S3_KEY_FILE);
    const char *command = backup_get(target, BACKUP_KEY_S3_KEY_COMMAND);
    const char *name = backup_key_name(BACKUP_KEY_S3_KEY_COMMAND);
    if (file == NULL && command == NULL) {
        s->access_key = backup_env("AWS_ACCESS_KEY_ID");
        s->secret_key = backup_env("AWS_SECRET_ACCESS_KEY");
        s->session_token = backup_env("AWS_SESSION_TOKEN");
        return (s->access_key != NULL && s->secret_key != NULL) ||
               rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no access key: s3-key-file, s3-key-command, s3-instance-keys, or "
                          "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    }
    bool ok = file != NULL ? backup_read_file(file, SECRET_MAX, &s->text, err)
                           : backup_run(name, command, NULL, SECRET_MAX, &s->text, err);
    ok = ok && split_lines(s, err);
    if (!ok)
        rd_err_origin(err, file != NULL ? file : name);
    return ok;
}

static bool set_style(struct archive_s3_opts *opts, const struct backup_target *target,
                      struct rd_err *err)
{
    const char *style = backup_get(target, BACKUP_KEY_S3_STYLE);
    opts->host_style = style != NULL && strcmp(style, "host") == 0;
    return style == NULL || opts->host_style || strcmp(style, "path") == 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "s3-style must be path or host");
}

/* "compliance 30d" */
static bool set_lock(struct archive_s3_opts *opts, const struct backup_target *target,
                     struct rd_err *err)
{
    static const char *const modes[][2] = {{"governance", "GOVERNANCE"},
                                           {"compliance", "COMPLIANCE"}};
    const char *text = backup_get(target, BACKUP_KEY_S3_OBJECT_LOCK);
    size_t len = text != NULL ? strcspn(text, " ") : 0;
    for (size_t i = 0; text != NULL && i < sizeof modes / sizeof *modes; i++)
        if (rd_slice_is(rd_slice(text, len), modes[i][0]))
            opts->lock_mode = modes[i][1];
    if (text == NULL)
        return true;
    const char *time = text + len + strspn(text + len, " ");
    return (opts->lock_mode != NULL && archive_get_duration(rd_slice_str(time), &opts->lock_ms) &&
            opts->lock_ms > 0 && opts->lock_ms <= LOCK_MAX_MS) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "s3-object-lock must be governance or compliance, and a time such as 30d");
}

/* s3://BUCKET[/PREFIX] */
static bool open_bucket(struct archive_store **ret, const struct backup_target *target,
                        const char *where, uint64_t rate, const atomic_bool *cancel,
                        struct rd_err *err)
{
    char bucket[100], endpoint[300];
    const char *region = backup_get(target, BACKUP_KEY_S3_REGION);
    const char *place = backup_get(target, BACKUP_KEY_S3_ENDPOINT);
    const char *name = where + strlen("s3://");
    size_t len = strcspn(name, "/");
    const char *prefix = name[len] != '\0' && name[len + 1] != '\0' ? name + len + 1 : NULL;
    struct secrets secrets = {.access_key = NULL};
    if (!archive_http_built("repositories in S3", err))
        return false;
    if (len == 0 || len >= sizeof bucket || name[strlen(name) - 1] == '/')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a bucket must be s3://BUCKET/PREFIX");
    region = region != NULL ? region : "us-east-1";
    snprintf(bucket, sizeof bucket, "%.*s", (int)len, name);
    snprintf(endpoint, sizeof endpoint, "https://s3.%s.amazonaws.com", region);
    struct archive_s3_opts opts = {.endpoint = place != NULL ? place : endpoint,
                                   .region = region,
                                   .bucket = bucket,
                                   .prefix = prefix,
                                   .ca_file = backup_get(target, BACKUP_KEY_CA_FILE),
                                   .sse = backup_get(target, BACKUP_KEY_S3_SSE),
                                   .storage_class = backup_get(target, BACKUP_KEY_S3_STORAGE_CLASS),
                                   .tags = backup_get(target, BACKUP_KEY_S3_TAGS),
                                   .now_ms = backup_now_ms,
                                   .tries = cancel != NULL,
                                   .wait_ms = backup_wait_ms,
                                   .rate = rate,
                                   .cancel = cancel};
    bool instance,
        ok = set_style(&opts, target, err) && set_lock(&opts, target, err) &&
             backup_get_bool(target, BACKUP_KEY_S3_INSTANCE_KEYS, &instance, err) &&
             (instance ? backup_instance_keys(&opts, err) : find_secrets(&secrets, target, err));
    opts.access_key = secrets.access_key;
    opts.secret_key = secrets.secret_key;
    opts.session_token = secrets.session_token;
    ok = ok && archive_store_open_s3(ret, &opts, err);
    if (secrets.text.len > 0)
        explicit_bzero(secrets.text.ptr, secrets.text.len);
    rd_buf_done(&secrets.text);
    return ok;
}

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

/* A URL with text before the host that looks like a password, or with parameters, is not repeated.
 */
static bool may_be_shown(const char *where)
{
    const char *rest = strstr(where, "://");
    size_t len = rest != NULL ? strcspn(rest + 3, "@") : 0;
    return rest == NULL || (strchr(rest, '?') == NULL &&
                            (rest[3 + len] == '\0' || memchr(rest + 3, ':', len) == NULL));
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
    if (strncmp(where, "s3://", 5) == 0)
        ok = open_bucket(ret, target, where, rate, cancel, err);
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
                        "a repository must be a folder, s3://BUCKET/PREFIX, "
                        "azure://ACCOUNT/CONTAINER/PREFIX, "
                        "sftp://USER@HOST/PATH or webdavs://USER@HOST/PATH");
    if (!ok && may_be_shown(where))
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
