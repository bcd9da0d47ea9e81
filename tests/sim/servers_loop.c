/* What the server uses of libuv, for loops that do not wait: the simulation lets a server run when
 * it has something to do. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/servers_impl.h"

enum { HANDLES_MAX = 4096 };

struct handle {
    uv_loop_t *uv;
    uv_handle_t *handle;
    int fd, events; /* of a poll; events 0: it does not wait for any */
    uv_poll_cb on_poll;
    int64_t due_us; /* of a timer; SIM_NEVER: it does not run */
    uint64_t repeat_ms;
    uv_timer_cb on_timer;
    uv_idle_cb on_idle; /* NULL: it does not run */
    int signum;
    uv_signal_cb on_signal;
    bool closes;
    uv_close_cb on_close;
};

static struct handle handles[HANDLES_MAX];
static size_t n_handles;

static struct handle *find(const void *handle)
{
    for (size_t i = 0; i < n_handles; i++)
        if (handles[i].handle == handle)
            return &handles[i];
    abort();
}

static int add(uv_loop_t *uv, void *handle, int fd)
{
    if (n_handles == HANDLES_MAX)
        abort();
    handles[n_handles++] =
        (struct handle){.uv = uv, .handle = handle, .fd = fd, .due_us = SIM_NEVER};
    return 0;
}

void sim_loop_forget(const uv_loop_t *uv)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_handles; i++)
        if (handles[i].uv != uv)
            handles[kept++] = handles[i];
    n_handles = kept;
}

/* ---- libuv ---- */

int uv_loop_init(uv_loop_t *uv)
{
    memset(uv, 0, sizeof *uv);
    return 0;
}

int uv_loop_close(uv_loop_t *uv)
{
    sim_loop_forget(uv);
    return 0;
}

void uv_stop(uv_loop_t *uv)
{
    (void)uv;
}

void uv_unref(uv_handle_t *handle)
{
    (void)handle;
}

int uv_poll_init(uv_loop_t *uv, uv_poll_t *poll, int fd)
{
    return add(uv, poll, fd);
}

int uv_poll_init_socket(uv_loop_t *uv, uv_poll_t *poll, uv_os_sock_t fd)
{
    return add(uv, poll, fd);
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
    struct handle *h = find(poll);
    h->events = events;
    h->on_poll = cb;
    return 0;
}

int uv_poll_stop(uv_poll_t *poll)
{
    find(poll)->events = 0;
    return 0;
}

int uv_timer_init(uv_loop_t *uv, uv_timer_t *timer)
{
    return add(uv, timer, -1);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t ms, uint64_t repeat_ms)
{
    struct handle *h = find(timer);
    h->due_us = sim.now_us + (int64_t)ms * 1000;
    h->repeat_ms = repeat_ms;
    h->on_timer = cb;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    find(timer)->due_us = SIM_NEVER;
    return 0;
}

int uv_idle_init(uv_loop_t *uv, uv_idle_t *idle)
{
    return add(uv, idle, -1);
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb cb)
{
    find(idle)->on_idle = cb;
    return 0;
}

int uv_idle_stop(uv_idle_t *idle)
{
    find(idle)->on_idle = NULL;
    return 0;
}

int uv_signal_init(uv_loop_t *uv, uv_signal_t *signal)
{
    return add(uv, signal, -1);
}

int uv_signal_start(uv_signal_t *signal, uv_signal_cb cb, int signum)
{
    struct handle *h = find(signal);
    h->on_signal = cb;
    h->signum = signum;
    return 0;
}

/* Only background jobs and lookups of names send: there are none of either here. */
int uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb cb)
{
    (void)cb;
    return add(uv, async, -1);
}

int uv_async_send(uv_async_t *async)
{
    (void)async;
    abort();
}

int uv_is_closing(const uv_handle_t *handle)
{
    return find(handle)->closes;
}

void uv_close(uv_handle_t *handle, uv_close_cb cb)
{
    struct handle *h = find(handle);
    h->closes = true;
    h->events = 0;
    h->due_us = SIM_NEVER;
    h->on_idle = NULL;
    h->on_signal = NULL;
    h->on_close = cb;
}

/* ---- a turn ---- */

static int host_of(const uv_loop_t *uv)
{
    for (int i = 0; i < sim.n_hosts; i++)
        if (sim.hosts[i].srv != NULL && sim.hosts[i].srv->loop.uv == uv)
            return i;
    return NOBODY;
}

static int events_of(const struct handle *h)
{
    return sim_is_socket(h->fd) ? sim_net_events(h->fd) : UV_READABLE;
}

static void run_timers(const uv_loop_t *uv)
{
    for (size_t i = 0; i < n_handles; i++) {
        struct handle *h = &handles[i];
        if (h->uv != uv || h->due_us > sim.now_us)
            continue;
        h->due_us = h->repeat_ms > 0 ? sim.now_us + (int64_t)h->repeat_ms * 1000 : SIM_NEVER;
        h->on_timer((uv_timer_t *)h->handle);
    }
}

/* As libuv: a descriptor that has failed is not watched any more. */
static void run_poll(struct handle *h)
{
    int events = h->events != 0 ? events_of(h) : 0;
    if (events < 0) {
        h->events = 0;
        h->on_poll((uv_poll_t *)h->handle, UV_EBADF, 0);
    } else if ((events & h->events) != 0) {
        h->on_poll((uv_poll_t *)h->handle, 0, events & h->events);
    }
}

/* The order of descriptors is not known. */
static void run_polls(const uv_loop_t *uv)
{
    size_t n = n_handles, first = n > 0 ? (size_t)sim_below(n) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = (first + i) % n;
        if (handles[k].uv == uv && handles[k].on_poll != NULL)
            run_poll(&handles[k]);
    }
}

static void run_others(const uv_loop_t *uv, int host)
{
    for (size_t i = 0; i < n_handles; i++) {
        struct handle *h = &handles[i];
        if (h->uv == uv && h->on_idle != NULL)
            h->on_idle((uv_idle_t *)h->handle);
        if (h->uv == uv && h->signum == SIGCHLD && h->on_signal != NULL && sim_child_due(host))
            h->on_signal((uv_signal_t *)h->handle, SIGCHLD);
    }
}

static void run_closing(const uv_loop_t *uv)
{
    for (size_t i = 0; i < n_handles;) {
        struct handle h = handles[i];
        if (h.uv != uv || !h.closes) {
            i++;
            continue;
        }
        memmove(&handles[i], &handles[i + 1], (--n_handles - i) * sizeof *handles);
        if (h.on_close != NULL)
            h.on_close(h.handle);
        i = 0;
    }
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    int host = host_of(uv);
    (void)mode;
    run_timers(uv);
    if (host != NOBODY) {
        sim_background_done(host);
        run_others(uv, host);
        run_polls(uv);
    }
    run_closing(uv);
    return 0;
}

static int64_t next_of(const struct handle *h)
{
    if (h->closes || h->on_idle != NULL)
        return sim.now_us;
    if (h->events == 0)
        return h->due_us;
    int events = events_of(h);
    if (events < 0 || (events & h->events) != 0)
        return sim.now_us;
    int64_t next = sim_net_next(h->fd);
    return next > sim.now_us ? next : SIM_NEVER; /* only the other side can change it */
}

int64_t sim_loop_next(const uv_loop_t *uv, int host)
{
    int64_t next = sim_child_next(host), jobs = sim_background_next(host);
    if (jobs < next)
        next = jobs;
    for (size_t i = 0; i < n_handles; i++) {
        int64_t at = handles[i].uv == uv ? next_of(&handles[i]) : SIM_NEVER;
        if (at < next)
            next = at;
    }
    return next;
}
