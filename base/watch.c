#include "base/watch.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_MAX = 2048 };

static void say(const struct rd_watch *watch, enum rd_watch_kind kind, const char *fmt,
                va_list args)
{
    char text[TEXT_MAX];
    if (watch == NULL || watch->ops == NULL || watch->ops->say == NULL)
        return;
    vsnprintf(text, sizeof text, fmt, args);
    watch->ops->say(watch->ctx, kind, text);
}

void rd_watch_warn(const struct rd_watch *watch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(watch, RD_WATCH_WARNING, fmt, args);
    va_end(args);
}

void rd_watch_note(const struct rd_watch *watch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(watch, RD_WATCH_NOTE, fmt, args);
    va_end(args);
}

void rd_watch_detail(const struct rd_watch *watch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(watch, RD_WATCH_DETAIL, fmt, args);
    va_end(args);
}

void rd_watch_hint(const struct rd_watch *watch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(watch, RD_WATCH_HINT, fmt, args);
    va_end(args);
}

void rd_watch_begin(const struct rd_watch *watch, const char *what, uint64_t total,
                    const struct rd_src *src)
{
    if (watch != NULL && watch->ops != NULL && watch->ops->begin != NULL)
        watch->ops->begin(watch->ctx, what, total, src);
}

void rd_watch_at(const struct rd_watch *watch, uint64_t done)
{
    if (watch != NULL && watch->ops != NULL && watch->ops->at != NULL)
        watch->ops->at(watch->ctx, done);
}

void rd_watch_end(const struct rd_watch *watch)
{
    if (watch != NULL && watch->ops != NULL && watch->ops->end != NULL)
        watch->ops->end(watch->ctx);
}

bool rd_watch_open_file(const struct rd_watch *watch, const char *path, struct rd_src **ret,
                        struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    const struct rd_src *file = src;
    if (!rd_src_decompress(&src, err)) {
        rd_src_close(src);
        return false;
    }
    rd_watch_begin(watch, path, rd_src_size(file), file);
    *ret = src;
    return true;
}

bool rd_watch_cancelled(const struct rd_watch *watch)
{
    return watch != NULL && watch->cancel != NULL && atomic_load(watch->cancel);
}
