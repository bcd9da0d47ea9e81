#include "tools/metrics/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/show.h"
#include "tools/metrics/listen.h"

union place {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool bad_address(const char *text, struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "%s is not PORT, ADDRESS:PORT or [ADDRESS]:PORT",
                      rd_show_quote(rd_slice_str(text)).s);
}

static bool parse(const char *text, union place *ret, struct rd_err *err)
{
    const char *colon = strrchr(text, ':'), *port = colon != NULL ? colon + 1 : text;
    char host[INET6_ADDRSTRLEN] = "127.0.0.1";
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    bool v6 = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    uint64_t number;
    if (colon != NULL) {
        if (len - (v6 ? 2 : 0) >= sizeof host)
            return bad_address(text, err);
        snprintf(host, sizeof host, "%.*s", (int)(len - (v6 ? 2 : 0)), text + v6);
    }
    if (!rd_num_get_u64(rd_slice_str(port), &number) || number == 0 || number > UINT16_MAX)
        return bad_address(text, err);
    *ret = (union place){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)number)}};
    if (!v6)
        *ret = (union place){.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)}};
    return (v6 ? inet_pton(AF_INET6, host, &ret->v6.sin6_addr)
               : inet_pton(AF_INET, host, &ret->v4.sin_addr)) == 1 ||
           bad_address(text, err);
}

bool metrics_check_address(const char *text, struct rd_err *err)
{
    union place place;
    return parse(text, &place, err);
}

bool metrics_begin(struct metrics *m, struct rd_err *err)
{
    union place place;
    return m->address == NULL ||
           (parse(m->address, &place, err) &&
            metrics_listener_start(&m->listener, &place.any, m->address, err));
}

static void write_file(struct metrics *m, struct rd_slice text)
{
    const struct rd_sink_opts opts =
        RD_SINK_OPTS(.replace = true, .no_sync = true, .mode = m->mode);
    struct rd_err err = {0};
    struct rd_sink *out;
    char line[512];
    bool ok = rd_sink_open_file(&out, m->file, &opts, &err);
    if (ok) {
        rd_sink_write(out, text.ptr, text.len);
        ok = rd_sink_close(out, &err);
    }
    if (!ok && !m->failed)
        cli_warn(m->cli, "cannot write the metrics: %s", rd_err_render(&err, line, sizeof line));
    m->failed = !ok;
}

void metrics_write(struct metrics *m, void (*put)(void *ctx, struct rd_sink *out), void *ctx)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 0);
    struct rd_buf text = {0};
    struct rd_sink *out;
    if (!metrics_wanted(m) || !rd_sink_open_buf(&out, &text, &opts, NULL))
        return;
    put(ctx, out);
    if (rd_sink_close(out, NULL)) {
        if (m->file != NULL)
            write_file(m, rd_buf_slice(&text));
        if (m->listener != NULL)
            metrics_listener_set(m->listener, rd_buf_slice(&text));
    }
    rd_buf_done(&text);
}

void metrics_end(struct metrics *m)
{
    metrics_listener_stop(m->listener);
    m->listener = NULL;
}
