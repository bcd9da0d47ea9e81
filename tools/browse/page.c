/* page.c - the page as browse serves it, and which requests are answered. */
#include "tools/browse/browse.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the page ---- */

/* The page has both before its script; in place of each, text of the same length is sent. */
#define SOURCE       "<meta name=\"redoubt-files\" content=\"none\">"
#define SOURCE_HERE  "<meta name=\"redoubt-files\" content=\"here\">"
#define POLICY       "<meta http-equiv=\"Content-Security-Policy\" content=\""
#define CONNECT      "connect-src 'none'"
#define CONNECT_HERE "connect-src 'self'"

static uint8_t *find(struct rd_slice in, const char *text)
{
    union {
        const void *in;
        uint8_t *out;
    } at = {.in = memmem(in.ptr, in.len, text, strlen(text))};
    return at.out;
}

bool browse_page_prepare(struct rd_slice page, struct rd_buf *ret, struct rd_buf *ret_policy,
                         struct rd_err *err)
{
    if (!rd_buf_add(ret, page.ptr, page.len))
        return rd_err_nomem(err, page.len);
    struct rd_slice all = rd_buf_slice(ret);
    uint8_t *source = find(all, SOURCE), *policy = find(all, POLICY);
    uint8_t *begin = policy != NULL ? policy + strlen(POLICY) : NULL;
    uint8_t *end = begin != NULL ? memchr(begin, '"', (size_t)(all.ptr + all.len - begin)) : NULL;
    uint8_t *connect = end != NULL ? find(rd_slice(begin, (size_t)(end - begin)), CONNECT) : NULL;
    if (source == NULL || connect == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "this is not the page of this version of Redoubt");
    memcpy(source, SOURCE_HERE, strlen(SOURCE));
    memcpy(connect, CONNECT_HERE, strlen(CONNECT));
    static const char frames[] = "; frame-ancestors 'none'";
    if (!rd_buf_add(ret_policy, begin, (size_t)(end - begin)) ||
        !rd_buf_add(ret_policy, frames, sizeof frames))
        return rd_err_nomem(err, (size_t)(end - begin));
    return true;
}

/* ---- who asks ---- */

static bool is_own_host(const struct browse_request *request, const char *value)
{
    char own[40];
    snprintf(own, sizeof own, "127.0.0.1:%u", request->port);
    return strcmp(value, own) == 0;
}

void browse_request_header(struct browse_request *request, const char *name, const char *value)
{
    static const char http[] = "http://";
    bool own = true;
    if (value == NULL)
        value = "";
    if (strcasecmp(name, "Host") == 0) {
        request->n_hosts++;
        own = is_own_host(request, value);
    } else if (strcasecmp(name, "Origin") == 0) {
        own = strncmp(value, http, strlen(http)) == 0 && is_own_host(request, value + strlen(http));
    } else if (strcasecmp(name, "Sec-Fetch-Site") == 0) {
        own = strcmp(value, "same-origin") == 0 || strcmp(value, "none") == 0;
    }
    request->foreign = request->foreign || !own;
}

bool browse_request_is_own(const struct browse_request *request)
{
    return request->n_hosts == 1 && !request->foreign;
}

const char *browse_path_after_token(const char *path, const char *token)
{
    size_t len = strlen(token);
    unsigned char differs = 0;
    if (path[0] != '/' || len == 0 || strlen(path) < len + 2)
        return NULL;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(path[1 + i] ^ token[i]);
    return differs == 0 && path[1 + len] == '/' ? path + len + 2 : NULL;
}
