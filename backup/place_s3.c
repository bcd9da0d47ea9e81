/* place_s3.c - a bucket of S3, or of Google Cloud Storage. */
#include "backup/place_s3.h"

#include "archive/http.h"
#include "archive/retain.h"
#include "archive/store_s3.h"
#include "backup/instance.h"
#include "backup/system.h"
#include "base/buf.h"

#include <stdio.h>

enum { SECRET_MAX = 4096, ENDPOINT_MAX = 300 };

/* A hundred years. */
static const uint64_t LOCK_MAX_MS = 36525ULL * 24 * 3600 * 1000;

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

static bool find_secrets(struct secrets *s, const struct backup_target *target, bool google,
                         struct rd_err *err)
{
    const char *file = backup_get(target, BACKUP_KEY_S3_KEY_FILE);
    const char *command = backup_get(target, BACKUP_KEY_S3_KEY_COMMAND);
    const char *name = backup_key_name(BACKUP_KEY_S3_KEY_COMMAND);
    if (file == NULL && command == NULL && google)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no access key: s3-key-file or s3-key-command, with a key for HMAC");
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

/* Where the service is, if the configuration does not say so. */
static void set_service(struct archive_s3_opts *opts, const struct backup_target *target,
                        char ret_endpoint[ENDPOINT_MAX])
{
    const char *region = backup_get(target, BACKUP_KEY_S3_REGION);
    const char *endpoint = backup_get(target, BACKUP_KEY_S3_ENDPOINT);
    opts->region = region != NULL ? region : opts->google ? "auto" : "us-east-1";
    if (opts->google)
        snprintf(ret_endpoint, ENDPOINT_MAX, "https://storage.googleapis.com");
    else
        snprintf(ret_endpoint, ENDPOINT_MAX, "https://s3.%s.amazonaws.com", opts->region);
    opts->endpoint = endpoint != NULL ? endpoint : ret_endpoint;
}

static bool set_keys(struct archive_s3_opts *opts, const struct backup_target *target,
                     struct secrets *secrets, struct rd_err *err)
{
    bool instance;
    if (!backup_get_bool(target, BACKUP_KEY_S3_INSTANCE_KEYS, &instance, err))
        return false;
    if (instance && opts->google)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "s3-instance-keys is not for Google Cloud Storage");
    if (instance)
        return backup_instance_keys(opts, err);
    bool ok = find_secrets(secrets, target, opts->google, err);
    opts->access_key = secrets->access_key;
    opts->secret_key = secrets->secret_key;
    opts->session_token = secrets->session_token;
    return ok;
}

bool backup_open_s3(struct archive_store **ret, const struct backup_target *target,
                    const char *where, uint64_t rate, const atomic_bool *cancel, struct rd_err *err)
{
    char bucket[100], endpoint[ENDPOINT_MAX];
    const char *name = strstr(where, "://") + 3;
    size_t len = strcspn(name, "/");
    struct secrets secrets = {.access_key = NULL};
    if (!archive_http_built("repositories in S3", err))
        return false;
    if (len == 0 || len >= sizeof bucket || name[strlen(name) - 1] == '/')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "a bucket must be s3://BUCKET/PREFIX or gs://BUCKET/PREFIX");
    snprintf(bucket, sizeof bucket, "%.*s", (int)len, name);
    struct archive_s3_opts opts = {.google = strncmp(where, "gs://", 5) == 0,
                                   .bucket = bucket,
                                   .prefix = name[len] != '\0' ? name + len + 1 : NULL,
                                   .ca_file = backup_get(target, BACKUP_KEY_CA_FILE),
                                   .sse = backup_get(target, BACKUP_KEY_S3_SSE),
                                   .storage_class = backup_get(target, BACKUP_KEY_S3_STORAGE_CLASS),
                                   .tags = backup_get(target, BACKUP_KEY_S3_TAGS),
                                   .now_ms = backup_now_ms,
                                   .random = backup_random,
                                   .tries = cancel != NULL,
                                   .wait_ms = backup_wait_ms,
                                   .rate = rate,
                                   .cancel = cancel};
    set_service(&opts, target, endpoint);
    bool ok = set_style(&opts, target, err) && set_lock(&opts, target, err) &&
              set_keys(&opts, target, &secrets, err) && archive_store_open_s3(ret, &opts, err);
    if (secrets.text.len > 0)
        explicit_bzero(secrets.text.ptr, secrets.text.len);
    rd_buf_done(&secrets.text);
    return ok;
}
