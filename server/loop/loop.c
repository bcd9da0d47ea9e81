#include "server/loop/loop.h"

#include <time.h>

#include "base/mem.h"
#include "server/loop/background.h"
#include "server/loop/conn.h"
#include "server/loop/latency.h"
#include "server/loop/log.h"
#include "server/loop/net.h"
#include "server/loop/tls.h"

void loop_clock(struct loop *loop)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    loop->now_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    loop->mono_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    loop->slept = false;
}

/* A turn follows, so the loop must not sleep now. */
static void on_cron(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    loop->cron_due = true;
    uv_stop(loop->uv);
}

void loop_start_cron(struct loop *loop, uint64_t ms)
{
    uv_timer_start(&loop->timer, on_cron, ms, 0);
}

static void run_cron(struct loop *loop)
{
    loop->cron_due = false;
    loop_clock(loop);
    loop->cron(loop);
    loop_start_cron(loop, (uint64_t)(1000 / loop->hz));
}

void loop_events(struct loop *loop, uv_run_mode mode)
{
    loop->slept = true;
    loop->in_loop = true;
    uv_run(loop->uv, mode);
    loop->in_loop = false;
    if (loop->cron_due)
        run_cron(loop);
    conn_run_events(loop);
}

void loop_init(struct loop *loop)
{
    loop->uv = rd_alloc(sizeof *loop->uv);
    if (loop->uv == NULL || uv_loop_init(loop->uv) != 0)
        log_panic("out of memory");
    loop_clock(loop);
    loop->started_us = loop->now_us;
    loop->hz = loop->settings.hz;
    stats_init(&loop->stats);
    loop->latency = latency_new();
    uv_timer_init(loop->uv, &loop->timer);
    loop->timer.data = loop;
}

void loop_free(struct loop *loop)
{
    background_free(loop);
    net_free(loop);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_run(loop->uv, UV_RUN_DEFAULT); /* what is being closed */
    if (uv_loop_close(loop->uv) == 0)
        rd_free(loop->uv);
    tls_free(loop->tls);
    latency_free(loop->latency);
    stats_done(&loop->stats);
    settings_done(&loop->settings);
    rd_free(loop->executable);
    rd_free(loop->config_file);
}
