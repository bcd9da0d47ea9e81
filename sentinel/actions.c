/* What the caller has to do, in order. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* The texts and words of an action are in the same block, behind it. */
struct sentinel_queued {
    struct sentinel_queued *next;
    struct sentinel_action action;
};

/* ---- the queue ---- */

static size_t size_of(const struct sentinel_action *a)
{
    size_t size = sizeof(struct sentinel_queued) + a->argc * sizeof *a->argv;
    for (size_t i = 0; i < a->argc; i++)
        size += a->argv[i].len;
    size += a->host != NULL ? strlen(a->host) + 1 : 0;
    size += a->name != NULL ? strlen(a->name) + 1 : 0;
    return size + (a->text != NULL ? strlen(a->text) + 1 : 0);
}

static const char *keep_text(char **at, const char *text)
{
    char *kept = *at;
    if (text == NULL)
        return NULL;
    size_t len = strlen(text) + 1;
    memcpy(kept, text, len);
    *at += len;
    return kept;
}

static void keep_words(struct sentinel_queued *q, const struct sentinel_action *a)
{
    struct rd_slice *words = (struct rd_slice *)(q + 1);
    char *at = (char *)(words + a->argc);
    q->action = *a;
    q->action.argv = words;
    for (size_t i = 0; i < a->argc; i++) {
        words[i] = rd_slice(at, a->argv[i].len);
        if (a->argv[i].len > 0)
            memcpy(at, a->argv[i].ptr, a->argv[i].len);
        at += a->argv[i].len;
    }
    q->action.host = keep_text(&at, a->host);
    q->action.name = keep_text(&at, a->name);
    q->action.text = keep_text(&at, a->text);
}

void sentinel_act(struct sentinel *s, const struct sentinel_action *action)
{
    struct sentinel_queued *q = sentinel_alloc(s, size_of(action));
    if (q == NULL)
        return;
    keep_words(q, action);
    if (s->last != NULL)
        s->last->next = q;
    else
        s->first = q;
    s->last = q;
}

bool sentinel_next(struct sentinel *s, struct sentinel_action *ret)
{
    struct sentinel_queued *q = s->first;
    rd_free(s->given);
    s->given = q;
    if (q == NULL)
        return false;
    s->first = q->next;
    if (s->first == NULL)
        s->last = NULL;
    *ret = q->action;
    return true;
}

void sentinel_actions_free(struct sentinel *s)
{
    struct sentinel_action action;
    while (sentinel_next(s, &action))
        continue;
}

/* ---- actions without a connection ---- */

void sentinel_save(struct sentinel *s)
{
    s->save_tried_ms = s->now_ms;
    if (s->started)
        sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_SAVE});
}

RD_PRINTF(3, 0)
static bool format(struct sentinel *s, struct rd_buf *out, const char *fmt, va_list args)
{
    char text[1024];
    int n = vsnprintf(text, sizeof text, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    bool ok = rd_buf_add(out, text, len) && rd_buf_add_byte(out, 0);
    s->no_memory |= !ok;
    return ok;
}

void sentinel_log(struct sentinel *s, enum sentinel_level level, const char *fmt, ...)
{
    struct rd_buf text = {0};
    va_list args;
    va_start(args, fmt);
    if (format(s, &text, fmt, args))
        sentinel_act(s, &(struct sentinel_action){
                            .kind = SENTINEL_LOG, .level = level, .text = (const char *)text.ptr});
    va_end(args);
    rd_buf_done(&text);
}

static const char *kind_of(const struct sentinel_instance *ri)
{
    return sentinel_is(ri, SENTINEL_FLAG_MASTER)    ? "master"
           : sentinel_is(ri, SENTINEL_FLAG_REPLICA) ? "slave"
                                                    : "sentinel";
}

/* "slave 127.0.0.1:6380 127.0.0.1 6380 @ mymaster 127.0.0.1 6379" */
static bool describe(const struct sentinel_instance *ri, struct rd_buf *out)
{
    const struct sentinel_instance *m = ri->master;
    return rd_buf_printf(out, "%s %s %s %d", kind_of(ri), ri->name,
                         sentinel_addr_host(ri->s, &ri->addr), ri->addr.port) &&
           (m == NULL || rd_buf_printf(out, " @ %s %s %d", m->name,
                                       sentinel_addr_host(ri->s, &m->addr), m->addr.port));
}

void sentinel_event(struct sentinel *s, enum sentinel_level level, const char *name,
                    struct sentinel_instance *ri, const char *fmt, ...)
{
    struct rd_buf text = {0};
    va_list args;
    va_start(args, fmt);
    if (ri != NULL && !describe(ri, &text))
        s->no_memory = true;
    else if (format(s, &text, fmt, args))
        sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_EVENT,
                                                  .level = level,
                                                  .name = name,
                                                  .text = (const char *)text.ptr});
    va_end(args);
    if (ri != NULL && level == SENTINEL_LEVEL_WARNING && !s->no_memory)
        sentinel_notify(sentinel_master_of(ri), name, (const char *)text.ptr);
    rd_buf_done(&text);
}
