#include "archive/http.h"

#include <curl/curl.h>

enum { REDIRECTIONS = 3 };

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct rd_buf *out = ctx;
    (void)size;
    if (out == NULL)
        return n;
    return out->len + n <= ARCHIVE_HTTP_MAX && rd_buf_add(out, bytes, n) ? n : 0;
}

static bool set_headers(const struct archive_http *ask, struct curl_slist **list)
{
    for (size_t i = 0; i < ARCHIVE_HTTP_HEADERS && ask->headers[i] != NULL; i++) {
        struct curl_slist *more = curl_slist_append(*list, ask->headers[i]);
        if (more == NULL)
            return false;
        *list = more;
    }
    return true;
}

static void set_up(CURL *c, const struct archive_http *ask, struct curl_slist *headers,
                   struct rd_buf *body)
{
    curl_easy_setopt(c, CURLOPT_URL, ask->url);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)ask->timeout_s);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
    if (ask->direct) {
        curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    } else {
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)REDIRECTIONS);
    }
    if (ask->ca_file != NULL)
        curl_easy_setopt(c, CURLOPT_CAINFO, ask->ca_file);
    if (ask->put) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, 0L);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, "");
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, "PUT");
    }
}

/* curl's text for an error code contains no host and no URL, unlike its error buffer. */
static bool failed(CURLcode code, struct rd_err *err)
{
    bool usage = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
    return rd_err_set(err, usage ? RD_ERR_USAGE : RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s",
                      curl_easy_strerror(code));
}

bool archive_http_built(const char *what, struct rd_err *err)
{
    (void)what, (void)err;
    return true;
}

bool archive_http_ask(const struct archive_http *ask, long *ret_status, struct rd_buf *ret_body,
                      struct rd_err *err)
{
    struct curl_slist *headers = NULL;
    CURL *c = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    bool ok = (c != NULL && set_headers(ask, &headers)) || rd_err_nomem(err, 0);
    if (ok) {
        set_up(c, ask, headers, ret_body);
        CURLcode code = curl_easy_perform(c);
        ok = code == CURLE_OK || failed(code, err);
        if (ok)
            curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, ret_status);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    return ok;
}
