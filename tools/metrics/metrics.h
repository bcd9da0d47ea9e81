/* metrics.h - figures for Prometheus of a tool that runs on: a file, and an address to ask.
 *
 *     struct metrics m = {.cli = cli, .file = path, .address = "9121", .mode = 0644};
 *     if (!metrics_begin(&m, &err))
 *         ...
 *     metrics_write(&m, put_figures, ctx); // now and then
 *     metrics_end(&m);
 *
 * Threads: one uses the struct; a thread of this module answers requests with the figures that were
 * written last. Errors: those of the address end the beginning; a file that cannot be written is a
 * warning, once until it works again. Format: text, version 0.0.4 of Prometheus.
 */
#ifndef TOOLS_METRICS_METRICS_H
#define TOOLS_METRICS_METRICS_H

#include "base/sink.h"
#include "tools/cli/cli.h"

struct metrics_listener;

struct metrics {
    struct cli *cli;
    const char *file;    /* NULL: none */
    const char *address; /* "[ADDRESS:]PORT", on 127.0.0.1 without an address; NULL: none */
    unsigned mode;       /* of the file; 0: that of other files */
    bool failed;         /* the file could not be written */
    struct metrics_listener *listener;
};

/* RD_ERR_USAGE: the address is not one; RD_ERR_IO: it cannot be listened on; RD_ERR_UNSUPPORTED:
 * the program was built without libmicrohttpd. */
bool metrics_begin(struct metrics *m, struct rd_err *err);

static inline bool metrics_wanted(const struct metrics *m)
{
    return m->file != NULL || m->address != NULL;
}

/* Writes what put() writes. Nothing if no figures are wanted. */
void metrics_write(struct metrics *m, void (*put)(void *ctx, struct rd_sink *out), void *ctx);

/* Also after metrics_begin() has failed. */
void metrics_end(struct metrics *m);

/* RD_ERR_USAGE: not "[ADDRESS:]PORT" with a numeric address. */
bool metrics_check_address(const char *text, struct rd_err *err);

#endif
