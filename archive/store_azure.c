#include "archive/store_azure.h"

#include "archive/azure_list.h"
#include "archive/azure_put.h"
#include "archive/azure_request.h"
#include "archive/base64.h"
#include "archive/ranges.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_OBJECTS = 2000 };

/* ---- get ---- */

static bool head(struct archive_azure *s, const char *name, struct archive_azure_request *r,
                 bool *ret_there, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct rd_buf none = {0};
    *r = (struct archive_azure_request){
        .method = "HEAD", .url = url, .out = &none, .max = ARCHIVE_AZURE_ANSWER_MAX};
    bool ok =
        archive_azure_url(s, name, NULL, url, sizeof url, err) && archive_azure_perform(s, r, err);
    *ret_there = ok && archive_azure_is(r, 200) && r->head.has_length && r->head.etag[0] != '\0';
    if (ok && !*ret_there && !archive_azure_refused(r, 404, "BlobNotFound"))
        ok = archive_azure_fail(s, r, err);
    rd_buf_done(&none);
    r->url = NULL;
    r->out = NULL;
    return ok;
}

static bool azure_stat(struct archive_store *store, const char *name, struct archive_object *ret,
                       struct rd_err *err)
{
    struct archive_azure_request r;
    *ret = (struct archive_object){0};
    if (!head(archive_azure_of(store), name, &r, &ret->there, err))
        return false;
    ret->size = ret->there ? r.head.length : 0;
    return true;
}

/* Both times are those of the store. */
static bool azure_age(struct archive_store *store, const char *name, int64_t *ret_ms,
                      struct rd_err *err)
{
    struct archive_azure_request r;
    bool there;
    if (!head(archive_azure_of(store), name, &r, &there, err))
        return false;
    if (!there || r.head.date_s < 0 || r.head.modified_s < 0 || r.head.date_s < r.head.modified_s)
        return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store reports no time");
    *ret_ms = (r.head.date_s - r.head.modified_s) * 1000;
    return true;
}

static bool check_range(const char *range, uint64_t offset, size_t len, size_t got,
                        struct rd_err *err)
{
    uint64_t first, last, size;
    bool known =
        sscanf(range, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &first, &last, &size) == 3 &&
        first == offset;
    if (known && last == offset + len - 1 && got == len)
        return true;
    if (known && last + 1 == size && size < offset + len)
        return rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the object ends too early");
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store sent another range");
}

/* The answer may be an error, which is longer than the range. */
static bool get_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                      struct rd_buf *ret, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX], range[80];
    struct archive_azure *s = archive_azure_of(store);
    size_t before = ret->len;
    struct archive_azure_request r = {.method = "GET",
                                      .url = url,
                                      .header = range,
                                      .out = ret,
                                      .max = before + len + ARCHIVE_AZURE_ERROR_MAX};
    snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
    bool ok =
        archive_azure_url(s, name, NULL, url, sizeof url, err) && archive_azure_perform(s, &r, err);
    if (ok && archive_azure_is(&r, 206))
        ok = check_range(r.head.range, offset, len, archive_azure_body(&r).len, err);
    else if (ok && archive_azure_refused(&r, 404, "BlobNotFound"))
        ok = archive_store_set_missing(err, name);
    else if (ok && archive_azure_refused(&r, 416, "InvalidRange"))
        ok = rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the object ends too early");
    else if (ok)
        ok = archive_azure_fail(s, &r, err);
    if (!ok)
        ret->len = before;
    return ok;
}

/* The end of an object before the size that the store reported says nothing about its bytes. */
static bool next_range(struct archive_store *store, const char *name, uint64_t offset, size_t len,
                       struct rd_buf *ret, struct rd_err *err)
{
    struct rd_err failed = {0};
    if (get_range(store, name, offset, len, ret, &failed))
        return true;
    if (failed.code != RD_ERR_TRUNCATED)
        rd_err_adopt(err, &failed);
    else
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store has less than it reported");
    rd_err_reset(&failed);
    return false;
}

static bool azure_get(struct archive_store *store, const char *name, struct rd_src **ret,
                      struct rd_err *err)
{
    struct archive_object object;
    if (!azure_stat(store, name, &object, err))
        return false;
    if (object.there)
        return archive_ranges_open(ret, store, name, object.size, next_range, err);
    return archive_store_set_missing(err, name);
}

/* ---- list and remove ---- */

struct listing {
    struct archive_azure *s;
    char prefix[2 * ARCHIVE_NAME_MAX];
    char marker[ARCHIVE_POSITION_MAX]; /* of the next page; "": none */
    struct archive_positions seen;
};

/* The parameters are in alphabetical order, as the signature wants them. */
static bool list_url(const struct listing *l, char ret[ARCHIVE_AZURE_URL_MAX], struct rd_err *err)
{
    char marker[ARCHIVE_S3_ESCAPED_MAX], prefix[6 * ARCHIVE_NAME_MAX];
    bool ok = archive_web_escape(marker, sizeof marker, rd_slice_str(l->marker), false) &&
              archive_web_escape(prefix, sizeof prefix, rd_slice_str(l->prefix), false);
    int len =
        ok ? snprintf(ret, ARCHIVE_AZURE_URL_MAX,
                      "%s?comp=list%s%s&maxresults=%d&prefix=%s&restype=container", l->s->base,
                      l->marker[0] != '\0' ? "&marker=" : "", marker, PAGE_OBJECTS, prefix)
           : 0;
    return (len > 0 && len < ARCHIVE_AZURE_URL_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of a folder is too long");
}

static bool list_page(struct listing *l, archive_each_fn *each, void *arg, struct rd_err *err)
{
    char url[ARCHIVE_AZURE_URL_MAX];
    struct rd_buf answer = {0};
    struct archive_azure_request r = {
        .method = "GET", .url = url, .out = &answer, .max = ARCHIVE_AZURE_ANSWER_MAX};
    bool ok = list_url(l, url, err) && archive_azure_perform(l->s, &r, err);
    if (ok && !archive_azure_is(&r, 200)) {
        ok = archive_azure_fail(l->s, &r, err);
    } else if (ok && !archive_azure_page(rd_buf_slice(&answer), l->prefix, strlen(l->s->prefix),
                                         each, arg, l->marker, err)) {
        rd_err_origin(err, l->s->store.origin);
        ok = false;
    }
    rd_buf_done(&answer);
    return ok && (l->marker[0] == '\0' || archive_positions_move(&l->seen, l->marker, err));
}

static bool azure_list(struct archive_store *store, const char *folder, archive_each_fn *each,
                       void *arg, struct rd_err *err)
{
    struct listing l = {.s = archive_azure_of(store)};
    snprintf(l.prefix, sizeof l.prefix, "%s%s/", l.s->prefix, folder);
    do {
        if (!list_page(&l, each, arg, err))
            return false;
    } while (l.marker[0] != '\0');
    return true;
}

static bool azure_remove(struct archive_store *store, const char *name, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct rd_buf answer = {0};
    struct archive_azure *s = archive_azure_of(store);
    struct archive_azure_request r = {
        .method = "DELETE", .url = url, .out = &answer, .max = ARCHIVE_AZURE_ANSWER_MAX};
    bool ok =
        archive_azure_url(s, name, NULL, url, sizeof url, err) && archive_azure_perform(s, &r, err);
    if (ok && !archive_azure_refused(&r, 404, "BlobNotFound") &&
        !(archive_azure_is(&r, 202) && archive_web_is_blank(archive_azure_body(&r))))
        ok = archive_azure_fail(s, &r, err);
    rd_buf_done(&answer);
    return ok;
}

/* ---- the store ---- */

static void azure_close(struct archive_store *store)
{
    struct archive_azure *s = archive_azure_of(store);
    archive_remote_close(&s->remote);
    if (s->sas != NULL)
        explicit_bzero(s->sas, strlen(s->sas));
    explicit_bzero(s->key, sizeof s->key);
    rd_free(s->sas);
    rd_free(s->ca_file);
    rd_free(s);
}

static bool fits(int len, size_t size, struct rd_err *err)
{
    return (len > 0 && (size_t)len < size) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a setting of Azure is too long");
}

/* They are parts of a URL. */
static bool name_ok(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return len > 0 && name[len] == '\0';
}

static bool set_prefix(struct archive_azure *s, const char *prefix, struct rd_err *err)
{
    return archive_s3_check_prefix(prefix, err) &&
           fits(snprintf(s->prefix, sizeof s->prefix, "%s/", prefix), sizeof s->prefix, err) &&
           (archive_web_escape(s->escaped, sizeof s->escaped, rd_slice_str(s->prefix), true) ||
            fits(0, 0, err));
}

static bool set_place(struct archive_azure *s, const struct archive_azure_opts *opts,
                      struct rd_err *err)
{
    const char *prefix = opts->prefix, *host = strstr(opts->endpoint, "://");
    size_t len = strlen(opts->endpoint);
    if (host == NULL || opts->endpoint[len - 1] == '/' || strpbrk(opts->endpoint, "?#") != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the endpoint must be https://HOST, without a slash at its end");
    if (!name_ok(opts->account) || !name_ok(opts->container))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "accounts and containers have names of small letters, digits and -");
    if (!fits(snprintf(s->account, sizeof s->account, "%s", opts->account), sizeof s->account,
              err) ||
        !fits(snprintf(s->base, sizeof s->base, "%s/%s", opts->endpoint, opts->container),
              sizeof s->base - ARCHIVE_NAME_MAX * 2, err) ||
        (prefix != NULL && !set_prefix(s, prefix, err)))
        return false;
    snprintf(s->store.origin, sizeof s->store.origin, "azure://%s/%s%s%s", opts->account,
             opts->container, prefix != NULL ? "/" : "", prefix != NULL ? prefix : "");
    return true;
}

static bool sas_ok(const char *sas)
{
    for (; *sas != '\0'; sas++)
        if (*sas <= ' ' || *sas == '#' || *sas == '?' || *sas == 127)
            return false;
    return true;
}

static bool set_secret(struct archive_azure *s, const struct archive_azure_opts *opts,
                       struct rd_err *err)
{
    if (opts->key == NULL)
        return (sas_ok(opts->sas) ||
                rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                           "a shared access signature is the parameters of a URL: sv=…&sig=…")) &&
               archive_remote_copy(&s->sas, opts->sas, err);
    return (archive_base64_get(rd_slice_str(opts->key), s->key, sizeof s->key, &s->key_len) &&
            s->key_len > 0) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the key of an account is base64");
}

bool archive_store_open_azure(struct archive_store **ret, const struct archive_azure_opts *opts,
                              struct rd_err *err)
{
    static const struct archive_store_ops ops = {
        .remote = true,
        .put = archive_azure_put,
        .get = azure_get,
        .range = get_range,
        .stat = azure_stat,
        .list = azure_list,
        .remove = azure_remove,
        .age = azure_age,
        .close = azure_close,
    };
    struct archive_azure *s = rd_calloc(1, sizeof *s);
    if (s == NULL)
        return rd_err_nomem(err, sizeof *s);
    s->store.ops = &ops;
    s->now_ms = opts->now_ms;
    s->upload = opts->upload;
    s->part_size = opts->part_size != 0 ? opts->part_size : ARCHIVE_AZURE_PART;
    if (!set_place(s, opts, err) || !set_secret(s, opts, err) ||
        !archive_remote_copy(&s->ca_file, opts->ca_file, err) ||
        !archive_remote_open(&s->remote, opts->tries, opts->wait_ms, opts->rate, opts->cancel,
                             err)) {
        azure_close(&s->store);
        return false;
    }
    *ret = &s->store;
    return true;
}
