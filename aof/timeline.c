#include "aof/timeline.h"

#include "base/time.h"

#include <inttypes.h>

void aof_timeline_init(struct aof_timeline *line, int64_t limit_s)
{
    *line = (struct aof_timeline){
        .limit_s = limit_s, .base_s = AOF_NO_TIME, .first_s = AOF_NO_TIME, .last_s = AOF_NO_TIME};
}

struct time_text {
    char s[RD_TIME_MAX];
};

static struct time_text text_of(int64_t unix_s)
{
    struct time_text text;
    rd_time_put_s(text.s, unix_s);
    return text;
}

static bool base_is_later(const struct aof_timeline *line, const char *name, const char *clock,
                          struct rd_err *err)
{
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the base is from %s (%s), later than %s: the log does not contain earlier data",
               text_of(line->base_s).s, clock, text_of(line->limit_s).s);
    rd_err_origin(err, name);
    return false;
}

bool aof_timeline_snapshot(struct aof_timeline *line, int64_t saved_s, const char *name,
                           struct rd_err *err)
{
    line->has_base = true;
    line->base_s = saved_s;
    return saved_s == AOF_NO_TIME || saved_s <= line->limit_s ||
           base_is_later(line, name, "field ctime of the snapshot", err);
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
    struct time_text time = text_of(time_s);
    struct time_text limit = text_of(line->limit_s);
    if (line->untimed > 0)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the first time annotation is at %s, later than %s; %" PRIu64
                   " earlier command%s no time",
                   time.s, limit.s, line->untimed, line->untimed == 1 ? " has" : "s have");
    else if (!line->has_base)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the log begins at %s, later than %s", time.s,
                   limit.s);
    else if (line->base_s == AOF_NO_TIME)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the base does not record its time, and the first time annotation is at %s, "
                   "later than %s",
                   time.s, limit.s);
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
