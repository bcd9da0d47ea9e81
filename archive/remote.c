#include "archive/remote.h"

#include "base/mem.h"

enum { TRIES = 6, WAIT_MS = 200, CONNECT_S = 20, STALL_S = 60 };

bool archive_remote_open(struct archive_remote *ret, unsigned tries, void (*wait_ms)(uint64_t ms),
                         uint64_t rate, const atomic_bool *cancel, struct rd_err *err)
{
    *ret = (struct archive_remote){
        .tries = tries != 0 ? tries : TRIES, .wait_ms = wait_ms, .cancel = cancel, .rate = rate};
    ret->curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    return ret->curl != NULL || rd_err_nomem(err, 0);
}

void archive_remote_close(struct archive_remote *remote)
{
    curl_easy_cleanup(remote->curl);
    remote->curl = NULL;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    const struct archive_remote_body *body = ctx;
    (void)size;
    if (body->out == NULL)
        return n;
    if (body->out->len + n > body->max || !rd_buf_add(body->out, bytes, n))
        return 0;
    return n;
}

static bool cancelled(const struct archive_remote *remote)
{
    return remote->cancel != NULL && atomic_load(remote->cancel);
}

/* Called at least once a second. Everything but 0 ends the request. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    return cancelled(ctx);
}

void archive_remote_begin(const struct archive_remote *remote, const char *url,
                          const char *protocols, struct archive_remote_body *body, char *problem)
{
    CURL *c = remote->curl;
    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(c, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)remote->rate);
    curl_easy_setopt(c, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)remote->rate);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, problem);
    if (remote->cancel == NULL)
        return;
    union {
        const struct archive_remote *in;
        void *out;
    } ctx = {.in = remote};
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, ctx.out);
}

CURLcode archive_remote_perform(const struct archive_remote *remote, const char *problem,
                                const char *origin, struct rd_err *err)
{
    CURLcode code = curl_easy_perform(remote->curl);
    if (code != CURLE_OK) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s",
                   problem[0] != '\0' ? problem : curl_easy_strerror(code));
        rd_err_origin(err, origin);
    }
    return code;
}

bool archive_remote_again(const struct archive_remote *remote, struct archive_remote_retry *retry)
{
    if (++retry->n >= remote->tries || cancelled(remote))
        return false;
    retry->wait_ms = retry->wait_ms == 0 ? WAIT_MS : 2 * retry->wait_ms;
    if (remote->wait_ms != NULL)
        remote->wait_ms(retry->wait_ms);
    return true;
}

bool archive_remote_fill(struct rd_buf *buf, size_t max, const uint8_t **ptr, size_t *len,
                         struct rd_err *err)
{
    size_t n = *len < max - buf->len ? *len : max - buf->len;
    if (!rd_buf_add(buf, *ptr, n))
        return rd_err_nomem(err, n);
    *ptr += n;
    *len -= n;
    return true;
}

bool archive_remote_copy(char **ret, const char *text, struct rd_err *err)
{
    if (text == NULL)
        return true;
    char *copy = rd_alloc(strlen(text) + 1);
    if (copy == NULL)
        return rd_err_nomem(err, strlen(text));
    *ret = strcpy(copy, text);
    return true;
}

enum { PARTS_EQUAL = 1000, PARTS_STEP = 64 };

size_t archive_remote_part_size(size_t base, size_t n)
{
    return n < PARTS_EQUAL ? base : base * (1 + (n - PARTS_EQUAL) / PARTS_STEP + 1);
}
