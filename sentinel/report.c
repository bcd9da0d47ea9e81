/* What SENTINEL MASTER, INFO and CKQUORUM show. */
#include <stdio.h>

#include "sentinel/sentinel_impl.h"

struct fields {
    const struct sentinel *s;
    void (*field)(void *ctx, const char *name, const char *value);
    void *ctx;
};

static void put(const struct fields *f, const char *name, const char *value)
{
    f->field(f->ctx, name, value);
}

static void put_number(const struct fields *f, const char *name, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    put(f, name, text);
}

/* Milliseconds since a time. */
static void put_since(const struct fields *f, const char *name, int64_t at_ms)
{
    put_number(f, name, f->s->now_ms - at_ms);
}

static void put_flags(const struct fields *f, const struct sentinel_instance *ri)
{
    unsigned flags = ri->flags & ~(unsigned)SENTINEL_FLAG_DISCONNECTED;
    char text[256] = "";
    size_t len = 0;
    if (!sentinel_link_up(ri))
        flags |= SENTINEL_FLAG_DISCONNECTED;
#define X(name, bit, word)                                                                         \
    if ((flags & SENTINEL_FLAG_##name) != 0)                                                       \
        len += (size_t)snprintf(text + len, sizeof text - len, "%s" word, len > 0 ? "," : "");
    SENTINEL_FLAGS(X)
#undef X
    put(f, "flags", text);
}

static const char *step_word(enum sentinel_step step)
{
    static const char *const words[] = {
#define X(name, word) word,
        SENTINEL_STEPS(X)
#undef X
    };
    return words[step];
}

static void put_link(const struct fields *f, const struct sentinel_instance *ri)
{
    const struct sentinel_link *link = ri->link;
    put_flags(f, ri);
    put_number(f, "link-pending-commands", (int64_t)(link->cmd.n_pending + link->pubsub.n_pending));
    put_number(f, "link-refcount", link->refs);
    if (sentinel_is(ri, SENTINEL_FLAG_FAILING_OVER))
        put(f, "failover-state", step_word(ri->step));
    put_number(f, "last-ping-sent",
               link->waits_since_ms != 0 ? f->s->now_ms - link->waits_since_ms : 0);
    put_since(f, "last-ok-ping-reply", link->available_ms);
    put_since(f, "last-ping-reply", link->pong_ms);
    if (sentinel_is(ri, SENTINEL_FLAG_S_DOWN))
        put_since(f, "s-down-time", ri->s_down_since_ms);
    if (sentinel_is(ri, SENTINEL_FLAG_O_DOWN))
        put_since(f, "o-down-time", ri->o_down_since_ms);
    put_number(f, "down-after-milliseconds", sentinel_master_of(ri)->down_after_ms);
}

static void put_info(const struct fields *f, const struct sentinel_instance *ri)
{
    put_number(f, "info-refresh", ri->info_ms != 0 ? f->s->now_ms - ri->info_ms : 0);
    put(f, "role-reported", ri->role == SENTINEL_FLAG_MASTER ? "master" : "slave");
    put_since(f, "role-reported-time", ri->role_since_ms);
}

static void put_master(const struct fields *f, const struct sentinel_instance *m)
{
    put_number(f, "config-epoch", (int64_t)m->config_epoch);
    put_number(f, "num-slaves", (int64_t)m->replicas.n);
    put_number(f, "num-other-sentinels", (int64_t)m->sentinels.n);
    put_number(f, "quorum", m->quorum);
    put_number(f, "failover-timeout", m->failover_timeout_ms);
    put_number(f, "parallel-syncs", m->parallel_syncs);
    if (m->notification_script != NULL)
        put(f, "notification-script", m->notification_script);
    if (m->reconfig_script != NULL)
        put(f, "client-reconfig-script", m->reconfig_script);
}

static void put_replica(const struct fields *f, const struct sentinel_instance *ri)
{
    put_number(f, "master-link-down-time", ri->link_down_ms);
    put(f, "master-link-status", ri->link_up ? "ok" : "err");
    put(f, "master-host", ri->master_host[0] != 0 ? ri->master_host : "?");
    put_number(f, "master-port", ri->master_port);
    put_number(f, "slave-priority", ri->priority);
    put_number(f, "slave-repl-offset", ri->offset);
    put_number(f, "replica-announced", ri->announced);
}

static void put_sentinel(const struct fields *f, const struct sentinel_instance *ri)
{
    put_since(f, "last-hello-message", ri->heard_hello_ms);
    put(f, "voted-leader", ri->leader[0] != 0 ? ri->leader : "?");
    put_number(f, "voted-leader-epoch", (int64_t)ri->leader_epoch);
}

void sentinel_report(const struct sentinel *s, const struct sentinel_instance *ri,
                     void (*field)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct fields fields = {s, field, ctx}, *f = &fields;
    put(f, "name", ri->name);
    put(f, "ip", sentinel_addr_host(s, &ri->addr));
    put_number(f, "port", ri->addr.port);
    put(f, "runid", ri->run_id);
    put_link(f, ri);
    if (!sentinel_is(ri, SENTINEL_FLAG_SENTINEL))
        put_info(f, ri);
    if (sentinel_is(ri, SENTINEL_FLAG_MASTER))
        put_master(f, ri);
    else if (sentinel_is(ri, SENTINEL_FLAG_REPLICA))
        put_replica(f, ri);
    else
        put_sentinel(f, ri);
}

struct rd_slice sentinel_info_cache(const struct sentinel *s,
                                    const struct sentinel_instance *instance, int64_t *ret_age_ms)
{
    *ret_age_ms = instance->info_ms != 0 ? s->now_ms - instance->info_ms : 0;
    return instance->info_ms != 0 ? rd_buf_slice(&instance->info) : rd_slice(NULL, 0);
}

/* ---- INFO ---- */

static void info_master(const struct sentinel *s, size_t i, struct rd_buf *out)
{
    const struct sentinel_instance *m = s->masters.at[i];
    const char *status = sentinel_is(m, SENTINEL_FLAG_O_DOWN)   ? "odown"
                         : sentinel_is(m, SENTINEL_FLAG_S_DOWN) ? "sdown"
                                                                : "ok";
    rd_buf_printf(out, "master%zu:name=%s,status=%s,address=%s:%d,slaves=%zu,sentinels=%zu\r\n", i,
                  m->name, status, sentinel_addr_host(s, &m->addr), m->addr.port, m->replicas.n,
                  m->sentinels.n + 1);
}

void sentinel_info_section(const struct sentinel *s, struct rd_buf *out)
{
    int64_t tilt_s = s->tilt ? (s->now_ms - s->tilt_ms) / 1000 : -1;
    rd_buf_printf(out,
                  "sentinel_masters:%zu\r\n"
                  "sentinel_tilt:%d\r\n"
                  "sentinel_tilt_since_seconds:%lld\r\n"
                  "sentinel_running_scripts:%zu\r\n"
                  "sentinel_scripts_queue_length:%zu\r\n"
                  "sentinel_simulate_failure_flags:%u\r\n",
                  s->masters.n, s->tilt, (long long)tilt_s, s->n_running, s->n_jobs, s->failures);
    for (size_t i = 0; i < s->masters.n; i++)
        info_master(s, i, out);
}

/* ---- CKQUORUM ---- */

unsigned sentinel_quorum(const struct sentinel *s, const struct sentinel_instance *master,
                         size_t *ret_usable)
{
    size_t usable = 1, voters = master->sentinels.n + 1;
    (void)s;
    for (size_t i = 0; i < master->sentinels.n; i++)
        usable +=
            !sentinel_is(master->sentinels.at[i], SENTINEL_FLAG_S_DOWN | SENTINEL_FLAG_O_DOWN);
    *ret_usable = usable;
    return (usable >= master->quorum ? SENTINEL_QUORUM : 0U) |
           (usable > voters / 2 ? SENTINEL_MAJORITY : 0U);
}
