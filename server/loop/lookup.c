#include "server/loop/lookup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/thread.h"

enum { PORT_MAX = 16 };

/* Shared by the loop and the thread; the last one frees it. */
struct lookup {
    uv_async_t answered;
    lookup_fn found;
    void *ctx;
    char host[NI_MAXHOST], port[PORT_MAX];
    atomic_int owners;

    pthread_mutex_t mutex;
    bool cancelled; /* `answered` must not be used any more */
    bool done;
    int error;
    struct addrinfo *all;
};

static const struct addrinfo stream = {.ai_socktype = SOCK_STREAM};

static void release(struct lookup *l)
{
    if (atomic_fetch_sub(&l->owners, 1) > 1)
        return;
    if (l->all != NULL)
        freeaddrinfo(l->all);
    pthread_mutex_destroy(&l->mutex);
    rd_free(l);
}

static void on_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void *run(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo *all = NULL;
    int error = getaddrinfo(l->host, l->port, &stream, &all);
    pthread_mutex_lock(&l->mutex);
    l->error = error;
    l->all = error == 0 ? all : NULL;
    l->done = true;
    if (!l->cancelled)
        uv_async_send(&l->answered);
    pthread_mutex_unlock(&l->mutex);
    release(l);
    return NULL;
}

static void on_answered(uv_async_t *handle)
{
    struct lookup *l = handle->data;
    pthread_mutex_lock(&l->mutex);
    bool done = l->done;
    struct addrinfo *all = l->all;
    l->all = NULL;
    pthread_mutex_unlock(&l->mutex);
    if (!done)
        return;
    uv_close((uv_handle_t *)handle, on_closed);
    l->found(l->ctx, all, l->error);
}

bool lookup_numeric(const char *host, const char *port, struct addrinfo **ret)
{
    struct addrinfo hints = stream;
    hints.ai_flags = AI_NUMERICHOST;
    return getaddrinfo(host, port, &hints, ret) == 0;
}

struct lookup *lookup_start(struct loop *loop, const char *host, const char *port, lookup_fn found,
                            void *ctx)
{
    pthread_t thread;
    struct lookup *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    int host_len = snprintf(l->host, sizeof l->host, "%s", host);
    int port_len = snprintf(l->port, sizeof l->port, "%s", port);
    l->found = found;
    l->ctx = ctx;
    l->owners = 2;
    l->answered.data = l;
    pthread_mutex_init(&l->mutex, NULL);
    if (host_len >= (int)sizeof l->host || port_len >= (int)sizeof l->port ||
        uv_async_init(loop->uv, &l->answered, on_answered) != 0) {
        pthread_mutex_destroy(&l->mutex);
        rd_free(l);
        return NULL;
    }
    if (!rd_thread_start(&thread, run, l)) {
        atomic_store(&l->owners, 1);
        uv_close((uv_handle_t *)&l->answered, on_closed);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

void lookup_cancel(struct lookup *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    l->cancelled = true;
    pthread_mutex_unlock(&l->mutex);
    uv_close((uv_handle_t *)&l->answered, on_closed);
}
