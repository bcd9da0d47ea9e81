#include "archive/azure_sign.h"

#include "archive/hmac.h"
#include "archive/page.h"
#include "base/buf.h"
#include "json/text.h"

#include <stdio.h>
#include <time.h>

/* strftime() writes names in the language of the locale. */
bool archive_azure_date(int64_t now_ms, char ret[ARCHIVE_AZURE_DATE], struct rd_err *err)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the clock shows no time");
    snprintf(ret, ARCHIVE_AZURE_DATE, "x-ms-date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT",
             days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
             tm.tm_hour, tm.tm_min, tm.tm_sec);
    return true;
}

/* ---- the text that is signed ---- */

/* The value of a header, or "". */
static const char *value_of(const char *const *headers, const char *name)
{
    size_t len = strlen(name);
    for (; *headers != NULL; headers++)
        if (strncasecmp(*headers, name, len) == 0 && (*headers)[len] == ':')
            return *headers + len + 1 + strspn(*headers + len + 1, " ");
    return "";
}

static bool add_headers(struct rd_buf *text, const struct archive_azure_signing *s)
{
    static const char *const names[] = {"Content-Encoding",
                                        "Content-Language",
                                        "Content-Length",
                                        "Content-MD5",
                                        "Content-Type",
                                        "Date",
                                        "If-Modified-Since",
                                        "If-Match",
                                        "If-None-Match",
                                        "If-Unmodified-Since",
                                        "Range"};
    char length[24] = "";
    bool ok = true;
    if (s->body_len > 0)
        snprintf(length, sizeof length, "%llu", (unsigned long long)s->body_len);
    for (size_t i = 0; ok && i < sizeof names / sizeof *names; i++)
        ok = rd_buf_printf(
            text, "%s\n",
            strcmp(names[i], "Content-Length") == 0 ? length : value_of(s->headers, names[i]));
    for (const char *const *line = s->headers; ok && *line != NULL; line++) {
        size_t len = strcspn(*line, ":");
        if (strncmp(*line, "x-ms-", 5) == 0)
            ok = rd_buf_printf(text, "%.*s:%s\n", (int)len, *line,
                               *line + len + 1 + strspn(*line + len + 1, " "));
    }
    return ok;
}

/* "name=value&…" as lines "name:value", decoded. */
static bool add_query(struct rd_buf *text, const char *query)
{
    while (*query != '\0') {
        char value[ARCHIVE_PAGE_KEY_MAX];
        size_t name = strcspn(query, "=&"), len = strcspn(query, "&");
        size_t skip = name < len ? name + 1 : name;
        if (!archive_page_copy(value, sizeof value, rd_slice(query + skip, len - skip)) ||
            !archive_page_unescape(value) ||
            !rd_buf_printf(text, "\n%.*s:%s", (int)name, query, value))
            return false;
        query += len + (query[len] == '&');
    }
    return true;
}

static bool add_resource(struct rd_buf *text, const struct archive_azure_signing *s)
{
    const char *host = strstr(s->url, "://");
    const char *path = host != NULL ? host + 3 : s->url;
    path += strcspn(path, "/?");
    size_t len = strcspn(path, "?");
    return rd_buf_printf(text, "/%s%.*s", s->account, (int)len, path) &&
           add_query(text, path[len] == '?' ? path + len + 1 : "");
}

/* ---- the signature ---- */

bool archive_azure_sign(const struct archive_azure_signing *s, char ret[ARCHIVE_AZURE_SIGNATURE],
                        struct rd_err *err)
{
    struct rd_buf text = {0};
    struct json_text form = {.form = JSON_BASE64};
    uint8_t sum[ARCHIVE_HMAC], encoded[6 * (ARCHIVE_HMAC + 3) + 16];
    bool ok = (rd_buf_printf(&text, "%s\n", s->method) && add_headers(&text, s) &&
               add_resource(&text, s)) ||
              rd_err_nomem(err, text.len);
    ok = ok && archive_hmac(s->key, rd_buf_slice(&text), sum, err);
    rd_buf_done(&text);
    if (ok) {
        const uint8_t *end = json_text_put(&form, encoded, rd_slice(sum, sizeof sum), false);
        snprintf(ret, ARCHIVE_AZURE_SIGNATURE, "Authorization: SharedKey %s:%.*s", s->account,
                 (int)(end - encoded), (const char *)encoded);
    }
    return ok;
}
