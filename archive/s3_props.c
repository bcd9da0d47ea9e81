#include "archive/s3_props.h"

#include "archive/s3_sign.h"
#include "archive/web.h"

#include <stdio.h>
#include <time.h>

enum { TAG_KEY = 128, TAG_VALUE = 256 };

/* ---- values ---- */

static const struct archive_s3_dialect *dialect_of(const struct archive_s3_opts *opts)
{
    return opts->google ? &archive_s3_google : &archive_s3_amazon;
}

static bool wrong(struct rd_err *err, const char *text)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s", text);
}

/* name: after the prefix of the service. */
static bool put_line(char *ret, size_t size, const struct archive_s3_opts *opts, const char *name,
                     const char *value, struct rd_err *err)
{
    ret[0] = '\0';
    if (value == NULL)
        return true;
    int len = snprintf(ret, size, "%s%s: %s", dialect_of(opts)->prefix, name, value);
    return (len > 0 && (size_t)len < size) || wrong(err, "a setting of S3 is too long");
}

static bool consists_of(const char *text, size_t len, const char *others)
{
    for (size_t i = 0; i < len; i++)
        if (!(text[i] >= 'A' && text[i] <= 'Z') && !(text[i] >= 'a' && text[i] <= 'z') &&
            !(text[i] >= '0' && text[i] <= '9') && strchr(others, text[i]) == NULL)
            return false;
    return true;
}

/* Objects of an archive class are not readable before they are restored, which takes hours. */
static bool set_class(struct archive_s3_props *props, const struct archive_s3_opts *opts,
                      struct rd_err *err)
{
    const char *value = opts->storage_class;
    if (value != NULL && !consists_of(value, strlen(value), "_-"))
        return wrong(err, "s3-storage-class must be a word such as STANDARD_IA");
    if (value != NULL && (strcmp(value, "GLACIER") == 0 || strcmp(value, "DEEP_ARCHIVE") == 0))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "objects of the storage class %s cannot be read at once: GLACIER_IR is "
                          "an archive class that can",
                          value);
    return put_line(props->storage_class, sizeof props->storage_class, opts, "storage-class", value,
                    err);
}

/* Appends "key=value", escaped, of a text such as "team=data". */
static bool add_tag(struct archive_s3_props *props, const char *text, size_t len,
                    struct rd_err *err)
{
    static const char others[] = " +-=._:/@";
    const char *is = memchr(text, '=', len);
    size_t key_len = is != NULL ? (size_t)(is - text) : 0, used = strlen(props->tags);
    size_t value_len = key_len > 0 ? len - key_len - 1 : 0;
    if (key_len == 0 || key_len > TAG_KEY || value_len > TAG_VALUE ||
        !consists_of(text, len, others))
        return wrong(err, "s3-tags must be KEY=VALUE,… with letters, digits, spaces and "
                          "+ - = . _ : / @");
    char key[3 * TAG_KEY + 1], value[3 * TAG_VALUE + 1];
    bool ok =
        archive_web_escape(key, sizeof key, rd_slice(text, key_len), false) &&
        archive_web_escape(value, sizeof value, rd_slice(text + key_len + 1, value_len), false);
    int n = ok ? snprintf(props->tags + used, sizeof props->tags - used, "%s%s=%s",
                          used > 0 ? "&" : "x-amz-tagging: ", key, value)
               : 0;
    return (n > 0 && (size_t)n < sizeof props->tags - used) ||
           wrong(err, "a setting of S3 is too long");
}

static bool set_tags(struct archive_s3_props *props, const char *value, struct rd_err *err)
{
    unsigned n = 0;
    props->tags[0] = '\0';
    for (const char *at = value; at != NULL; n++) {
        size_t len = strcspn(at, ",");
        if (n == ARCHIVE_S3_TAGS)
            return wrong(err, "an object has at most 10 tags");
        if (!add_tag(props, at, len, err))
            return false;
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return true;
}

bool archive_s3_props_set(struct archive_s3_props *ret, const struct archive_s3_opts *opts,
                          struct rd_err *err)
{
    ret->lock_ms = opts->lock_ms;
    ret->prefix = dialect_of(opts)->prefix;
    if (opts->google && (opts->tags != NULL || opts->sse != NULL))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "objects in Google Cloud Storage have no %s",
                          opts->tags != NULL ? "tags" : "setting for encryption");
    return put_line(ret->sse, sizeof ret->sse, opts, "server-side-encryption", opts->sse, err) &&
           put_line(ret->mode, sizeof ret->mode, opts, "object-lock-mode", opts->lock_mode, err) &&
           set_class(ret, opts, err) && set_tags(ret, opts->tags, err);
}

/* ---- objects ---- */

/* The part of a name after the target: "sets/…". */
static bool is_in(const char *name, const char *folder)
{
    const char *rest = strchr(name, '/');
    size_t len = strlen(folder);
    return rest != NULL && strncmp(rest + 1, folder, len) == 0 && rest[1 + len] == '/';
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* Packs of chunks, and where chunks were moved. */
static bool is_pack(const char *name)
{
    return is_in(name, "chunks") && (ends_with(name, ".pack") || ends_with(name, ".moved"));
}

/* An object with a name for a while is copied to its own. */
static bool is_new(const char *name)
{
    return ends_with(name, ARCHIVE_S3_NEW);
}

static bool rests(const char *name)
{
    return !is_new(name) && (is_in(name, "sets") || is_pack(name));
}

static bool is_kept(const char *name)
{
    return !is_new(name) && (rests(name) || is_in(name, "stream") || is_in(name, "keys"));
}

bool archive_s3_props_lock(const struct archive_s3_props *props, const char *name)
{
    return props->mode[0] != '\0' && is_kept(name);
}

static void give(struct archive_s3_given *given, const char *line)
{
    if (line[0] != '\0')
        given->lines[given->n++] = line;
}

/* Unix time as the service writes it. */
static void put_until(struct archive_s3_given *given, const char *prefix, int64_t ms)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    char text[32] = "";
    if (gmtime_r(&at, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(given->until, sizeof given->until, "%sobject-lock-retain-until-date: %s", prefix,
             text);
}

void archive_s3_props_give(const struct archive_s3_props *props, const char *name, int64_t now_ms,
                           struct archive_s3_given *ret)
{
    *ret = (struct archive_s3_given){.n = 0};
    give(ret, props->sse);
    if (rests(name))
        give(ret, props->storage_class);
    if (is_kept(name))
        give(ret, props->tags);
    if (!archive_s3_props_lock(props, name))
        return;
    put_until(ret, props->prefix, now_ms + (int64_t)props->lock_ms);
    give(ret, props->mode);
    give(ret, ret->until);
}
