#include "archive/s3_put.h"
#include "archive/s3_request.h"

#include "archive/ranges.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { STAT_TRIES = 3, ERROR_MAX = 4096 /* bytes of an answer that refuses a range */ };

/* ---- get ---- */

/* The answer to HEAD has no text, so it may be about a missing object, a missing bucket or a page
 * of a proxy. GET gets the code of the error. */
static bool is_missing(struct archive_s3 *s, const char *url, bool *ret, struct rd_err *err)
{
    struct rd_buf answer = {0};
    struct archive_s3_request r = {.method = "GET",
                                   .url = url,
                                   .header = "Range: bytes=0-0",
                                   .out = &answer,
                                   .max = ARCHIVE_S3_ANSWER_MAX};
    bool ok = archive_s3_perform(s, &r, err);
    *ret = ok && r.status == 404 && archive_s3_is_error(rd_buf_slice(&answer), "NoSuchKey");
    if (ok && !*ret && !archive_s3_is_done(&r))
        ok = archive_s3_fail(s, &r, err);
    rd_buf_done(&answer);
    return ok;
}

static bool head(struct archive_s3 *s, struct archive_s3_request *r, struct rd_err *err)
{
    struct rd_buf none = {0};
    r->method = "HEAD";
    r->out = &none;
    r->max = ARCHIVE_S3_ANSWER_MAX;
    bool ok = archive_s3_perform(s, r, err);
    if (ok && r->status != 200 && r->status != 404)
        ok = archive_s3_fail(s, r, err);
    rd_buf_done(&none);
    r->out = NULL;
    return ok;
}

/* An object may appear between the two requests. */
static bool s3_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                    struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct archive_s3 *s = archive_s3_of(store);
    struct archive_s3_request r = {.url = url};
    bool missing = false;
    *ret = (struct archive_object){0};
    if (!archive_s3_object_url(s, name, NULL, url, sizeof url, err))
        return false;
    for (unsigned i = 0; i < STAT_TRIES; i++) {
        if (!head(s, &r, err))
            return false;
        if (r.status != 404)
            break;
        if (!is_missing(s, url, &missing, err) || missing)
            return missing;
    }
    if (r.status == 404 || !r.head.has_length || r.head.etag[0] == '\0')
        return archive_s3_unexpected(s, &r, err);
    *ret = (struct archive_object){.there = true, .size = r.head.length};
    return true;
}

/* Both times are those of the store. */
static bool s3_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                   struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct archive_s3 *s = archive_s3_of(store);
    struct archive_s3_request r = {.url = url};
    if (!archive_s3_object_url(s, name, NULL, url, sizeof url, err) || !head(s, &r, err))
        return false;
    if (r.status != 200 || r.head.date_s < 0 || r.head.modified_s < 0 ||
        r.head.date_s < r.head.modified_s)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store reports no time");
    *ret_ms = (r.head.date_s - r.head.modified_s) * 1000;
    return true;
}

static bool get_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                      struct rd_buf *ret, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX], range[80];
    size_t before = ret->len;
    struct archive_s3_request r = {.method = "GET",
                                   .url = url,
                                   .header = range,
                                   .out = ret,
                                   .max = before + (len > ERROR_MAX ? len : ERROR_MAX)};
    snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
    if (!archive_s3_object_url(archive_s3_of(store), name, NULL, url, sizeof url, err) ||
        !archive_s3_simple(archive_s3_of(store), &r, err))
        return false;
    /* A store without ranges sends the whole object. */
    return (ret->len - before == len && (r.status == 206 || offset == 0)) ||
           rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store sent only part of a range");
}

static bool s3_get(struct archive_store *store, const char *name, struct rd_src **ret,
                   struct rd_err *err)
{
    struct archive_object object;
    if (!s3_stat(store, name, &object, err))
        return false;
    if (object.there)
        return archive_ranges_open(ret, store, name, object.size, get_range, err);
    return archive_store_set_missing(err, name);
}

/* ---- list and remove ---- */

struct listing {
    struct archive_s3 *s;
    archive_each_fn *each;
    void *arg;
    struct archive_s3_next next; /* page */
    struct archive_positions seen;
};

/* The parameters are in alphabetical order, as the signature wants them. */
static bool list_url(const struct listing *l, const char *folder, char ret[ARCHIVE_S3_URL_MAX],
                     struct rd_err *err)
{
    char prefix[2 * ARCHIVE_NAME_MAX], token[ARCHIVE_S3_ESCAPED_MAX], escaped[6 * ARCHIVE_NAME_MAX];
    snprintf(prefix, sizeof prefix, "%s%s/", l->s->prefix, folder);
    bool ok = archive_web_escape(escaped, sizeof escaped, rd_slice_str(prefix), false) &&
              archive_web_escape(token, sizeof token, rd_slice_str(l->next.token), false);
    int len =
        ok ? snprintf(ret, ARCHIVE_S3_URL_MAX, "%s?%s%s%sencoding-type=url&list-type=2&prefix=%s",
                      l->s->bucket, l->next.more ? "continuation-token=" : "", token,
                      l->next.more ? "&" : "", escaped)
           : 0;
    return (len > 0 && len < ARCHIVE_S3_URL_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of a folder is too long");
}

static bool list_page(struct listing *l, const char *folder, struct rd_err *err)
{
    char url[ARCHIVE_S3_URL_MAX], prefix[2 * ARCHIVE_NAME_MAX];
    struct rd_buf answer = {0};
    struct archive_s3_request r = {
        .method = "GET", .url = url, .out = &answer, .max = ARCHIVE_S3_ANSWER_MAX};
    snprintf(prefix, sizeof prefix, "%s%s/", l->s->prefix, folder);
    bool ok = list_url(l, folder, url, err) && archive_s3_simple(l->s, &r, err);
    if (ok && !archive_s3_page(rd_buf_slice(&answer), prefix, strlen(l->s->prefix), l->each, l->arg,
                               &l->next, err)) {
        rd_err_origin(err, l->s->store.origin);
        ok = false;
    }
    rd_buf_done(&answer);
    return ok && (!l->next.more || archive_positions_move(&l->seen, l->next.token, err));
}

static bool s3_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                    void *arg, struct rd_err *err)
{
    struct listing l = {.s = archive_s3_of(store), .each = each, .arg = arg};
    do {
        if (!list_page(&l, folder, err))
            return false;
    } while (l.next.more);
    return true;
}

static bool s3_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct archive_s3_request r = {.method = "DELETE", .url = url};
    return archive_s3_object_url(archive_s3_of(store), name, NULL, url, sizeof url, err) &&
           archive_s3_bare(archive_s3_of(store), &r, true, err);
}

/* ---- the store ---- */

static void s3_free(struct archive_s3 *s)
{
    archive_remote_close(&s->remote);
    if (s->keys_done != NULL)
        s->keys_done(s->keys_ctx);
    rd_free(s->ca_file);
    explicit_bzero(s->secret, sizeof s->secret);
    explicit_bzero(s->token, sizeof s->token);
    rd_free(s);
}

static void s3_close(struct archive_store *store)
{
    s3_free(archive_s3_of(store));
}

static bool set_prefix(struct archive_s3 *s, const char *prefix, struct rd_err *err)
{
    return archive_s3_check_prefix(prefix, err) &&
           archive_s3_fits(snprintf(s->prefix, sizeof s->prefix, "%s/", prefix), sizeof s->prefix,
                           err) &&
           (archive_web_escape(s->escaped, sizeof s->escaped, rd_slice_str(s->prefix), true) ||
            archive_s3_fits(0, 0, err));
}

static bool set_place(struct archive_s3 *s, const struct archive_s3_opts *opts, struct rd_err *err)
{
    const char *host = strstr(opts->endpoint, "://");
    if (host == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the endpoint is not https://HOST");
    host += 3;
    int scheme = (int)(host - opts->endpoint), len;
    if (host[0] != '\0' && host[strlen(host) - 1] == '/')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the endpoint ends with a slash");
    if (opts->host_style)
        len = snprintf(s->base, sizeof s->base, "%.*s%s.%s/", scheme, opts->endpoint, opts->bucket,
                       host);
    else
        len = snprintf(s->base, sizeof s->base, "%s/%s/", opts->endpoint, opts->bucket);
    if (!archive_s3_fits(len, sizeof s->base - ARCHIVE_NAME_MAX * 2, err))
        return false;
    if (opts->prefix != NULL && !set_prefix(s, opts->prefix, err))
        return false;
    snprintf(s->name, sizeof s->name, "%s", opts->bucket);
    snprintf(s->bucket, sizeof s->bucket, "%s", s->base);
    if (!opts->host_style)
        s->bucket[len - 1] = '\0';
    snprintf(s->store.origin, sizeof s->store.origin, "%s://%s%s%s", opts->google ? "gs" : "s3",
             opts->bucket, opts->prefix != NULL ? "/" : "",
             opts->prefix != NULL ? opts->prefix : "");
    return true;
}

static bool set_secrets(struct archive_s3 *s, const struct archive_s3_opts *opts,
                        struct rd_err *err)
{
    if (!archive_s3_fits(snprintf(s->region, sizeof s->region, "%s", opts->region),
                         sizeof s->region, err))
        return false;
    if (!archive_s3_props_set(&s->props, opts, err))
        return false;
    return s->keys != NULL ||
           archive_s3_set_login(s, opts->access_key, opts->secret_key, opts->session_token, err);
}

static bool set_rest(struct archive_s3 *s, const struct archive_s3_opts *opts, struct rd_err *err)
{
    s->part_size = opts->part_size != 0 ? opts->part_size : ARCHIVE_S3_PART;
    return archive_remote_copy(&s->ca_file, opts->ca_file, err) &&
           archive_remote_open(&s->remote, opts->tries, opts->wait_ms, opts->rate, opts->cancel,
                               err);
}

bool archive_store_open_s3(struct archive_store **ret, const struct archive_s3_opts *opts,
                           struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .remote = true,
        .put = archive_s3_put,
        .get = s3_get,
        .range = get_range,
        .stat = s3_stat,
        .list = s3_list,
        .remove = s3_remove,
        .clean = archive_s3_clean,
        .age = s3_age,
        .close = s3_close,
    };
    struct archive_s3 *s = rd_calloc(1, sizeof *s);
    if (s == NULL) {
        if (opts->keys_done != NULL)
            opts->keys_done(opts->keys_ctx);
        return rd_err_nomem(err, sizeof *s);
    }
    s->store.ops = &ops;
    s->dialect = opts->google ? &archive_s3_google : &archive_s3_amazon;
    s->now_ms = opts->now_ms;
    s->random = opts->random;
    s->keys = opts->keys;
    s->keys_done = opts->keys_done;
    s->keys_ctx = opts->keys_ctx;
    if (!set_place(s, opts, err) || !set_secrets(s, opts, err) || !set_rest(s, opts, err)) {
        s3_free(s);
        return false;
    }
    *ret = &s->store;
    return true;
}
