/* watch.h - who follows the work of a library: takes its messages and its progress, and can end it.
 *
 *     static const struct rd_watch_ops ops = {.say = say, .begin = begin, .at = at, .end = end};
 *     const struct rd_watch watch = {.ops = &ops, .ctx = &screen};
 *     if (!backup_lock(&watch, &open, 0, "backup", &err))
 *         ...
 *
 * Libraries print nothing. What is not an error but concerns the user goes to the watch. Without
 * a watch (NULL), or without ops, it goes nowhere.
 *
 * Threads: the functions may be called by several threads at once if the ops may.
 */
#ifndef BASE_WATCH_H
#define BASE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/src.h"

enum rd_watch_kind {
    RD_WATCH_WARNING, /* the result may not be what the user expects */
    RD_WATCH_NOTE,    /* for information */
    RD_WATCH_DETAIL,  /* for those who want to know everything */
    RD_WATCH_HINT     /* what the user can do about the error that follows */
};

/* Each may be NULL. */
struct rd_watch_ops {
    void (*say)(void *ctx, enum rd_watch_kind kind, const char *text);
    /* A part of the work begins: total is in bytes, or RD_NO_OFFSET. With src, the progress is its
     * offset, until the end. */
    void (*begin)(void *ctx, const char *what, uint64_t total, const struct rd_src *src);
    void (*at)(void *ctx, uint64_t done);
    void (*end)(void *ctx);
};

struct rd_watch {
    const struct rd_watch_ops *ops;
    void *ctx;
    const atomic_bool *cancel; /* true: end as soon as possible; may be NULL */
};

void rd_watch_warn(const struct rd_watch *watch, const char *fmt, ...) RD_PRINTF(2, 3);
void rd_watch_note(const struct rd_watch *watch, const char *fmt, ...) RD_PRINTF(2, 3);
void rd_watch_detail(const struct rd_watch *watch, const char *fmt, ...) RD_PRINTF(2, 3);
void rd_watch_hint(const struct rd_watch *watch, const char *fmt, ...) RD_PRINTF(2, 3);

void rd_watch_begin(const struct rd_watch *watch, const char *what, uint64_t total,
                    const struct rd_src *src);
void rd_watch_at(const struct rd_watch *watch, uint64_t done);
void rd_watch_end(const struct rd_watch *watch);

/* Opens a file, which may be compressed, and begins a part of the work, which rd_watch_end() ends.
 * The progress is that of the file, because its size is known. */
bool rd_watch_open_file(const struct rd_watch *watch, const char *path, struct rd_src **ret,
                        struct rd_err *err);

bool rd_watch_cancelled(const struct rd_watch *watch);

#endif
