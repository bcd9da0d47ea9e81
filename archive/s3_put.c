/* s3_put.c - objects that are put, whole or in parts, and the uploads that were abandoned. */
#include "archive/s3_put.h"

#include "archive/s3_request.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { PARTS_MAX = 10000, UPLOAD_PAGES = 1000 };

struct part {
    char etag[ARCHIVE_WEB_ETAG_MAX];
    char checksum[ARCHIVE_S3_CHECKSUM];
};

struct put {
    struct archive_s3 *s;
    char name[ARCHIVE_NAME_MAX];
    char at[ARCHIVE_NAME_MAX + 9 + sizeof ARCHIVE_S3_NEW]; /* the name of an upload in parts */
    char upload[ARCHIVE_S3_ESCAPED_MAX]; /* the id of the upload, escaped; "": not begun */
    bool checked;                        /* parts are sent with checksums */
    struct rd_buf part;
    struct part *parts; /* that were sent */
    size_t n_parts;
};

static bool begin_upload(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX], id[ARCHIVE_S3_ID_MAX];
    struct rd_buf answer = {0};
    struct archive_s3_request r = {.method = "POST",
                                   .url = url,
                                   .object = put->at,
                                   .checked = put->checked,
                                   .out = &answer,
                                   .max = ARCHIVE_S3_ANSWER_MAX};
    bool ok = archive_s3_object_url(put->s, put->at, "uploads=", url, sizeof url, err) &&
              archive_s3_simple(put->s, &r, err) &&
              archive_s3_field(rd_buf_slice(&answer), "InitiateMultipartUploadResult", "UploadId",
                               id, sizeof id, err);
    if (ok)
        ok = (id[0] != '\0' &&
              archive_web_escape(put->upload, sizeof put->upload, rd_slice_str(id), false)) ||
             rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the store returned no upload id");
    rd_buf_done(&answer);
    return ok;
}

static bool send_part(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_S3_URL_MAX], query[ARCHIVE_S3_ESCAPED_MAX + 64];
    struct archive_s3_request r = {
        .method = "PUT", .url = url, .body = rd_buf_slice(&put->part), .checked = put->checked};
    if (put->upload[0] == '\0' && !begin_upload(put, err))
        return false;
    if (put->n_parts == PARTS_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "an object has more than %d parts",
                          PARTS_MAX);
    void *parts = rd_realloc(put->parts, (put->n_parts + 1) * sizeof *put->parts);
    if (parts == NULL)
        return rd_err_nomem(err, sizeof *put->parts);
    put->parts = parts;
    snprintf(query, sizeof query, "partNumber=%zu&uploadId=%s", put->n_parts + 1, put->upload);
    if (!archive_s3_object_url(put->s, put->at, query, url, sizeof url, err) ||
        !archive_s3_bare(put->s, &r, false, err))
        return false;
    if (r.head.etag[0] == '\0')
        return archive_s3_unexpected(put->s, &r, err);
    struct part *part = &put->parts[put->n_parts++];
    memcpy(part->etag, r.head.etag, sizeof part->etag);
    memcpy(part->checksum, r.checksum, sizeof part->checksum);
    rd_buf_reset(&put->part);
    return true;
}

static bool put_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct put *put = impl;
    while (len > 0) {
        size_t size = archive_remote_part_size(put->s->part_size, put->n_parts);
        if (put->part.len == size && !send_part(put, err))
            return false;
        size = archive_remote_part_size(put->s->part_size, put->n_parts);
        if (!archive_remote_fill(&put->part, size, &ptr, &len, err))
            return false;
    }
    return true;
}

/* What the answer to the last request of an upload says about the object. Everything but the
 * acknowledgement of S3, and its own refusal of the only try, leaves it open. */
static bool judge(const struct put *put, const struct archive_s3_request *r, bool acknowledged,
                  struct rd_err *err)
{
    char code[ARCHIVE_S3_CODE_MAX];
    if (r->status == 200 && acknowledged)
        return true;
    if (r->status == 412)
        return archive_store_set_exists(err, put->name);
    bool said = archive_s3_error_field(rd_buf_slice(r->out), "Code", code, sizeof code);
    if (archive_s3_is_done(r) && !said)
        archive_s3_unexpected(put->s, r, err);
    else
        archive_s3_fail(put->s, r, err);
    bool refusal = said && r->status >= 400 && r->status < 500 && !archive_s3_passes(r, CURLE_OK);
    return refusal && !r->lost ? false : archive_store_set_unknown(err);
}

static bool add_part(struct rd_buf *xml, const struct part *part, size_t number)
{
    return rd_buf_printf(xml, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag>", number,
                         part->etag) &&
           (part->checksum[0] == '\0' ||
            rd_buf_printf(xml, "<ChecksumSHA256>%s</ChecksumSHA256>", part->checksum)) &&
           rd_buf_printf(xml, "</Part>");
}

static bool add_parts(const struct put *put, struct rd_buf *xml)
{
    bool ok = rd_buf_printf(xml, "<CompleteMultipartUpload>");
    for (size_t i = 0; ok && i < put->n_parts; i++)
        ok = add_part(xml, &put->parts[i], i + 1);
    return ok && rd_buf_printf(xml, "</CompleteMultipartUpload>");
}

/* A failure may be reported after a while, with status 200. */
static bool complete(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_S3_URL_MAX], query[ARCHIVE_S3_ESCAPED_MAX + 64], key[8];
    struct rd_buf xml = {0}, answer = {0};
    struct archive_s3_request r = {.method = "POST",
                                   .url = url,
                                   .fresh = !put->s->dialect->google,
                                   .out = &answer,
                                   .max = ARCHIVE_S3_ANSWER_MAX};
    bool ok = add_parts(put, &xml) || rd_err_nomem(err, xml.len);
    snprintf(query, sizeof query, "uploadId=%s", put->upload);
    r.body = rd_buf_slice(&xml);
    ok = ok && archive_s3_object_url(put->s, put->at, query, url, sizeof url, err);
    if (ok) {
        ok = archive_s3_perform(put->s, &r, err) || archive_store_set_unknown(err);
        ok = ok && judge(put, &r,
                         archive_s3_field(rd_buf_slice(&answer), "CompleteMultipartUploadResult",
                                          "-", key, sizeof key, NULL),
                         err);
    }
    if (ok)
        put->upload[0] = '\0';
    rd_buf_done(&xml);
    rd_buf_done(&answer);
    return ok;
}

/* Google Cloud Storage knows no condition for uploads in parts, which replace an object: what was
 * uploaded is copied to its name, where there is no object yet. */
static bool move(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX], etag[ARCHIVE_WEB_ETAG_MAX], source[ARCHIVE_S3_URL_MAX];
    struct archive_s3 *s = put->s;
    struct rd_buf answer = {0};
    struct archive_s3_request r = {.method = "PUT",
                                   .url = url,
                                   .fresh = true,
                                   .source = source,
                                   .object = put->name,
                                   .out = &answer,
                                   .max = ARCHIVE_S3_ANSWER_MAX};
    snprintf(source, sizeof source, "x-goog-copy-source: /%s/%s%s", s->name, s->escaped, put->at);
    bool ok = archive_s3_object_url(s, put->name, NULL, url, sizeof url, err);
    if (ok) {
        ok = archive_s3_perform(s, &r, err) || archive_store_set_unknown(err);
        ok = ok && judge(put, &r,
                         archive_s3_field(rd_buf_slice(&answer), "CopyObjectResult", "ETag", etag,
                                          sizeof etag, NULL),
                         err);
    }
    rd_buf_done(&answer);
    s->store.ops->remove(&s->store, put->at, NULL);
    return ok;
}

static bool put_whole(struct put *put, struct rd_err *err)
{
    char url[ARCHIVE_URL_MAX];
    struct rd_buf answer = {0};
    struct archive_s3_request r = {.method = "PUT",
                                   .url = url,
                                   .body = rd_buf_slice(&put->part),
                                   .fresh = true,
                                   .object = put->name,
                                   .checked = put->checked,
                                   .out = &answer,
                                   .max = ARCHIVE_S3_ANSWER_MAX};
    bool ok = archive_s3_object_url(put->s, put->name, NULL, url, sizeof url, err);
    if (ok) {
        ok = archive_s3_perform(put->s, &r, err) || archive_store_set_unknown(err);
        ok =
            ok && judge(put, &r,
                        r.head.etag[0] != '\0' && archive_web_is_blank(rd_buf_slice(&answer)), err);
    }
    rd_buf_done(&answer);
    return ok;
}

static void abort_upload(struct archive_s3 *s, const char *name, const char *upload)
{
    char url[ARCHIVE_S3_URL_MAX], query[ARCHIVE_S3_ESCAPED_MAX + 64];
    struct archive_s3_request r = {.method = "DELETE", .url = url};
    snprintf(query, sizeof query, "uploadId=%s", upload);
    if (archive_s3_object_url(s, name, query, url, sizeof url, NULL))
        archive_s3_bare(s, &r, true, NULL);
}

static bool put_close(void *impl, bool commit, struct rd_err *err)
{
    struct put *put = impl;
    bool ok = true;
    if (commit && put->upload[0] == '\0')
        ok = put_whole(put, err);
    else if (commit)
        ok = (put->part.len == 0 || send_part(put, err)) && complete(put, err) &&
             (!put->s->dialect->google || move(put, err));
    if (put->upload[0] != '\0')
        abort_upload(put->s, put->at, put->upload);
    rd_buf_done(&put->part);
    rd_free(put->parts);
    rd_free(put);
    return ok;
}

/* Where objects are copied to their names, no two writers upload to one. */
static bool set_upload_name(struct put *put, struct rd_err *err)
{
    uint32_t chance;
    snprintf(put->at, sizeof put->at, "%s", put->name);
    if (!put->s->dialect->google)
        return true;
    if (!put->s->random(&chance, sizeof chance, err))
        return false;
    snprintf(put->at, sizeof put->at, "%s.%08" PRIx32 ARCHIVE_S3_NEW, put->name, chance);
    return true;
}

bool archive_s3_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                    struct rd_err *err)
{
    static const struct rd_sink_ops ops = {put_write, NULL, put_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.origin = name);
    struct put *put = rd_calloc(1, sizeof *put);
    if (put == NULL)
        return rd_err_nomem(err, sizeof *put);
    put->s = archive_s3_of(store);
    put->checked = !put->s->dialect->google && archive_s3_props_lock(&put->s->props, name);
    snprintf(put->name, sizeof put->name, "%s", name);
    if (!set_upload_name(put, err)) {
        rd_free(put);
        return false;
    }
    return rd_sink_new(ret, &ops, put, &opts, err);
}

/* ---- uploads that were abandoned ---- */

struct abandoned {
    struct archive_s3 *s;
    struct archive_s3_next_upload next;
};

static void on_upload(void *arg, const char *name, const char *id)
{
    char escaped[ARCHIVE_S3_ESCAPED_MAX];
    struct abandoned *a = arg;
    if (archive_web_escape(escaped, sizeof escaped, rd_slice_str(id), false))
        abort_upload(a->s, name, escaped);
}

static bool uploads_url(const struct abandoned *a, const char *folder, char ret[ARCHIVE_S3_URL_MAX])
{
    char prefix[2 * ARCHIVE_NAME_MAX], escaped[6 * ARCHIVE_NAME_MAX], key[ARCHIVE_S3_ESCAPED_MAX],
        id[ARCHIVE_S3_ESCAPED_MAX];
    snprintf(prefix, sizeof prefix, "%s%s/", a->s->prefix, folder);
    bool ok = archive_web_escape(escaped, sizeof escaped, rd_slice_str(prefix), false) &&
              archive_web_escape(key, sizeof key, rd_slice_str(a->next.key), false) &&
              archive_web_escape(id, sizeof id, rd_slice_str(a->next.id), false);
    int len =
        ok ? snprintf(ret, ARCHIVE_S3_URL_MAX, "%s?%s%s%sprefix=%s%s%s&uploads=", a->s->bucket,
                      a->next.more ? "key-marker=" : "", key, a->next.more ? "&" : "", escaped,
                      a->next.more ? "&upload-id-marker=" : "", id)
           : 0;
    return len > 0 && len < ARCHIVE_S3_URL_MAX;
}

/* ---- copies that were abandoned ---- */

struct remains {
    struct rd_buf names; /* each of ARCHIVE_NAME_MAX bytes */
    size_t n;
};

static void on_remains(void *arg, const struct archive_listed *object)
{
    enum { REMAINS_MAX = 1000 };
    struct remains *r = arg;
    char name[ARCHIVE_NAME_MAX] = "";
    size_t len = strlen(object->name), end = sizeof ARCHIVE_S3_NEW - 1;
    if (len < end || len >= sizeof name || r->n == REMAINS_MAX ||
        strcmp(object->name + len - end, ARCHIVE_S3_NEW) != 0)
        return;
    memcpy(name, object->name, len);
    r->n += rd_buf_add(&r->names, name, sizeof name);
}

/* Objects under another name that nobody copied for a day. */
static void remove_remains(struct archive_store *store, const char *folder)
{
    enum { OLD_MS = 24 * 3600 * 1000 };
    struct remains r = {.n = 0};
    int64_t age_ms;
    if (store->ops->list(store, folder, on_remains, &r, NULL))
        for (size_t i = 0; i < r.n; i++) {
            const char *name = (const char *)r.names.ptr + i * ARCHIVE_NAME_MAX;
            if (store->ops->age(store, name, &age_ms, NULL) && age_ms > OLD_MS)
                store->ops->remove(store, name, NULL);
        }
    rd_buf_done(&r.names);
}

/* A store that cannot list uploads, or does not let this user, removes them by a rule of its own or
 * not at all: they do not belong to the repository. */
void archive_s3_clean(struct archive_store *store, const char *folder)
{
    char url[ARCHIVE_S3_URL_MAX], prefix[2 * ARCHIVE_NAME_MAX];
    struct abandoned a = {.s = archive_s3_of(store)};
    bool ok = true;
    snprintf(prefix, sizeof prefix, "%s%s/", a.s->prefix, folder);
    if (a.s->dialect->google)
        remove_remains(store, folder);
    for (unsigned page = 0; ok && page < UPLOAD_PAGES && (page == 0 || a.next.more); page++) {
        struct rd_buf answer = {0};
        struct archive_s3_request r = {
            .method = "GET", .url = url, .out = &answer, .max = ARCHIVE_S3_ANSWER_MAX};
        ok = uploads_url(&a, folder, url) && archive_s3_perform(a.s, &r, NULL) && r.status == 200 &&
             archive_s3_uploads(rd_buf_slice(&answer), prefix, strlen(a.s->prefix), on_upload, &a,
                                &a.next, NULL);
        rd_buf_done(&answer);
    }
}
