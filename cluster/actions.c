/* What the caller has to do, in order. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "cluster/cluster_impl.h"

struct cluster_queued {
    struct cluster_action action;
    struct cluster_shared *shared; /* has the bytes in place of this block; or NULL */
};

static struct cluster_queued *queue(struct cluster *c, const struct cluster_action *a)
{
    size_t slots = a->slots != NULL ? sizeof *a->slots : 0;
    size_t size = sizeof(struct cluster_queued) + slots + a->bytes.len + a->channel.len +
                  rd_queue_text_size(a->host) + rd_queue_text_size(a->text);
    struct cluster_queued *q = rd_queue_add(&c->actions, size);
    if (q == NULL) {
        c->no_memory = true;
        return NULL;
    }
    uint8_t *at = (uint8_t *)(q + 1);
    q->action = *a;
    if (a->slots != NULL)
        q->action.slots =
            (const struct cluster_slots *)rd_queue_keep(&at, rd_slice(a->slots, slots)).ptr;
    q->action.bytes = rd_queue_keep(&at, a->bytes);
    q->action.channel = rd_queue_keep(&at, a->channel);
    q->action.host = rd_queue_keep_text(&at, a->host);
    q->action.text = rd_queue_keep_text(&at, a->text);
    return q;
}

void cluster_act(struct cluster *c, const struct cluster_action *a)
{
    queue(c, a);
}

void cluster_act_send(struct cluster *c, uint64_t conn, struct cluster_shared *bytes)
{
    struct cluster_queued *q =
        queue(c, &(struct cluster_action){.kind = CLUSTER_SEND, .conn = conn});
    if (q == NULL)
        return;
    q->action.bytes = rd_buf_slice(&bytes->buf);
    q->shared = bytes;
    bytes->users++;
}

void cluster_unshare(struct cluster_shared *bytes)
{
    if (bytes == NULL || --bytes->users > 0)
        return;
    rd_buf_done(&bytes->buf);
    rd_free(bytes);
}

/* The next action; NULL: none. A mute node sends nothing. */
static const struct cluster_queued *take(struct cluster *c)
{
    const struct cluster_queued *q;
    while ((q = rd_queue_take(&c->actions)) != NULL) {
        cluster_unshare(c->given);
        c->given = q->shared;
        if (!c->mute || q->action.kind != CLUSTER_SEND)
            return q;
    }
    cluster_unshare(c->given);
    c->given = NULL;
    return NULL;
}

bool cluster_next(struct cluster *c, struct cluster_action *ret)
{
    const struct cluster_queued *q = take(c);
    if (q == NULL)
        return false;
    if (q == c->save)
        c->save = NULL;
    *ret = q->action;
    return true;
}

void cluster_actions_free(struct cluster *c)
{
    struct cluster_action action;
    while (cluster_next(c, &action))
        continue;
}

/* What is written is the state when the action is handled, so one that waits is enough. After one
 * that failed, and may have had a promise, the next one is synced. */
void cluster_save(struct cluster *c)
{
    if (c->save == NULL && c->started)
        c->save = queue(c, &(struct cluster_action){.kind = CLUSTER_SAVE, .sync = c->save_due});
}

void cluster_save_synced(struct cluster *c)
{
    cluster_save(c);
    if (c->save != NULL)
        c->save->action.sync = true;
}

void cluster_log(struct cluster *c, enum cluster_level level, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_LOG, .level = level, .text = text});
}
