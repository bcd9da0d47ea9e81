/* What the caller has to do, in order. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "cluster/cluster_impl.h"

/* The texts, bytes and slots of an action are in the same block, behind it. */
struct cluster_queued {
    struct cluster_queued *next;
    struct cluster_action action;
    struct cluster_shared *shared; /* has the bytes in place of this block; or NULL */
};

static size_t text_len(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static struct rd_slice keep(uint8_t **at, struct rd_slice bytes)
{
    uint8_t *kept = *at;
    if (bytes.len > 0)
        memcpy(kept, bytes.ptr, bytes.len);
    *at += bytes.len;
    return rd_slice(kept, bytes.len);
}

static const char *keep_text(uint8_t **at, const char *text)
{
    if (text == NULL)
        return NULL;
    return (const char *)keep(at, rd_slice(text, text_len(text))).ptr;
}

static struct cluster_queued *queue(struct cluster *c, const struct cluster_action *a)
{
    size_t slots = a->slots != NULL ? sizeof *a->slots : 0;
    size_t size = sizeof(struct cluster_queued) + slots + a->bytes.len + a->channel.len +
                  text_len(a->host) + text_len(a->text);
    struct cluster_queued *q = cluster_alloc(c, size);
    if (q == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)(q + 1);
    q->action = *a;
    if (a->slots != NULL)
        q->action.slots = (const struct cluster_slots *)keep(&at, rd_slice(a->slots, slots)).ptr;
    q->action.bytes = keep(&at, a->bytes);
    q->action.channel = keep(&at, a->channel);
    q->action.host = keep_text(&at, a->host);
    q->action.text = keep_text(&at, a->text);
    if (c->last != NULL)
        c->last->next = q;
    else
        c->first = q;
    c->last = q;
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

bool cluster_next(struct cluster *c, struct cluster_action *ret)
{
    struct cluster_queued *q = c->first;
    if (c->given != NULL)
        cluster_unshare(c->given->shared);
    rd_free(c->given);
    c->given = q;
    if (q == NULL)
        return false;
    c->first = q->next;
    if (c->first == NULL)
        c->last = NULL;
    if (q->action.kind == CLUSTER_SAVE)
        c->save_waits = false;
    *ret = q->action;
    return true;
}

void cluster_actions_free(struct cluster *c)
{
    struct cluster_action action;
    while (cluster_next(c, &action))
        continue;
}

/* What is written is the state when the action is handled, so one that waits is enough. */
void cluster_save(struct cluster *c)
{
    if (c->save_waits || !c->started)
        return;
    c->save_waits = true;
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_SAVE});
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
