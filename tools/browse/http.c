/* http.c - the server of browse, with libmicrohttpd. */
#include "base/num.h"
#include "tools/browse/browse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS = 16, IDLE_SECONDS = 60, TURN_MS = 1000 };

/* What may be done with an answer that is not the page. */
#define NOTHING "default-src 'none'; frame-ancestors 'none'; sandbox"

struct serving {
    const struct browse_http_opts *opts;
    struct rd_buf page, policy;
    uint16_t port;
};

/* The response is released. */
static enum MHD_Result reply(struct MHD_Connection *to, unsigned status,
                             struct MHD_Response *response, const char *type, const char *policy)
{
    const char *const headers[][2] = {
        {"Content-Type", type},
        {"Content-Security-Policy", policy},
        {"Cache-Control", "no-store"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
    };
    enum MHD_Result ok = response != NULL ? MHD_YES : MHD_NO;
    for (size_t i = 0; ok == MHD_YES && i < sizeof headers / sizeof *headers; i++)
        ok = MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (ok == MHD_YES)
        ok = MHD_queue_response(to, status, response);
    if (response != NULL)
        MHD_destroy_response(response);
    return ok;
}

static enum MHD_Result reply_bytes(struct MHD_Connection *to, unsigned status,
                                   struct rd_slice bytes, const char *type, const char *policy)
{
    union {
        const void *in;
        void *out;
    } body = {.in = bytes.ptr};
    return reply(to, status,
                 MHD_create_response_from_buffer(bytes.len, body.out, MHD_RESPMEM_MUST_COPY), type,
                 policy);
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status)
{
    return reply_bytes(to, status, rd_slice_str(""), "text/plain", NOTHING);
}

static enum MHD_Result send_item(const struct serving *serving, struct MHD_Connection *to,
                                 uint64_t item)
{
    struct rd_err err = {0};
    char line[RD_ERR_TEXT_MAX + 600];
    uint64_t len = 0;
    int fd = -1;
    if (item >= serving->opts->n_items)
        return refuse(to, MHD_HTTP_NOT_FOUND);
    if (!serving->opts->open(serving->opts->ctx, (size_t)item, &fd, &len, &err))
        return reply_bytes(to, MHD_HTTP_INTERNAL_SERVER_ERROR,
                           rd_slice_str(rd_err_render(&err, line, sizeof line)),
                           "text/plain; charset=utf-8", NOTHING);
    struct MHD_Response *response = MHD_create_response_from_fd64(len, fd);
    if (response == NULL)
        close(fd);
    return reply(to, MHD_HTTP_OK, response, "application/octet-stream", NOTHING);
}

static enum MHD_Result on_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    (void)kind;
    browse_request_header(ctx, name, value);
    return MHD_YES;
}

/* The type is that of the library. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *from, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    static const char file[] = "file/";
    const struct serving *serving = ctx;
    struct browse_request request = {.port = serving->port};
    uint64_t item;
    (void)version, (void)upload, (void)upload_len, (void)state;
    MHD_get_connection_values(from, MHD_HEADER_KIND, on_header, &request);
    const char *rest = browse_path_after_token(path, serving->opts->token);
    if (rest == NULL || !browse_request_is_own(&request))
        return refuse(from, MHD_HTTP_FORBIDDEN);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return refuse(from, MHD_HTTP_METHOD_NOT_ALLOWED);
    if (rest[0] == '\0')
        return reply_bytes(from, MHD_HTTP_OK, rd_buf_slice(&serving->page),
                           "text/html; charset=utf-8", (const char *)serving->policy.ptr);
    if (strcmp(rest, "list.json") == 0)
        return reply_bytes(from, MHD_HTTP_OK, serving->opts->list, "application/json", NOTHING);
    if (strncmp(rest, file, strlen(file)) == 0 &&
        rd_num_get_u64(rd_slice_str(rest + strlen(file)), &item))
        return send_item(serving, from, item);
    return refuse(from, MHD_HTTP_NOT_FOUND);
}

static bool run(struct serving *serving, struct MHD_Daemon *daemon, struct rd_err *err)
{
    const struct browse_http_opts *opts = serving->opts;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    char url[BROWSE_TOKEN + 60];
    if (info == NULL || info->port == 0)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the port of the server is not known");
    serving->port = info->port;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/%s/", serving->port, opts->token);
    /* A browser that closes a connection must not end the program. */
    signal(SIGPIPE, SIG_IGN);
    if (!opts->ready(opts->ctx, url))
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the address cannot be printed");
    while (MHD_run_wait(daemon, TURN_MS) == MHD_YES)
        continue;
    return rd_err_sys(err, errno, "the server failed");
}

bool browse_http_serve(const struct browse_http_opts *opts, struct rd_err *err)
{
    struct serving serving = {.opts = opts};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(opts->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool ok = browse_page_prepare(opts->page, &serving.page, &serving.policy, err);
    if (ok) {
        struct MHD_Daemon *daemon = MHD_start_daemon(
            MHD_USE_EPOLL, opts->port, NULL, NULL, on_request, &serving, MHD_OPTION_SOCK_ADDR,
            (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
        ok = daemon != NULL ? run(&serving, daemon, err)
                            : rd_err_sys(err, errno, "cannot listen on 127.0.0.1");
        if (daemon != NULL)
            MHD_stop_daemon(daemon);
    }
    rd_buf_done(&serving.page);
    rd_buf_done(&serving.policy);
    return ok;
}
