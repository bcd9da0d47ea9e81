#include "server/surface/observe/info.h"

#include "server/session/client/client.h"
#include "server/surface/cmd/commands.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"
#include "server/session/tracking/tracking.h"

#include "engine/db.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- fields ---- */

void info_human(char *dst, size_t size, uint64_t bytes)
{
    static const char units[] = "KMGTP";
    double value = (double)bytes / 1024;
    if (bytes < 1024) {
        snprintf(dst, size, "%lluB", (unsigned long long)bytes);
        return;
    }
    const char *unit = units;
    while (value >= 1024 && unit[1] != '\0') {
        value /= 1024;
        unit++;
    }
    snprintf(dst, size, "%.2f%c", value, *unit);
}

/* ---- sections ---- */

static const char *supervised_word(const struct server *srv)
{
    static const char *const words[] = {"no", "systemd", "upstart", "unknown"};
    unsigned how = (unsigned)srv->loop.settings.supervised;
    return words[how < 4 ? how : 3];
}

static void put_build(const struct server *srv, struct rd_buf *out)
{
    struct utsname os;
    stats_info_str(out, "redis_version", SERVER_REDIS_VERSION);
    stats_info_str(out, "redis_git_sha1", "00000000");
    stats_info_num(out, "redis_git_dirty", 0);
    stats_info_str(out, "redis_build_id", "0");
    stats_info_str(out, "redis_mode",
                   srv->sentinel != NULL  ? "sentinel"
                   : srv->cluster != NULL ? "cluster"
                                          : "standalone");
    if (uname(&os) == 0)
        rd_buf_printf(out, "os:%s %s %s\r\n", os.sysname, os.release, os.machine);
    stats_info_num(out, "arch_bits", sizeof(long) * 8);
    stats_info_str(out, "monotonic_clock", "POSIX clock_gettime");
    stats_info_str(out, "multiplexing_api", "epoll");
    stats_info_str(out, "atomicvar_api", "c11-builtin");
    rd_buf_printf(out, "gcc_version:%d.%d.%d\r\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
}

static void section_server(struct server *srv, struct rd_buf *out)
{
    int64_t up_s = (srv->loop.now_us - srv->loop.started_us) / 1000000;
    const struct settings *s = &srv->loop.settings;
    put_build(srv, out);
    stats_info_num(out, "process_id", getpid());
    stats_info_str(out, "process_supervised", supervised_word(srv));
    stats_info_str(out, "run_id", srv->durable.run_id);
    stats_info_num(out, "tcp_port", s->port != 0 ? s->port : s->tls_port);
    stats_info_num(out, "server_time_usec", srv->loop.now_us);
    stats_info_num(out, "uptime_in_seconds", up_s);
    stats_info_num(out, "uptime_in_days", up_s / 86400);
    stats_info_num(out, "hz", srv->loop.hz);
    stats_info_num(out, "configured_hz", s->hz);
    stats_info_num(out, "lru_clock", (srv->loop.now_us / 1000000) & 0xffffff);
    stats_info_str(out, "executable", srv->loop.executable != NULL ? srv->loop.executable : "");
    stats_info_str(out, "config_file", srv->loop.config_file != NULL ? srv->loop.config_file : "");
    stats_info_num(out, "io_threads_active", 0);
    if (srv->shutdown_until_ms != 0)
        stats_info_num(out, "shutdown_in_milliseconds",
                       srv->shutdown_until_ms - loop_mono_ms(&srv->loop));
    stats_info_str(out, "redoubt_version", REDOUBT_VERSION_STRING);
}

size_t info_cluster_links(const struct server *srv, size_t *ret_bytes)
{
    *ret_bytes = 0;
    return srv->cluster != NULL ? srv->cluster->links(srv, ret_bytes) : 0;
}

static void section_clients(struct server *srv, struct rd_buf *out)
{
    struct tracking_figures tracking;
    size_t link_bytes;
    tracking_figures(&srv->sessions, &tracking);
    const struct clients *all = srv->sessions.clients;
    stats_info_num(out, "connected_clients",
                   (int64_t)all->n - srv->durable.replication->master->n_peers);
    stats_info_num(out, "cluster_connections", (int64_t)info_cluster_links(srv, &link_bytes));
    stats_info_num(out, "maxclients", srv->loop.settings.maxclients);
    stats_info_num(out, "client_recent_max_input_buffer", (int64_t)all->recent_max_input);
    stats_info_num(out, "client_recent_max_output_buffer", (int64_t)all->recent_max_output);
    stats_info_num(out, "blocked_clients", (int64_t)all->n_blocked);
    stats_info_num(out, "tracking_clients", (int64_t)tracking.clients);
    stats_info_num(out, "clients_in_timeout_table", (int64_t)all->n_waiting);
}

static void put_time(struct rd_buf *out, const char *name, const struct timeval *time)
{
    rd_buf_printf(out, "%s:%ld.%06ld\r\n", name, (long)time->tv_sec, (long)time->tv_usec);
}

static void section_cpu(struct server *srv, struct rd_buf *out)
{
    (void)srv;
    struct rusage self, children, thread;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    getrusage(RUSAGE_THREAD, &thread);
    put_time(out, "used_cpu_sys", &self.ru_stime);
    put_time(out, "used_cpu_user", &self.ru_utime);
    put_time(out, "used_cpu_sys_children", &children.ru_stime);
    put_time(out, "used_cpu_user_children", &children.ru_utime);
    put_time(out, "used_cpu_sys_main_thread", &thread.ru_stime);
    put_time(out, "used_cpu_user_main_thread", &thread.ru_utime);
}

static void section_nothing(struct server *srv, struct rd_buf *out)
{
    (void)srv;
    (void)out;
}

static void section_commands(struct server *srv, struct rd_buf *out)
{
    stats_info_commands(&srv->loop.stats, out);
}

static void section_errors(struct server *srv, struct rd_buf *out)
{
    stats_info_errors(&srv->loop.stats, out);
}

static void section_latency(struct server *srv, struct rd_buf *out)
{
    if (srv->loop.settings.latency_tracking)
        stats_info_latency(&srv->loop.stats, srv->loop.settings.latency_tracking_info_percentiles,
                           srv->loop.settings.n_latency_tracking_info_percentiles, out);
}

static void section_cluster(struct server *srv, struct rd_buf *out)
{
    stats_info_num(out, "cluster_enabled", srv->cluster != NULL);
}

static void section_keyspace(struct server *srv, struct rd_buf *out)
{
    const struct engine_db *db;
    for (unsigned id = 0; (db = engine_db(srv->sessions.engine, id)) != NULL; id++)
        if (engine_db_count(db) > 0)
            rd_buf_printf(out, "db%u:keys=%llu,expires=%llu,avg_ttl=%lld\r\n", id,
                          (unsigned long long)engine_db_count(db),
                          (unsigned long long)engine_table_count(&db->expires),
                          (long long)db->avg_ttl_ms);
}

/* ---- selecting sections ---- */

/* In the order of the text. */
static void section_replication(struct server *srv, struct rd_buf *out)
{
    info_section_replication(&srv->durable, out);
}

static void section_sentinel(struct server *srv, struct rd_buf *out)
{
    srv->sentinel->info(srv, out);
}

static const struct section {
    const char *name;
    const char *title;
    void (*put)(struct server *srv, struct rd_buf *out);
    bool by_default;
    bool in_sentinel;
} sections[] = {
    {"server", "Server", section_server, true, true},
    {"clients", "Clients", section_clients, true, true},
    {"memory", "Memory", info_section_memory, true, false},
    {"persistence", "Persistence", info_section_persistence, true, false},
    {"stats", "Stats", info_section_stats, true, true},
    {"replication", "Replication", section_replication, true, false},
    {"cpu", "CPU", section_cpu, true, true},
    {"modules", "Modules", section_nothing, true, false},
    {"commandstats", "Commandstats", section_commands, false, false},
    {"errorstats", "Errorstats", section_errors, true, false},
    {"latencystats", "Latencystats", section_latency, false, false},
    {"cluster", "Cluster", section_cluster, true, false},
    {"keyspace", "Keyspace", section_keyspace, true, false},
    {"sentinel", "Sentinel", section_sentinel, true, true},
};

/* A server has no section about a Sentinel, and a Sentinel none about data. */
static bool exists(const struct server *srv, const struct section *section)
{
    return srv->sentinel != NULL ? section->in_sentinel : section->put != section_sentinel;
}

static bool wanted(const struct section *section, size_t n, const struct rd_slice *names)
{
    for (size_t i = 0; i < n; i++) {
        struct rd_slice name = names[i];
        if (dispatch_arg_is(name, section->name) || dispatch_arg_is(name, "all") ||
            dispatch_arg_is(name, "everything") ||
            (section->by_default && dispatch_arg_is(name, "default")) ||
            (section->put == section_nothing && dispatch_arg_is(name, "module_list")))
            return true;
    }
    return n == 0 && section->by_default;
}

void info_text(struct server *srv, size_t n, const struct rd_slice *names, struct rd_buf *out)
{
    bool first = true;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (!exists(srv, &sections[i]) || !wanted(&sections[i], n, names))
            continue;
        rd_buf_printf(out, "%s# %s\r\n", first ? "" : "\r\n", sections[i].title);
        sections[i].put(srv, out);
        first = false;
    }
}

void server_cmd_info(struct dispatch_call *call)
{
    struct rd_buf text = {0};
    info_text(server_of(call->sessions), call->argc - 1, call->argv + 1, &text);
    engine_reply_verbatim(call->reply, rd_buf_slice(&text), "txt");
    rd_buf_done(&text);
}
