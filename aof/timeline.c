#include "aof/timeline.h"

#include <inttypes.h>

void aof_timeline_init(struct aof_timeline *line, int64_t limit_s)
{
    *line = (struct aof_timeline){
        .limit_s = limit_s, .base_s = AOF_NO_TIME, .first_s = AOF_NO_TIME, .last_s = AOF_NO_TIME};
}

static bool base_is_later(const struct aof_timeline *line, const char *name, const char *clock,
                          struct rd_err *err)
{
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the base is from %" PRId64 " (%s), later than %" PRId64
               ": the log does not contain earlier data",
               line->base_s, clock, line->limit_s);
    rd_err_origin(err, name);
    return false;
}

bool aof_timeline_snapshot(struct aof_timeline *line, int64_t saved_s, const char *name,
                           struct rd_err *err)
{
    line->has_base = true;
    line->base_s = saved_s;
    return saved_s == AOF_NO_TIME || saved_s <= line->limit_s ||
           base_is_later(line, name, "aux ctime of the snapshot", err);
}

void aof_timeline_command(struct aof_timeline *line, bool in_base)
{
    line->has_base = line->has_base || in_base;
    line->untimed += !in_base && line->annotations == 0;
}

/* The first annotation is later than the limit: checks whether the data before it is known. */
static enum aof_timeline_step first_is_later(const struct aof_timeline *line, int64_t time_s,
                                             const char *name, struct rd_err *err)
{
    if (line->untimed > 0)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the first time annotation is at %" PRId64 ", later than %" PRId64 "; %" PRIu64
                   " earlier command%s no time",
                   time_s, line->limit_s, line->untimed, line->untimed == 1 ? " has" : "s have");
    else if (!line->has_base)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the log begins at %" PRId64 ", later than %" PRId64, time_s, line->limit_s);
    else if (line->base_s == AOF_NO_TIME)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the base does not record its time, and the first time annotation is at "
                   "%" PRId64 ", later than %" PRId64,
                   time_s, line->limit_s);
    else
        return AOF_TIMELINE_STOP;
    rd_err_origin(err, name);
    return AOF_TIMELINE_REFUSE;
}

enum aof_timeline_step aof_timeline_annotation(struct aof_timeline *line, int64_t time_s,
                                               bool in_base, const char *name, struct rd_err *err)
{
    bool first = line->annotations++ == 0;
    if (first)
        line->first_s = time_s;
    if (in_base) {
        line->has_base = true;
        if (line->base_s == AOF_NO_TIME)
            line->base_s = time_s;
        if (time_s > line->limit_s) {
            base_is_later(line, name, "its time annotation", err);
            return AOF_TIMELINE_REFUSE;
        }
    }
    if (time_s > line->limit_s)
        return first ? first_is_later(line, time_s, name, err) : AOF_TIMELINE_STOP;
    line->last_s = time_s;
    return AOF_TIMELINE_GO_ON;
}

bool aof_timeline_end(const struct aof_timeline *line, struct rd_err *err)
{
    return line->annotations > 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the log has no times: it has no time annotation (the server writes them "
                      "with aof-timestamp-enabled yes, which is off by default)");
}
