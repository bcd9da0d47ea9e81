/* judge_persistence.c - checks whether the data survives a restart. */
#include "tools/doctor/doctor.h"

enum {
    EVERYSEC_MS = 2000, /* the log waits for a delayed fsync for two seconds */
    KERNEL_MS = 35000,  /* the kernel writes dirty pages after 30 s, looking every 5 s */
    DELAYS_PER_HOUR = 1
};

static bool log_is_on(const struct doctor *d)
{
    return doctor_info_or_0(d, "aof_enabled") == 1 || doctor_config_is(d, "appendonly", "yes");
}

/* "systemd" or "upstart", which restart what they supervise. */
static const char *supervisor(const struct doctor *d)
{
    struct rd_slice text;
    if (!client_info_find(rd_buf_slice(&d->info), "process_supervised", &text))
        return "";
    return rd_slice_is(text, "systemd")   ? ", supervised by systemd"
           : rd_slice_is(text, "upstart") ? ", supervised by upstart"
                                          : "";
}

void doctor_judge_no_persistence(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice save;
    uint64_t seconds, replicas = doctor_replicas(d);
    if (!doctor_is_master(d)) {
        doctor_none(v, "the server is a replica");
        return;
    }
    if (log_is_on(d)) {
        doctor_passed(v, "appendonly yes");
        return;
    }
    if (!doctor_config(d, v, "save", &save))
        return;
    size_t n = doctor_save_points(save, &seconds);
    if (n > 0) {
        doctor_passed(v, "%zu save point%s", n, rd_show_plural(n));
        return;
    }
    if (replicas == 0 && supervisor(d)[0] == '\0')
        v->severity = DOCTOR_WARNING;
    doctor_found(v, "no save point, appendonly no, %s replica%s%s", rd_show_count(replicas).s,
                 rd_show_plural(replicas), supervisor(d));
}

/* ---- the required recovery point ---- */

/* How many ms of changes a crash may lose, by the log. False: CONFIG does not say. */
static bool loss_of_log(const struct doctor *d, struct doctor_verdict *v, uint64_t *ret)
{
    struct rd_slice fsync;
    if (!doctor_config(d, v, "appendfsync", &fsync))
        return false;
    *ret = rd_slice_is(fsync, "always")     ? 0
           : rd_slice_is(fsync, "everysec") ? EVERYSEC_MS
                                            : KERNEL_MS;
    return true;
}

/* The same by the save points; UINT64_MAX: no limit. */
static bool loss_of_snapshots(const struct doctor *d, struct doctor_verdict *v, uint64_t *ret)
{
    struct rd_slice save;
    uint64_t seconds, save_s;
    if (!doctor_config(d, v, "save", &save))
        return false;
    doctor_save_points(save, &seconds);
    save_s = doctor_info_or_0(d, "rdb_last_bgsave_time_sec"); /* -1: none yet */
    *ret = seconds == 0 || seconds > UINT32_MAX ? UINT64_MAX : (seconds + save_s) * 1000;
    return true;
}

void doctor_judge_rpo(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t loss;
    if (!d->rpo_given) {
        doctor_skipped(v, "--rpo is not given");
        return;
    }
    if (!(log_is_on(d) ? loss_of_log(d, v, &loss) : loss_of_snapshots(d, v, &loss)))
        return;
    if (loss <= d->rpo_ms) {
        doctor_passed(v, "a crash loses at most %s of changes", rd_show_duration(loss).s);
        return;
    }
    if (loss == UINT64_MAX)
        doctor_found(v, "no save point is triggered by a single change, appendonly no; --rpo is %s",
                     rd_show_duration(d->rpo_ms).s);
    else
        doctor_found(v, "a crash may lose up to %s of changes; --rpo is %s",
                     rd_show_duration(loss).s, rd_show_duration(d->rpo_ms).s);
    if (d->rpo_ms < EVERYSEC_MS)
        doctor_fix(v, "CONFIG SET appendonly yes; CONFIG SET appendfsync always");
    else if (d->rpo_ms < 60000)
        doctor_fix(v, "CONFIG SET appendonly yes; CONFIG SET appendfsync everysec");
    else
        doctor_fix(v, "CONFIG SET appendonly yes; or CONFIG SET save \"%llu 1\"",
                   (unsigned long long)(d->rpo_ms / 2000));
}

/* ---- the last writes ---- */

static void judge_status(const struct doctor *d, struct doctor_verdict *v, const char *field)
{
    struct rd_slice text;
    if (!doctor_info(d, v, field, &text))
        return;
    if (rd_slice_is(text, "ok"))
        doctor_passed(v, "%s:ok", field);
    else
        doctor_found(v, "%s:%s", field, rd_show_plain(text).s);
}

void doctor_judge_last_save(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t changes = doctor_info_or_0(d, "rdb_changes_since_last_save");
    judge_status(d, v, "rdb_last_bgsave_status");
    if (v->state == DOCTOR_FOUND)
        doctor_found(v, "rdb_last_bgsave_status is not ok, %s change%s since the last snapshot",
                     rd_show_count(changes).s, rd_show_plural(changes));
}

void doctor_judge_last_rewrite(const struct doctor *d, struct doctor_verdict *v)
{
    if (log_is_on(d))
        judge_status(d, v, "aof_last_bgrewrite_status");
    else
        doctor_none(v, "appendonly no");
}

void doctor_judge_log_write(const struct doctor *d, struct doctor_verdict *v)
{
    if (log_is_on(d))
        judge_status(d, v, "aof_last_write_status");
    else
        doctor_none(v, "appendonly no");
}

void doctor_judge_stop_writes(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice save, stop;
    uint64_t seconds;
    if (!doctor_config(d, v, "save", &save) ||
        !doctor_config(d, v, "stop-writes-on-bgsave-error", &stop))
        return;
    if (doctor_save_points(save, &seconds) == 0)
        doctor_none(v, "no save point");
    else if (rd_slice_is(stop, "no"))
        doctor_found(v, "stop-writes-on-bgsave-error no");
    else
        doctor_passed(v, "stop-writes-on-bgsave-error yes");
}

/* ---- fsync ---- */

static void judge_setting(const struct doctor *d, struct doctor_verdict *v, const char *name,
                          const char *bad)
{
    struct rd_slice text;
    if (!log_is_on(d))
        doctor_none(v, "appendonly no");
    else if (!doctor_config(d, v, name, &text))
        return;
    else if (rd_slice_is(text, bad))
        doctor_found(v, "%s %s", name, bad);
    else
        doctor_passed(v, "%s %s", name, rd_show_plain(text).s);
}

void doctor_judge_fsync_off(const struct doctor *d, struct doctor_verdict *v)
{
    judge_setting(d, v, "appendfsync", "no");
}

void doctor_judge_fsync_rewrite(const struct doctor *d, struct doctor_verdict *v)
{
    judge_setting(d, v, "no-appendfsync-on-rewrite", "yes");
}

void doctor_judge_fsync_delays(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t delayed, seconds;
    if (!log_is_on(d)) {
        doctor_none(v, "appendonly no");
        return;
    }
    if (!doctor_info_u64(d, v, "aof_delayed_fsync", &delayed) ||
        !doctor_info_u64(d, v, "uptime_in_seconds", &seconds))
        return;
    uint64_t pending = doctor_info_or_0(d, "aof_pending_bio_fsync");
    if (delayed > DELAYS_PER_HOUR * (seconds / 3600))
        doctor_found(v, "aof_delayed_fsync:%s in %s, aof_pending_bio_fsync:%s",
                     rd_show_count(delayed).s, rd_show_duration(seconds * 1000).s,
                     rd_show_count(pending).s);
    else
        doctor_passed(v, "aof_delayed_fsync:%s in %s, aof_pending_bio_fsync:%s",
                      rd_show_count(delayed).s, rd_show_duration(seconds * 1000).s,
                      rd_show_count(pending).s);
}
