#include "archive/web.h"

#include "base/num.h"

#include <stdio.h>

/* The value of a header of this name, in lower case and with its colon; NULL: it is another one. */
static const char *header_value(const char *bytes, size_t len, const char *name)
{
    size_t skip = strlen(name);
    if (len <= skip || strncasecmp(bytes, name, skip) != 0)
        return NULL;
    while (skip < len && bytes[skip] == ' ')
        skip++;
    return bytes + skip;
}

/* An HTTP date in seconds; -1: it is none. */
static int64_t header_date(const char *value, size_t len)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)len, value);
    return (int64_t)curl_getdate(text, NULL);
}

static bool take_text(struct archive_web_head *head, const char *bytes, size_t len)
{
    const struct {
        const char *name;
        char *ret;
        size_t size;
    } texts[] = {{"etag:", head->etag, sizeof head->etag},
                 {"content-range:", head->range, sizeof head->range},
                 {"x-ms-error-code:", head->code, sizeof head->code}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *value = header_value(bytes, len, texts[i].name);
        if (value == NULL)
            continue;
        snprintf(texts[i].ret, texts[i].size, "%.*s", (int)(bytes + len - value), value);
        return true;
    }
    return false;
}

static const struct archive_web_head no_head = {.date_s = -1, .modified_s = -1};

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct archive_web_head *head = ctx;
    const char *value;
    size_t len = n;
    (void)size;
    while (len > 0 && (bytes[len - 1] == '\r' || bytes[len - 1] == '\n' || bytes[len - 1] == ' '))
        len--;
    const char *end = bytes + len;
    if (len > 5 && strncmp(bytes, "HTTP/", 5) == 0)
        *head = no_head; /* that of a proxy, or of an answer before the last one, does not count */
    else if (take_text(head, bytes, len))
        return n;
    else if ((value = header_value(bytes, len, "content-length:")) != NULL)
        head->has_length = rd_num_get_u64(rd_slice(value, (size_t)(end - value)), &head->length);
    else if ((value = header_value(bytes, len, "date:")) != NULL)
        head->date_s = header_date(value, (size_t)(end - value));
    else if ((value = header_value(bytes, len, "last-modified:")) != NULL)
        head->modified_s = header_date(value, (size_t)(end - value));
    else if (header_value(bytes, len, "x-ms-request-id:") != NULL)
        head->has_id = true;
    return n;
}

void archive_web_set_up(struct archive_remote *remote, const struct archive_web_sent *sent,
                        struct archive_web_head *ret_head)
{
    CURL *c = remote->curl;
    bool head = strcmp(sent->method, "HEAD") == 0, get = strcmp(sent->method, "GET") == 0;
    *ret_head = no_head;
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* it is signed */
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, sent->headers);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, ret_head);
    if (sent->ca_file != NULL)
        curl_easy_setopt(c, CURLOPT_CAINFO, sent->ca_file);
    if (head) {
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    } else if (!get) {
        const char *body = sent->body.len > 0 ? (const char *)sent->body.ptr : "";
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sent->body.len);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, sent->method);
    }
}

bool archive_web_repeated(struct archive_remote *remote, CURLcode code)
{
    long n = 0;
    curl_easy_getinfo(remote->curl, CURLINFO_NUM_CONNECTS, &n);
    bool repeated = remote->connected && n > 0;
    remote->connected = code == CURLE_OK;
    return repeated;
}

bool archive_web_passes(long status, CURLcode code)
{
    if (code != CURLE_OK)
        return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
               code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL;
    if (status == 501 || status == 505)
        return false; /* it will never know how */
    return status == 429 || status == 408 || status >= 500;
}

bool archive_web_is_blank(struct rd_slice body)
{
    for (size_t i = 0; i < body.len; i++)
        if (memchr(" \r\n\t", body.ptr[i], 4) == NULL)
            return false;
    return true;
}

bool archive_web_add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *more = header[0] != '\0' ? curl_slist_append(*list, header) : *list;
    if (more != NULL || header[0] == '\0')
        *list = more;
    return more != NULL || header[0] == '\0';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool archive_web_escape(char *ret, size_t size, struct rd_slice text, bool path)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (len + 4 > size)
            return false;
        if (is_letter(c) || memchr("-_.~", c, 4) != NULL || (path && c == '/'))
            ret[len++] = (char)c;
        else
            len += (size_t)snprintf(ret + len, size - len, "%%%02X", c);
    }
    ret[len] = '\0';
    return true;
}
