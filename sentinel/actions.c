/* What the caller has to do, in order. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* ---- the queue ---- */

static size_t size_of(const struct sentinel_action *a)
{
    size_t size = sizeof *a + a->argc * sizeof *a->argv;
    for (size_t i = 0; i < a->argc; i++)
        size += a->argv[i].len;
    return size + rd_queue_text_size(a->host) + rd_queue_text_size(a->name) +
           rd_queue_text_size(a->text);
}

void sentinel_act(struct sentinel *s, const struct sentinel_action *a)
{
    struct sentinel_action *kept = rd_queue_add(&s->actions, size_of(a));
    if (kept == NULL) {
        s->no_memory = true;
        return;
    }
    struct rd_slice *words = (struct rd_slice *)(kept + 1);
    uint8_t *at = (uint8_t *)(words + a->argc);
    *kept = *a;
    kept->argv = words;
    for (size_t i = 0; i < a->argc; i++)
        words[i] = rd_queue_keep(&at, a->argv[i]);
    kept->host = rd_queue_keep_text(&at, a->host);
    kept->name = rd_queue_keep_text(&at, a->name);
    kept->text = rd_queue_keep_text(&at, a->text);
}

bool sentinel_next(struct sentinel *s, struct sentinel_action *ret)
{
    const struct sentinel_action *a = rd_queue_take(&s->actions);
    if (a != NULL)
        *ret = *a;
    return a != NULL;
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

/* The text, with its terminator, after what `text` has. */
RD_PRINTF(6, 0)
static void publish(struct sentinel *s, enum sentinel_level level, const char *name,
                    struct sentinel_instance *about, struct rd_buf *text, const char *fmt,
                    va_list args)
{
    if (!format(s, text, fmt, args))
        return;
    sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_EVENT,
                                              .level = level,
                                              .name = name,
                                              .text = (const char *)text->ptr});
    if (about != NULL && level == SENTINEL_LEVEL_WARNING)
        sentinel_notify(sentinel_master_of(about), name, (const char *)text->ptr);
}

void sentinel_event(struct sentinel *s, enum sentinel_level level, const char *name,
                    struct sentinel_instance *ri, const char *fmt, ...)
{
    struct rd_buf text = {0};
    va_list args;
    va_start(args, fmt);
    if (describe(ri, &text))
        publish(s, level, name, ri, &text, fmt, args);
    else
        s->no_memory = true;
    va_end(args);
    rd_buf_done(&text);
}

void sentinel_event_plain(struct sentinel *s, enum sentinel_level level, const char *name,
                          struct sentinel_instance *about, const char *fmt, ...)
{
    struct rd_buf text = {0};
    va_list args;
    va_start(args, fmt);
    publish(s, level, name, about, &text, fmt, args);
    va_end(args);
    rd_buf_done(&text);
}
