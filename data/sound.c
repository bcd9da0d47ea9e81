#include "data/sound.h"

#include "data/spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    struct sound *s = ctx;
    if (finding->severity != RDB_SEVERITY_ERROR || s->finding[0] != '\0')
        return;
    snprintf(s->finding, sizeof s->finding, "byte %" PRIu64 ": %s", finding->offset, finding->text);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    const struct sound *s = ctx;
    if (s->event != NULL)
        s->event(s->ctx, ev);
}

static bool judge(const struct sound *s, struct rd_err *err)
{
    const struct rdb_check_result *res = &s->res;
    if (res->damaged)
        rd_err_adopt(err, &res->err);
    else if (res->trailing > 0)
        rd_err_set(err, RD_ERR_CORRUPT, res->end, "there are bytes after the end of the snapshot");
    else if (res->sum == RDB_SUM_BAD)
        rd_err_set(err, RD_ERR_CHECKSUM, res->end, "checksum mismatch in the snapshot");
    else if (res->errors > 0)
        rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", s->finding);
    else
        return true;
    rd_err_origin(err, s->name);
    return false;
}

bool sound_check(struct sound *sound, struct rd_src *src, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.finding = on_finding, .event = on_event, .ctx = sound, .spool = &for_keys);
    memcpy(opts.seed, sound->seed, sizeof opts.seed);
    sound->res = RDB_CHECK_RESULT();
    bool ok = rdb_check(src, &opts, &sound->res, err) && judge(sound, err);
    spool_done(&keys);
    return ok;
}
