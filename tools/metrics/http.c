/* http.c - the server of metrics, with libmicrohttpd. */
#include "tools/metrics/listen.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"

enum { CONNECTIONS = 16, IDLE_SECONDS = 10, TURN_MS = 200 };

struct metrics_listener {
    struct MHD_Daemon *daemon;
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
    pthread_mutex_t mutex;
    struct rd_buf text; /* protected by the mutex */
};

/* The bytes are copied. */
static enum MHD_Result reply(struct MHD_Connection *to, unsigned status, struct rd_slice bytes)
{
    union {
        const void *in;
        void *out;
    } body = {.in = bytes.ptr};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes.len, body.out, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    enum MHD_Result ok =
        MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
    if (ok == MHD_YES)
        ok = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return ok;
}

/* The type is that of the library. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *from, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    struct metrics_listener *l = ctx;
    (void)version, (void)upload, (void)upload_len, (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return reply(from, MHD_HTTP_METHOD_NOT_ALLOWED, rd_slice_str(""));
    if (strcmp(path, "/metrics") != 0)
        return reply(from, MHD_HTTP_NOT_FOUND, rd_slice_str("see /metrics\n"));
    pthread_mutex_lock(&l->mutex);
    enum MHD_Result ok = reply(from, MHD_HTTP_OK, rd_buf_slice(&l->text));
    pthread_mutex_unlock(&l->mutex);
    return ok;
}

static void *run(void *listener)
{
    struct metrics_listener *l = listener;
    while (!atomic_load(&l->stop) && MHD_run_wait(l->daemon, TURN_MS) == MHD_YES)
        continue;
    return NULL;
}

static bool start(struct metrics_listener *l, const struct sockaddr *at, struct rd_err *err)
{
    unsigned flags = MHD_USE_EPOLL | (at->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
    errno = 0;
    l->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, on_request, l, MHD_OPTION_SOCK_ADDR, at,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (l->daemon == NULL)
        return rd_err_sys(err, errno, "cannot listen there");
    l->has_thread = rd_thread_start(&l->thread, run, l);
    return l->has_thread || rd_err_sys(err, EAGAIN, "cannot start a thread");
}

bool metrics_listener_start(struct metrics_listener **ret, const struct sockaddr *at,
                            const char *name, struct rd_err *err)
{
    struct metrics_listener *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        return rd_err_nomem(err, sizeof *l);
    pthread_mutex_init(&l->mutex, NULL);
    if (start(l, at, err)) {
        *ret = l;
        return true;
    }
    rd_err_origin(err, name);
    metrics_listener_stop(l);
    return false;
}

void metrics_listener_set(struct metrics_listener *l, struct rd_slice text)
{
    struct rd_buf copy = {0};
    if (!rd_buf_add(&copy, text.ptr, text.len))
        return;
    pthread_mutex_lock(&l->mutex);
    struct rd_buf old = l->text;
    l->text = copy;
    pthread_mutex_unlock(&l->mutex);
    rd_buf_done(&old);
}

void metrics_listener_stop(struct metrics_listener *l)
{
    if (l == NULL)
        return;
    atomic_store(&l->stop, true);
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    if (l->daemon != NULL)
        MHD_stop_daemon(l->daemon);
    pthread_mutex_destroy(&l->mutex);
    rd_buf_done(&l->text);
    rd_free(l);
}
