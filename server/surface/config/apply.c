#include "server/surface/config/apply.h"

#include <stdio.h>

#include "server/session/acl/acl.h"
#include "server/surface/observe/crash.h"
#include "server/loop/daemon.h"
#include "server/loop/heap.h"
#include "server/surface/observe/info.h"
#include "server/loop/log.h"
#include "server/loop/net.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"
#include "server/loop/tls.h"

enum { BACKLOG_MIN = 16 * 1024 };

static bool refuse(struct settings_reading *reading, const char *why)
{
    snprintf(reading->why, sizeof reading->why, "%s", why);
    return false;
}

static bool change_ports(struct server *srv, struct settings_reading *reading, const char *why)
{
    struct rd_err err = {0};
    if (net_change(&srv->loop, &err))
        return true;
    log_warning("%s", err.text);
    return refuse(reading, why);
}

static bool apply_bind(struct server *srv, struct settings_reading *reading)
{
    return change_ports(srv, reading, "Failed to bind to specified addresses.");
}

static bool apply_port(struct server *srv, struct settings_reading *reading)
{
    return change_ports(srv, reading, "Unable to listen on this port. Check server logs.");
}

/* Without a TLS port, the TLS settings are checked only if a setting needs them. */
static bool apply_tls(struct server *srv, struct settings_reading *reading)
{
    static const char why[] = "Unable to update TLS configuration. Check server logs.";
    const struct settings *s = &srv->loop.settings;
    if (s->tls_port != 0 || (srv->loop.bus_port != 0 && s->tls_cluster))
        return change_ports(srv, reading, why);
    if (!s->tls_replication && !s->tls_cluster)
        return true;
    struct tls *tls = NULL;
    struct rd_err err = {0};
    bool ok = tls_new(&tls, s, &err);
    if (ok)
        tls_free(tls);
    else
        log_warning("%s", err.text);
    return ok || refuse(reading, why);
}

static bool apply_appendonly(struct server *srv, struct settings_reading *reading)
{
    return persist_set_appendonly(&srv->durable, srv->loop.settings.appendonly) ||
           refuse(reading, "Unable to turn on AOF. Check server logs.");
}

static bool apply_maxmemory(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    uint64_t used = info_used_memory(srv), max = srv->loop.settings.maxmemory;
    settings_to_engine(&srv->loop.settings, engine_config(srv->sessions.engine));
    replication_settings_changed(&srv->durable);
    if (max == 0)
        return true;
    if (max < used)
        log_warning("WARNING: the new maxmemory value set via CONFIG SET (%llu) is smaller than "
                    "the current memory usage (%llu). Depending on maxmemory-policy, the server "
                    "evicts keys or refuses writes.",
                    (unsigned long long)max, (unsigned long long)used);
    if (max < used && srv->loop.stats.evict_since_mono_us == 0)
        srv->loop.stats.evict_since_mono_us =
            srv->loop.mono_us; /* the cron, or a command, makes room */
    return true;
}

static bool apply_maxclients(struct server *srv, struct settings_reading *reading)
{
    uint64_t want = (uint64_t)srv->loop.settings.maxclients + DAEMON_FILES_RESERVED;
    uint64_t got = daemon_open_files(want, NULL);
    if (got >= want)
        return true;
    snprintf(reading->why, sizeof reading->why,
             "The operating system is not able to handle the specified number of clients, try "
             "with %lld",
             (long long)got - DAEMON_FILES_RESERVED);
    return false;
}

static bool apply_hz(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    if (srv->loop.settings.hz < SETTINGS_HZ_MIN)
        srv->loop.settings.hz = SETTINGS_HZ_MIN;
    if (srv->loop.settings.hz > SETTINGS_HZ_MAX)
        srv->loop.settings.hz = SETTINGS_HZ_MAX;
    return true;
}

static bool apply_watchdog(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    struct settings *s = &srv->loop.settings;
    int64_t two_turns = 1000 / s->hz * 2;
    if (s->watchdog_period > 0 && s->watchdog_period < two_turns)
        s->watchdog_period = two_turns;
    crash_watchdog(srv);
    return true;
}

static bool apply_heap_thread(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    if (srv->sessions.state == SESSIONS_RUNNING)
        heap_use_thread(srv->loop.settings.jemalloc_bg_thread);
    return true;
}

static bool apply_password(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    acl_set_default_password(&srv->sessions, settings_password(&srv->loop.settings));
    return true;
}

static bool apply_backlog(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    if (srv->loop.settings.repl_backlog_size < BACKLOG_MIN)
        srv->loop.settings.repl_backlog_size = BACKLOG_MIN;
    return true;
}

static bool apply_oom(struct server *srv, struct settings_reading *reading)
{
    return daemon_oom_score(&srv->loop.settings, false) ||
           refuse(reading, "Failed to apply new oom_score_adj configuration, check server logs.");
}

static bool apply_title(struct server *srv, struct settings_reading *reading)
{
    (void)reading;
    daemon_title(&srv->loop, NULL);
    return true;
}

config_apply_fn config_apply_for(const struct settings_item *item)
{
    static const struct {
        const char *name;
        config_apply_fn apply;
    } table[] = {
        {"bind", apply_bind},
        {"port", apply_port},
        {"tls-port", apply_port},
        {"appendonly", apply_appendonly},
        {"maxmemory", apply_maxmemory},
        {"maxclients", apply_maxclients},
        {"hz", apply_hz},
        {"watchdog-period", apply_watchdog},
        {"jemalloc-bg-thread", apply_heap_thread},
        {"repl-backlog-size", apply_backlog},
        {"requirepass", apply_password},
        {"oom-score-adj", apply_oom},
        {"oom-score-adj-values", apply_oom},
        {"proc-title-template", apply_title},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(item->name, table[i].name) == 0)
            return table[i].apply;
    }
    return strncmp(item->name, "tls-", 4) == 0 ? apply_tls : NULL;
}

void config_apply_all(struct server *srv)
{
    log_setup(&srv->loop.settings);
    settings_to_engine(&srv->loop.settings, engine_config(srv->sessions.engine));
    persist_settings_changed(&srv->durable);
    replication_settings_changed(&srv->durable);
}
