#include "capture/capture.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/digest.h"
#include "base/mem.h"

enum { WAIT_MAX_MS = 60000 };

void capture_event(struct capture *c, const struct capture_link *link, const char *event,
                   bool trouble, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->event != NULL)
        c->event(c, link, event, trouble, text);
}

/* ---- links ---- */

bool capture_add_link(struct capture *c, const struct client_target *target, const char *folder,
                      struct capture_link **ret, struct rd_err *err)
{
    struct capture_link *link = NULL;
    struct client_target owned = *target;
    if (c->n_links == c->cap_links) {
        size_t cap = c->cap_links == 0 ? 4 : 2 * c->cap_links;
        struct capture_link **links = rd_realloc(c->links, cap * sizeof(*links));
        if (links == NULL) {
            client_target_done(&owned);
            return rd_err_nomem(err, cap * sizeof(*links));
        }
        c->links = links;
        c->cap_links = cap;
    }
    bool ok = capture_link_new(&link, c, target, folder, err);
    if (link == NULL)
        client_target_done(&owned);
    else
        c->links[c->n_links++] = link;
    *ret = link;
    return ok;
}

/* ---- the loop ---- */

static bool prepare(struct capture *c, struct pollfd *polls, uint64_t *ret_wait_ms, bool *ret_over,
                    struct rd_err *err)
{
    uint64_t now_ms = capture_now_ms();
    *ret_over = true;
    for (size_t i = 0; i < c->n_links; i++) {
        if (!capture_link_prepare(c->links[i], now_ms, &polls[i], ret_wait_ms, err))
            return false;
        *ret_over &= c->links[i]->state == CAPTURE_DONE;
        capture_monitor_prepare(&c->links[i]->monitor, c->links[i], now_ms, &polls[c->n_links + i],
                                ret_wait_ms);
    }
    return c->tick == NULL || c->tick(c, now_ms, ret_wait_ms, err);
}

static bool turn(struct capture *c, bool *ret_over, struct rd_err *err)
{
    uint64_t wait_ms = WAIT_MAX_MS;
    /* Links are added here only, and nowhere else in this turn. */
    if (!capture_hosts_tick(c, capture_now_ms(), &wait_ms, err))
        return false;
    size_t n = c->n_links;
    struct pollfd *polls = rd_calloc(2 * n, sizeof *polls); /* and for MONITOR */
    if (polls == NULL)
        return rd_err_nomem(err, 2 * n * sizeof *polls);
    bool ok = prepare(c, polls, &wait_ms, ret_over, err) && capture_timely_clock(c, err);
    const struct capture_stamp stamp = capture_stamp_now();
    const struct timespec limit = {.tv_sec = (time_t)(wait_ms / 1000),
                                   .tv_nsec = (long)(wait_ms % 1000) * 1000000};
    int n_ready = ok && !*ret_over ? ppoll(polls, 2 * n, &limit, c->waiting) : -1;
    uint64_t now_ms = capture_now_ms();
    for (size_t i = 0; ok && n_ready >= 0 && i < n; i++) {
        if (polls[i].revents == 0)
            capture_timely_idle(c->links[i], &stamp);
        else
            ok = capture_link_work(c->links[i], polls[i].revents, now_ms, err);
        if (ok)
            capture_monitor_work(&c->links[i]->monitor, c->links[i], polls[n + i].revents, now_ms);
    }
    rd_free(polls);
    return ok;
}

static bool finish(struct capture *c, struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; i < c->n_links; i++)
        ok = capture_link_finish(c->links[i], capture_now_ms(), ok ? err : NULL) && ok;
    return ok;
}

static bool loop(struct capture *c, struct rd_err *err)
{
    bool over = false;
    while (!over && (c->stop == NULL || *c->stop == 0))
        if (!turn(c, &over, err))
            return false;
    return true;
}

bool capture_init(struct capture *c, capture_random *draw, struct rd_err *err)
{
    uint8_t bytes[REPL_REPLID_LEN / 2];
    capture_job_init(&c->syncer);
    if (!draw(bytes, sizeof bytes, err))
        return false;
    rd_digest_hex(c->run.hex, rd_slice(bytes, sizeof bytes));
    c->buf = rd_alloc(CAPTURE_READ);
    return c->buf != NULL || rd_err_nomem(err, CAPTURE_READ);
}

bool capture_begin(struct capture *c, struct rd_err *err)
{
    return c->n_links > 0 || capture_hosts_begin(c, err);
}

bool capture_run(struct capture *c, struct rd_err *err)
{
    bool ok = loop(c, err);
    return finish(c, ok ? err : NULL) && ok;
}

void capture_close(struct capture *c, struct rd_err *err)
{
    bool ok = true;
    capture_hosts_end(c);
    for (size_t i = 0; i < c->n_links; i++) {
        capture_monitor_close(&c->links[i]->monitor, c->links[i]);
        ok = capture_store_close(&c->links[i]->store, ok ? err : NULL) && ok;
        capture_link_free(c->links[i]);
    }
    rd_free(c->links);
    c->links = NULL;
    c->n_links = c->cap_links = 0;
    capture_job_free(&c->syncer);
    for (size_t i = 0; i < c->n_sentinels; i++)
        client_target_done(&c->sentinels[i]);
    client_target_done(&c->target);
    rd_free(c->buf);
    c->buf = NULL;
}
