/* judge_replication.c - replicas, and what a full or partial sync needs. */
#include "tools/doctor/doctor.h"

#include "base/num.h"

#include <stdio.h>

enum {
    LAG_MAX_S = 10,
    SYNC_BYTES_PER_S = 100 << 20, /* how fast a snapshot is made and sent, unless known */
    MIB = 1 << 20
};

/* False: the check does not apply. */
static bool has_replicas(const struct doctor *d, struct doctor_verdict *v)
{
    if (doctor_replicas(d) > 0)
        return true;
    doctor_none(v, "no replica is connected");
    return false;
}

static bool is_replica(const struct doctor *d, struct doctor_verdict *v)
{
    if (!doctor_is_master(d))
        return true;
    doctor_none(v, "the server is a master");
    return false;
}

/* ---- the state of replicas ---- */

void doctor_judge_replica_down(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice link;
    if (!is_replica(d, v) || !doctor_info(d, v, "master_link_status", &link))
        return;
    if (rd_slice_is(link, "up"))
        doctor_passed(v, "master_link_status:up");
    else
        doctor_found(
            v, "master_link_status:%s for %s", rd_show_plain(link).s,
            rd_show_duration(doctor_info_or_0(d, "master_link_down_since_seconds") * 1000).s);
}

struct lag {
    uint64_t worst_s;
    uint64_t syncing; /* replicas that are not online */
    uint64_t unknown;
    struct rd_slice name; /* of the worst */
};

static void add_replica(struct lag *lag, struct rd_slice line)
{
    struct rd_slice state, text, ip;
    uint64_t seconds;
    if (!client_info_part(line, "state", &state) || !client_info_part(line, "lag", &text) ||
        !rd_num_get_u64(text, &seconds)) {
        lag->unknown++;
        return;
    }
    lag->syncing += !rd_slice_is(state, "online");
    if (rd_slice_is(state, "online") && seconds >= lag->worst_s &&
        client_info_part(line, "ip", &ip)) {
        lag->worst_s = seconds;
        lag->name = ip;
    }
}

static void judge_own_lag(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t seconds;
    struct rd_slice link;
    if (client_info_find(rd_buf_slice(&d->info), "master_link_status", &link) &&
        !rd_slice_is(link, "up"))
        doctor_none(v, "the link to the master is down");
    else if (!doctor_info_u64(d, v, "master_last_io_seconds_ago", &seconds))
        return;
    else if (seconds > LAG_MAX_S)
        doctor_found(v, "no data from the master for %s", rd_show_duration(seconds * 1000).s);
    else
        doctor_passed(v, "master_last_io_seconds_ago:%s", rd_show_count(seconds).s);
}

void doctor_judge_replica_lag(const struct doctor *d, struct doctor_verdict *v)
{
    struct lag lag = {0};
    char name[40];
    struct rd_slice line;
    uint64_t n = doctor_replicas(d);
    if (n == 0 && !doctor_is_master(d)) {
        judge_own_lag(d, v);
        return;
    }
    if (!has_replicas(d, v))
        return;
    for (uint64_t i = 0; i < n && i < 10000; i++) {
        snprintf(name, sizeof name, "slave%llu", (unsigned long long)i);
        if (client_info_find(rd_buf_slice(&d->info), name, &line))
            add_replica(&lag, line);
    }
    if (lag.syncing > 0)
        doctor_found(v, "%s of %s replicas are not in sync", rd_show_count(lag.syncing).s,
                     rd_show_count(n).s);
    else if (lag.worst_s > LAG_MAX_S)
        doctor_found(v, "no acknowledgement of the replica at %s for %s", rd_show_plain(lag.name).s,
                     rd_show_duration(lag.worst_s * 1000).s);
    else if (lag.unknown > 0)
        doctor_unknown(v, "INFO of this server does not report the lag of replicas");
    else
        doctor_passed(v, "%s replica%s, lag at most %s s", rd_show_count(n).s, rd_show_plural(n),
                      rd_show_count(lag.worst_s).s);
}

void doctor_judge_writes_refused(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t needed, good;
    if (!doctor_is_master(d)) {
        doctor_none(v, "the server is a replica");
        return;
    }
    if (!doctor_config_u64(d, v, "min-replicas-to-write", &needed))
        return;
    if (needed == 0) {
        doctor_none(v, "min-replicas-to-write 0");
        return;
    }
    if (!doctor_info_u64(d, v, "min_slaves_good_slaves", &good))
        return;
    if (good < needed)
        doctor_found(v, "min-replicas-to-write %llu, good replicas %llu",
                     (unsigned long long)needed, (unsigned long long)good);
    else
        doctor_passed(v, "min-replicas-to-write %llu, good replicas %llu",
                      (unsigned long long)needed, (unsigned long long)good);
}

void doctor_judge_min_replicas(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t needed, lag;
    if (!doctor_is_master(d))
        doctor_none(v, "the server is a replica");
    else if (!has_replicas(d, v) || !doctor_config_u64(d, v, "min-replicas-to-write", &needed) ||
             !doctor_config_u64(d, v, "min-replicas-max-lag", &lag))
        return;
    else if (needed > 0 && lag > 0)
        doctor_passed(v, "min-replicas-to-write %llu", (unsigned long long)needed);
    else
        doctor_found(v, "min-replicas-to-write %llu, min-replicas-max-lag %llu",
                     (unsigned long long)needed, (unsigned long long)lag);
}

/* ---- buffers against traffic ---- */

void doctor_judge_backlog(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t size, rate;
    if (!has_replicas(d, v) || !doctor_info_u64(d, v, "repl_backlog_size", &size) ||
        !doctor_traffic(d, v, &rate))
        return;
    double needed = (double)rate * (double)d->outage_ms / 1000;
    uint64_t lasts_ms = rate == 0 ? UINT64_MAX : (uint64_t)((double)size * 1000 / (double)rate);
    if (needed <= (double)size) {
        doctor_passed(v, "%s, traffic %s/s", rd_show_bytes(size).s, rd_show_bytes(rate).s);
        return;
    }
    doctor_found(v, "%s, traffic %s/s: lasts %s, --outage is %s", rd_show_bytes(size).s,
                 rd_show_bytes(rate).s, rd_show_duration(lasts_ms).s,
                 rd_show_duration(d->outage_ms).s);
    doctor_fix(v, "CONFIG SET repl-backlog-size %llumb",
               (unsigned long long)(needed / (double)MIB) + 1);
}

struct limits {
    uint64_t hard, soft, soft_seconds;
};

/* The part of client-output-buffer-limit that is for replicas. */
static bool limits_of_replicas(struct rd_slice text, struct limits *ret)
{
    char copy[500];
    unsigned long long hard, soft, seconds;
    snprintf(copy, sizeof copy, "%.*s", (int)(text.len < sizeof copy ? text.len : 0),
             text.len > 0 ? (const char *)text.ptr : "");
    const char *at = strstr(copy, "slave ");
    if (at == NULL)
        at = strstr(copy, "replica ");
    if (at == NULL || sscanf(strchr(at, ' '), " %20llu %20llu %20llu", &hard, &soft, &seconds) != 3)
        return false;
    *ret = (struct limits){hard, soft, seconds};
    return true;
}

/* How long a full sync takes: the last save took that long, or by the size of the data. */
static uint64_t sync_seconds(const struct doctor *d)
{
    uint64_t by_size = doctor_info_or_0(d, "used_memory") / SYNC_BYTES_PER_S;
    uint64_t by_save = doctor_info_or_0(d, "rdb_last_bgsave_time_sec");
    uint64_t seconds = by_size > by_save ? by_size : by_save;
    return seconds > 0 ? seconds : 1;
}

void doctor_judge_replica_buffer(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice text;
    struct limits limits;
    uint64_t rate, seconds = sync_seconds(d), backlog = doctor_info_or_0(d, "repl_backlog_size");
    if (!has_replicas(d, v) || !doctor_config(d, v, "client-output-buffer-limit", &text))
        return;
    if (!limits_of_replicas(text, &limits)) {
        doctor_unknown(v, "client-output-buffer-limit has no limit of replicas");
        return;
    }
    if (!doctor_traffic(d, v, &rate))
        return;
    /* Since 7.0 a limit below the size of the backlog counts as that size. */
    if (doctor_version(d) >= 700 && limits.hard > 0 && limits.hard < backlog)
        limits.hard = backlog;
    if (doctor_version(d) >= 700 && limits.soft > 0 && limits.soft < backlog)
        limits.soft = backlog;
    double needed = (double)rate * (double)seconds;
    bool hard = limits.hard > 0 && needed > (double)limits.hard;
    bool soft = limits.soft > 0 && seconds > limits.soft_seconds && needed > (double)limits.soft;
    if (!hard && !soft) {
        doctor_passed(v, "a full sync of %s buffers about %s", rd_show_duration(seconds * 1000).s,
                      rd_show_bytes((uint64_t)needed).s);
        return;
    }
    doctor_found(v, "a full sync of about %s buffers %s at %s/s; the limit of replicas is %s",
                 rd_show_duration(seconds * 1000).s, rd_show_bytes((uint64_t)needed).s,
                 rd_show_bytes(rate).s, rd_show_bytes(hard ? limits.hard : limits.soft).s);
    unsigned long long mb = (unsigned long long)(needed * 2 / (double)MIB) + 1;
    doctor_fix(v, "CONFIG SET client-output-buffer-limit \"%s %llumb %llumb 60\"",
               doctor_version(d) >= 500 ? "replica" : "slave", mb, mb);
}

void doctor_judge_repl_timeout(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t timeout, ping, fork_us = doctor_info_or_0(d, "latest_fork_usec");
    if (doctor_is_master(d) && !has_replicas(d, v))
        return;
    if (!doctor_config_u64(d, v, "repl-timeout", &timeout) ||
        !doctor_config_u64(d, v, "repl-ping-replica-period", &ping))
        return;
    if (timeout <= ping)
        doctor_found(v, "repl-timeout %llu, repl-ping-replica-period %llu",
                     (unsigned long long)timeout, (unsigned long long)ping);
    else if (fork_us / 1000000 >= timeout)
        doctor_found(v, "repl-timeout %llu, the last fork took %s", (unsigned long long)timeout,
                     rd_show_duration(fork_us / 1000).s);
    else
        doctor_passed(v, "repl-timeout %llu, repl-ping-replica-period %llu",
                      (unsigned long long)timeout, (unsigned long long)ping);
}

/* ---- settings ---- */

void doctor_judge_diskless_sync(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice diskless;
    uint64_t delay;
    if (!has_replicas(d, v) || !doctor_config(d, v, "repl-diskless-sync", &diskless) ||
        !doctor_config_u64(d, v, "repl-diskless-sync-delay", &delay))
        return;
    if (!rd_slice_is(diskless, "yes"))
        doctor_found(v, "repl-diskless-sync no");
    else if (delay == 0 && doctor_replicas(d) > 1)
        doctor_found(v, "repl-diskless-sync-delay 0 with %s replicas",
                     rd_show_count(doctor_replicas(d)).s);
    else
        doctor_passed(v, "repl-diskless-sync yes");
    if (v->state == DOCTOR_FOUND && rd_slice_is(diskless, "yes"))
        doctor_fix(v, "CONFIG SET repl-diskless-sync-delay 5");
}

void doctor_judge_diskless_load(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice load;
    if (!is_replica(d, v) || !doctor_config(d, v, "repl-diskless-load", &load))
        return;
    if (rd_slice_is(load, "flush-before-load"))
        doctor_found(v, "repl-diskless-load flush-before-load");
    else
        doctor_passed(v, "repl-diskless-load %s", rd_show_plain(load).s);
}

void doctor_judge_replica_writable(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice only;
    if (!is_replica(d, v) || !doctor_config(d, v, "replica-read-only", &only))
        return;
    if (rd_slice_is(only, "no"))
        doctor_found(v, "replica-read-only no");
    else
        doctor_passed(v, "replica-read-only yes");
}

/* ---- access ---- */

void doctor_judge_masterauth(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice secret;
    if (doctor_is_master(d) && !has_replicas(d, v))
        return;
    if (d->open_to_all == DOCTOR_NOT_KNOWN)
        doctor_unknown(v, "a connection without a password could not be tried");
    else if (d->open_to_all == DOCTOR_YES)
        doctor_none(v, "clients need no password");
    else if (!doctor_config(d, v, "masterauth", &secret))
        return;
    else if (secret.len == 0)
        doctor_found(v, "clients need a password, masterauth is not set");
    else
        doctor_passed(v, "masterauth is set");
}

static bool is_loopback(struct rd_slice address)
{
    if (address.len > 0 && address.ptr[0] == '-')
        address = rd_slice(address.ptr + 1, address.len - 1);
    return rd_slice_is(address, "::1") || rd_slice_is(address, "localhost") ||
           (address.len > 4 && memcmp(address.ptr, "127.", 4) == 0);
}

/* Whether one address of the setting `bind` can be reached from elsewhere. */
static bool binds_publicly(const struct doctor *d, struct rd_slice bind)
{
    bool any = false;
    while (bind.len > 0) {
        const uint8_t *blank = memchr(bind.ptr, ' ', bind.len);
        size_t len = blank != NULL ? (size_t)(blank - bind.ptr) : bind.len;
        if (len > 0 && !is_loopback(rd_slice(bind.ptr, len)))
            return true;
        any |= len > 0;
        bind = blank != NULL ? rd_slice(blank + 1, bind.len - len - 1) : (struct rd_slice){0};
    }
    return !any && doctor_version(d) < 700; /* nothing is all; since 7.0 it is nothing */
}

/* Before 7.0 protected mode ends with the first address of `bind`. */
static bool is_protected(const struct doctor *d, struct rd_slice bind)
{
    return doctor_config_is(d, "protected-mode", "yes") &&
           (doctor_version(d) >= 700 || bind.len == 0);
}

static bool only_certificates(const struct doctor *d)
{
    return doctor_config_is(d, "port", "0") && !doctor_config_is(d, "tls-port", "0") &&
           doctor_config_is(d, "tls-auth-clients", "yes");
}

static bool only_sockets(const struct doctor *d)
{
    struct doctor_verdict ignored;
    struct rd_slice tls;
    return doctor_config_is(d, "port", "0") &&
           (doctor_config_is(d, "tls-port", "0") || !doctor_config(d, &ignored, "tls-port", &tls));
}

void doctor_judge_open(const struct doctor *d, struct doctor_verdict *v)
{
    struct rd_slice bind;
    if (d->open_to_all == DOCTOR_NOT_KNOWN)
        doctor_unknown(v, "a connection without a password could not be tried");
    else if (d->open_to_all == DOCTOR_NO)
        doctor_passed(v, "clients need a password or a certificate");
    else if (!doctor_config(d, v, "bind", &bind))
        return;
    else if (only_sockets(d))
        doctor_passed(v, "the server has no TCP port");
    else if (only_certificates(d))
        doctor_passed(v, "clients need a certificate");
    else if (!binds_publicly(d, bind))
        doctor_passed(v, "bind %s", rd_show_plain(bind).s);
    else if (is_protected(d, bind))
        doctor_passed(v, "protected-mode yes");
    else
        doctor_found(v, "no password, bind \"%s\"%s", rd_show_plain(bind).s,
                     doctor_config_is(d, "protected-mode", "no")    ? ", protected-mode no"
                     : doctor_config_is(d, "protected-mode", "yes") ? ", which ends protected-mode"
                                                                    : "");
}
