#include "tools/recorded/who.h"

#include "base/src.h"

/* ---- files of redis-cli ---- */

struct reading {
    struct history_who *who;
    int64_t first_us, last_us; /* of the lines */
    struct rd_buf line;        /* the beginning of one */
};

static bool take_line(struct reading *in, struct rd_slice text, struct rd_err *err)
{
    int64_t time_us;
    if (!history_who_line(in->who, text, INT64_MIN, &time_us, err))
        return false;
    if (time_us == INT64_MIN)
        return true;
    if (in->first_us == INT64_MAX && !history_who_begin(in->who, time_us, false, err))
        return false;
    in->first_us = time_us < in->first_us ? time_us : in->first_us;
    in->last_us = time_us > in->last_us ? time_us : in->last_us;
    return true;
}

/* Bytes up to a line feed, or a part of a line. */
static bool take_bytes(struct reading *in, struct rd_slice bytes, bool whole, struct rd_err *err)
{
    if (whole && in->line.len == 0)
        return take_line(in, bytes, err);
    if (!rd_buf_add(&in->line, bytes.ptr, bytes.len))
        return rd_err_nomem(err, in->line.len + bytes.len);
    if (!whole)
        return true;
    bool ok = take_line(in, rd_buf_slice(&in->line), err);
    rd_buf_reset(&in->line);
    return ok;
}

static bool take_window(struct reading *in, struct rd_src *src, struct rd_slice window,
                        struct rd_err *err)
{
    const uint8_t *at = window.ptr, *end = at + window.len;
    while (at < end) {
        const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((lf != NULL ? lf : end) - at);
        if (!take_bytes(in, rd_slice(at, len), lf != NULL, err))
            return false;
        at += len + (lf != NULL);
    }
    rd_src_consume(src, window.len);
    return true;
}

/* A last line without its line feed may be torn: it is left out. */
static bool read_lines(struct reading *in, struct rd_src *src, struct rd_err *err)
{
    struct rd_slice window;
    enum rd_src_status status;
    while ((status = rd_src_need(src, 1, &window)) == RD_SRC_OK)
        if (!take_window(in, src, window, err))
            return false;
    if (status == RD_SRC_END)
        return true;
    rd_err_adopt(err, rd_src_err(src));
    return false;
}

static bool read_file(struct history_who *who, const char *path, struct rd_err *err)
{
    struct reading in = {.who = who, .first_us = INT64_MAX, .last_us = INT64_MIN};
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, &RD_SRC_OPTS(.origin = path), err))
        return false;
    bool ok = rd_src_decompress(&src, err) && read_lines(&in, src, err);
    rd_src_close(src);
    rd_buf_done(&in.line);
    if (!ok)
        return false;
    if (in.first_us == INT64_MAX) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "it has no line of MONITOR, such as: 1700000000.000000 [0 10.0.0.5:41234] "
                   "\"SET\" \"k\" \"v\"");
        rd_err_origin(err, path);
        return false;
    }
    return history_who_covered(who, in.first_us, in.last_us, err);
}

/* ---- the commands ---- */

static bool visit(void *ctx, const struct history_visit *visit, struct rd_err *err)
{
    return history_who_visit(ctx, visit, err);
}

static void restart(void *ctx)
{
    history_who_restart(ctx);
}

static bool replay(struct recorded *r, int64_t now_us, struct rd_err *err)
{
    const struct history_replay_opts opts = {.tape = &r->tape,
                                             .indexes = &r->indexes,
                                             .names = &r->names,
                                             .now_us = now_us,
                                             .visit = visit,
                                             .restart = restart,
                                             .ctx = r->who};
    return history_replay(&opts, err);
}

/* The times of a capture are those of arrival, by the clock of the machine that captured. Those of
 * a log are seconds of the clock of the server. The clocks may differ. */
enum { APART_US = 1000000 };

bool recorded_who_find(struct recorded *r, int64_t now_us, struct rd_err *err)
{
    struct history_who_opts opts = {.names = &r->names, .early_us = APART_US, .late_us = APART_US};
    if (r->n_monitor_files == 0)
        return true;
    memcpy(opts.salt, r->indexes.salt, sizeof opts.salt);
    if (!history_who_new(&r->who, &opts, err) || !replay(r, now_us, err))
        return false;
    for (size_t i = 0; i < r->n_monitor_files; i++)
        if (!read_file(r->who, r->monitor_files[i], err))
            return false;
    history_who_join(r->who);
    return true;
}

struct rd_slice recorded_who_of(const struct recorded *r, struct history_place place)
{
    return r->who != NULL ? history_who_find(r->who, place) : rd_slice(NULL, 0);
}
