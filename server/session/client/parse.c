#include "server/session/client/parse.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/resp_frame.h"

void client_parse_reset(struct client_input *in)
{
    in->at = 0;
    in->need = 0;
    in->n_args = 0;
    in->argc = 0;
    in->in_bulk = false;
}

void client_parse_rebase(struct client_input *in, const uint8_t *base)
{
    if (in->base == base)
        return;
    for (size_t i = 0; i < in->argc; i++)
        in->argv[i].ptr = base + (in->argv[i].ptr - in->base);
    in->base = base;
}

static bool room(struct client_input *in, size_t n)
{
    if (n <= in->cap_argv)
        return true;
    size_t cap = in->cap_argv == 0 ? 8 : in->cap_argv * 2;
    cap = cap < n ? n : cap;
    struct rd_slice *argv = rd_realloc(in->argv, cap * sizeof *argv);
    if (argv == NULL)
        return false;
    in->argv = argv;
    in->cap_argv = cap;
    return true;
}

/* A line that ends with CR LF; the LF is not checked. The text is that after its first byte. */
static enum client_parse line(const struct client_input *in, size_t len, struct rd_slice *ret,
                              size_t *ret_next)
{
    const uint8_t *from = in->base + in->at;
    size_t left = len - in->at;
    const uint8_t *cr = memchr(from, '\r', left);
    if (cr == NULL)
        return left > CLIENT_PARSE_LINE ? CLIENT_PARSE_FAIL : CLIENT_PARSE_MORE;
    if ((size_t)(cr - from) + 2 > left)
        return CLIENT_PARSE_MORE;
    *ret = rd_slice(from + 1, (size_t)(cr - from) - (cr > from));
    *ret_next = (size_t)(cr - in->base) + 2;
    return CLIENT_PARSE_COMMAND;
}

/* A header in the form that clients use. False: use the full parser, which is as lenient as redis-
 * server. */
static inline bool plain_header(const struct client_input *in, size_t len, uint8_t mark,
                                uint64_t *ret, size_t *ret_next)
{
    const uint8_t *next = rd_resp_any_header(in->base + in->at, in->base + len, mark, ret);
    if (next == NULL || *ret > INT32_MAX)
        return false;
    *ret_next = (size_t)(next - in->base);
    return true;
}

static enum client_parse header(struct client_input *in, size_t len,
                                const struct client_parse_limits *limits, const char **ret_error)
{
    struct rd_slice text;
    size_t next;
    int64_t n;
    uint64_t small;
    if (plain_header(in, len, '*', &small, &next)) {
        n = (int64_t)small;
    } else {
        enum client_parse found = line(in, len, &text, &next);
        if (found != CLIENT_PARSE_COMMAND) {
            *ret_error = "Protocol error: too big mbulk count string";
            return found;
        }
        *ret_error = "Protocol error: invalid multibulk length";
        if (!rd_num_get_i64(text, &n) || n > INT32_MAX)
            return CLIENT_PARSE_FAIL;
    }
    *ret_error = "Protocol error: unauthenticated multibulk length";
    if (n > 10 && !limits->authenticated)
        return CLIENT_PARSE_FAIL;
    in->at = next;
    if (n <= 0)
        return CLIENT_PARSE_NOTHING;
    in->n_args = (uint64_t)n;
    return CLIENT_PARSE_COMMAND;
}

static const char *bad_bulk_byte(uint8_t byte)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "Protocol error: expected '$', got '%c'", byte);
    return text;
}

static enum client_parse bulk_header(struct client_input *in, size_t len,
                                     const struct client_parse_limits *limits,
                                     const char **ret_error)
{
    struct rd_slice text;
    size_t next;
    uint64_t n;
    if (in->at >= len)
        return CLIENT_PARSE_MORE;
    if (!plain_header(in, len, '$', &n, &next)) {
        enum client_parse found = line(in, len, &text, &next);
        *ret_error = "Protocol error: too big bulk count string";
        if (found != CLIENT_PARSE_COMMAND)
            return found;
        if (in->base[in->at] != '$') {
            *ret_error = bad_bulk_byte(in->base[in->at]);
            return CLIENT_PARSE_FAIL;
        }
        *ret_error = "Protocol error: invalid bulk length";
        int64_t value;
        if (!rd_num_get_i64(text, &value) || value < 0)
            return CLIENT_PARSE_FAIL;
        n = (uint64_t)value;
    }
    *ret_error = "Protocol error: invalid bulk length";
    if (n > limits->max_bulk)
        return CLIENT_PARSE_FAIL;
    *ret_error = "Protocol error: unauthenticated bulk length";
    if (n > 16384 && !limits->authenticated)
        return CLIENT_PARSE_FAIL;
    in->at = next;
    in->bulk_len = n;
    in->in_bulk = true;
    return CLIENT_PARSE_COMMAND;
}

static enum client_parse multibulk(struct client_input *in, size_t len,
                                   const struct client_parse_limits *limits, size_t *ret_used,
                                   const char **ret_error)
{
    enum client_parse found;
    if (in->n_args == 0) {
        found = header(in, len, limits, ret_error);
        *ret_used = in->at;
        if (found != CLIENT_PARSE_COMMAND)
            return found;
    }
    while (in->argc < in->n_args) {
        if (!in->in_bulk) {
            found = bulk_header(in, len, limits, ret_error);
            if (found != CLIENT_PARSE_COMMAND)
                return found;
        }
        if (len - in->at < in->bulk_len + 2) {
            in->need = in->at + in->bulk_len + 2;
            return CLIENT_PARSE_MORE;
        }
        *ret_error = "Protocol error: out of memory";
        if (!room(in, in->argc + 1))
            return CLIENT_PARSE_FAIL;
        in->argv[in->argc++] = rd_slice(in->base + in->at, in->bulk_len);
        in->at += in->bulk_len + 2;
        in->in_bulk = false;
    }
    in->need = 0;
    *ret_used = in->at;
    return CLIENT_PARSE_COMMAND;
}

static enum client_parse inline_command(struct client_input *in, size_t len, struct rd_words *words,
                                        size_t *ret_used, const char **ret_error)
{
    const uint8_t *lf = memchr(in->base, '\n', len);
    /* As in redis-server, a line does not end after a NUL byte. */
    if (lf == NULL || memchr(in->base, 0, (size_t)(lf - in->base)) != NULL) {
        *ret_error = "Protocol error: too big inline request";
        return len > CLIENT_PARSE_LINE ? CLIENT_PARSE_FAIL : CLIENT_PARSE_MORE;
    }
    size_t n = (size_t)(lf - in->base);
    *ret_used = n + 1;
    n -= n > 0 && lf[-1] == '\r';
    *ret_error = "Protocol error: unbalanced quotes in request";
    if (!rd_words_split(words, rd_slice(in->base, n)) || !room(in, words->argc + 1))
        return CLIENT_PARSE_FAIL;
    in->argc = words->argc;
    for (size_t i = 0; i < words->argc; i++)
        in->argv[i] = words->argv[i];
    return in->argc > 0 ? CLIENT_PARSE_COMMAND : CLIENT_PARSE_NOTHING;
}

enum client_parse client_parse(struct client_input *in, size_t len, struct rd_words *words,
                               const struct client_parse_limits *limits, size_t *ret_used,
                               const char **ret_error)
{
    if (len == 0 || len < in->need)
        return CLIENT_PARSE_MORE;
    if (in->n_args > 0 || in->base[0] == '*')
        return multibulk(in, len, limits, ret_used, ret_error);
    return inline_command(in, len, words, ret_used, ret_error);
}
