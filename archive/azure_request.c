#include "archive/azure_request.h"

#include "archive/xml.h"

#include <stdio.h>
#include <stdlib.h>

#define VERSION "x-ms-version: 2021-08-06"

enum { CLOCK_MS = 15 * 60 * 1000 /* the difference that the service accepts */ };

struct archive_azure *archive_azure_of(struct archive_store *store)
{
    return (struct archive_azure *)store;
}

/* ---- one request ---- */

static bool set_headers(const struct archive_azure *s, const struct archive_azure_request *r,
                        struct curl_slist **list, struct rd_err *err)
{
    static const char type[] = "Content-Type: application/octet-stream", none[] = "Content-Type:";
    char date[ARCHIVE_AZURE_DATE], signature[ARCHIVE_AZURE_SIGNATURE] = "";
    const char *const headers[] = {
        "Expect:",
        r->body.len > 0 ? type : none,
        r->header != NULL ? r->header : "",
        r->blob ? "x-ms-blob-type: BlockBlob" : "",
        date,
        strcmp(r->method, "DELETE") == 0 ? "x-ms-delete-snapshots: include" : "",
        VERSION,
        NULL};
    const struct archive_azure_signing signing = {.method = r->method,
                                                  .url = r->url,
                                                  .account = s->account,
                                                  .key = rd_slice(s->key, s->key_len),
                                                  .body_len = r->body.len,
                                                  .headers = headers};
    if (!archive_azure_date(s->now_ms(), date, err) ||
        (s->sas == NULL && !archive_azure_sign(&signing, signature, err)))
        return false;
    bool ok = archive_web_add_header(list, signature);
    for (size_t i = 0; ok && headers[i] != NULL; i++)
        ok = archive_web_add_header(list, headers[i]);
    return ok || rd_err_nomem(err, 0);
}

/* The URL with the SAS is for libcurl only. */
static bool add_sas(const struct archive_azure *s, const char *url, struct rd_buf *ret,
                    struct rd_err *err)
{
    const char *sas = s->sas != NULL ? s->sas : "";
    const char *mark = sas[0] == '\0' ? "" : strchr(url, '?') != NULL ? "&" : "?";
    return (rd_buf_printf(ret, "%s%s%s", url, mark, sas) && rd_buf_add_byte(ret, '\0')) ||
           rd_err_nomem(err, ret->len);
}

static bool once(struct archive_azure *s, struct archive_azure_request *r, CURLcode *ret_code,
                 struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    struct rd_buf url = {0};
    char problem[CURL_ERROR_SIZE] = "";
    r->status = 0;
    bool ok = set_headers(s, r, &headers, err) && add_sas(s, r->url, &url, err);
    if (ok) {
        struct archive_remote_body body = {r->out, r->max};
        const struct archive_web_sent sent = {r->method, r->body, headers, s->ca_file};
        archive_remote_begin(&s->remote, (const char *)url.ptr, "http,https", &body, problem);
        archive_web_set_up(&s->remote, &sent, &r->head);
        *ret_code = archive_remote_perform(&s->remote, problem, s->store.origin, err);
        curl_easy_getinfo(s->remote.curl, CURLINFO_RESPONSE_CODE, &r->status);
        r->lost |= archive_web_repeated(&s->remote, *ret_code);
    }
    curl_slist_free_all(headers);
    if (url.len > 0)
        explicit_bzero(url.ptr, url.len);
    rd_buf_done(&url);
    return ok;
}

bool archive_azure_perform(struct archive_azure *s, struct archive_azure_request *r,
                           struct rd_err *err)
{
    struct archive_remote_retry retry = {0};
    r->begin = r->out->len;
    for (;;) {
        struct rd_err failed = {0};
        CURLcode code = CURLE_OK;
        r->out->len = r->begin;
        bool sent = once(s, r, &code, &failed);
        bool passes = sent && archive_web_passes(r->status, code);
        if (sent && code == CURLE_OK && !passes)
            return true;
        r->lost = r->lost || sent;
        if (!passes || !archive_remote_again(&s->remote, &retry)) {
            rd_err_adopt(err, &failed);
            return sent && code == CURLE_OK;
        }
    }
}

/* ---- answers ---- */

struct rd_slice archive_azure_body(const struct archive_azure_request *r)
{
    struct rd_slice all = rd_buf_slice(r->out);
    return r->begin == 0 ? all : rd_slice(all.ptr + r->begin, all.len - r->begin);
}

bool archive_azure_is(const struct archive_azure_request *r, long status)
{
    return r->status == status && r->head.has_id;
}

bool archive_azure_refused(const struct archive_azure_request *r, long status, const char *code)
{
    return archive_azure_is(r, status) && strcmp(r->head.code, code) == 0;
}

/* What is wrong with a time, if that is why the service refused the request. */
static const char *time_hint(const struct archive_azure *s, const struct archive_azure_request *r)
{
    char detail[ARCHIVE_S3_TEXT_MAX] = "";
    if (strcmp(r->head.code, "AuthenticationFailed") != 0)
        return "";
    archive_s3_error_field(archive_azure_body(r), "AuthenticationErrorDetail", detail,
                           sizeof detail);
    if (strstr(detail, "time frame") != NULL)
        return ": the shared access signature is not valid at this time";
    bool differs = r->head.date_s >= 0 && llabs(r->head.date_s * 1000 - s->now_ms()) > CLOCK_MS;
    return differs || strstr(detail, "date header") != NULL
               ? ": the clock of this host differs from that of the store"
               : "";
}

/* The first line of the message: the others are a number and the time of the request. The details
 * contain a signature. */
bool archive_azure_fail(const struct archive_azure *s, const struct archive_azure_request *r,
                        struct rd_err *err)
{
    char message[ARCHIVE_S3_TEXT_MAX] = "", code[2 * ARCHIVE_WEB_WORD_MAX], text[200];
    if (r->head.code[0] == '\0') {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the store answered %s with status %ld, and not as Azure does", r->method,
                   r->status);
    } else {
        archive_s3_error_field(archive_azure_body(r), "Message", message, sizeof message);
        message[strcspn(message, "\r\n")] = '\0';
        rd_err_quote(code, sizeof code, rd_slice_str(r->head.code));
        rd_err_quote(text, sizeof text, rd_slice_str(message));
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                   "the store answered %s with status %ld, %s%s%s%s", r->method, r->status, code,
                   message[0] != '\0' ? ", " : "", message[0] != '\0' ? text : "", time_hint(s, r));
    }
    rd_err_origin(err, s->store.origin);
    return false;
}

/* Names consist of characters that need no escape. */
bool archive_azure_url(const struct archive_azure *s, const char *name, const char *query,
                       char *ret, size_t size, struct rd_err *err)
{
    int len = snprintf(ret, size, "%s/%s%s%s%s", s->base, s->escaped, name,
                       query != NULL ? "?" : "", query != NULL ? query : "");
    return (len > 0 && (size_t)len < size) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}
