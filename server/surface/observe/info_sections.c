/* INFO persistence and INFO stats. */
#include "server/surface/observe/info.h"

#include "server/session/client/client.h"
#include "server/surface/peer.h"
#include "server/durable/persist/persist.h"
#include "server/session/pubsub.h"
#include "server/durable/replication/replication.h"
#include "server/session/tracking/tracking.h"

static const char *ok(bool yes)
{
    return yes ? "ok" : "err";
}

/* ---- persistence ---- */

static int64_t since(const struct server *srv, bool running, int64_t began_s)
{
    return running ? srv->loop.now_us / 1000000 - began_s : -1;
}

static void put_snapshots(struct server *srv, const struct persist_info *p, struct rd_buf *out)
{
    bool saving = p->child == PERSIST_CHILD_RDB;
    stats_info_num(out, "rdb_changes_since_last_save", (int64_t)p->dirty);
    stats_info_num(out, "rdb_bgsave_in_progress", saving);
    stats_info_num(out, "rdb_last_save_time", p->last_save_s);
    stats_info_str(out, "rdb_last_bgsave_status", ok(p->last_bgsave_ok));
    stats_info_num(out, "rdb_last_bgsave_time_sec", p->last_bgsave_took_s);
    stats_info_num(out, "rdb_current_bgsave_time_sec", since(srv, saving, p->bgsave_began_s));
    stats_info_num(out, "rdb_saves", (int64_t)p->rdb_saves);
    stats_info_num(out, "rdb_last_cow_size", (int64_t)p->rdb_last_cow);
    stats_info_num(out, "rdb_last_load_keys_expired", (int64_t)p->loaded_expired);
    stats_info_num(out, "rdb_last_load_keys_loaded", (int64_t)p->loaded_keys);
}

static void put_log(struct server *srv, const struct persist_info *p, struct rd_buf *out)
{
    bool rewriting = p->child == PERSIST_CHILD_AOF;
    stats_info_num(out, "aof_enabled", p->aof != PERSIST_AOF_OFF);
    stats_info_num(out, "aof_rewrite_in_progress", rewriting);
    stats_info_num(out, "aof_rewrite_scheduled", p->rewrite_scheduled);
    stats_info_num(out, "aof_last_rewrite_time_sec", p->last_rewrite_took_s);
    stats_info_num(out, "aof_current_rewrite_time_sec", since(srv, rewriting, p->rewrite_began_s));
    stats_info_str(out, "aof_last_bgrewrite_status", ok(p->last_rewrite_ok));
    stats_info_num(out, "aof_rewrites", (int64_t)p->rewrites);
    stats_info_num(out, "aof_rewrites_consecutive_failures", (int64_t)p->rewrite_failures);
    stats_info_str(out, "aof_last_write_status", ok(p->last_write_ok));
    stats_info_num(out, "aof_last_cow_size", (int64_t)p->aof_last_cow);
    stats_info_num(out, "module_fork_in_progress", 0);
    stats_info_num(out, "module_fork_last_cow_size", 0);
    if (p->aof == PERSIST_AOF_OFF)
        return;
    stats_info_num(out, "aof_current_size", (int64_t)persist_aof_size(&srv->durable));
    stats_info_num(out, "aof_base_size", (int64_t)persist_aof_base_size(&srv->durable));
    stats_info_num(out, "aof_pending_rewrite", 0);
    stats_info_num(out, "aof_buffer_length", (int64_t)persist_aof_buffered(&srv->durable));
    stats_info_num(out, "aof_pending_bio_fsync", p->pending_fsync);
    stats_info_num(out, "aof_delayed_fsync", (int64_t)p->delayed_fsync);
}

static void put_loading(struct server *srv, const struct persist_info *p, struct rd_buf *out)
{
    int64_t took_s = srv->loop.now_us / 1000000 - p->loading_start_s;
    double share = p->loading_total > 0 ? (double)p->loading_read / (double)p->loading_total : 0;
    int64_t eta_s = 1; /* if nothing is known */
    if (took_s > 0 && p->loading_read > 0 && p->loading_total >= p->loading_read)
        eta_s = (int64_t)((double)took_s * (double)(p->loading_total - p->loading_read) /
                          (double)p->loading_read);
    stats_info_num(out, "loading_start_time", p->loading_start_s);
    stats_info_num(out, "loading_total_bytes", (int64_t)p->loading_total);
    stats_info_num(out, "loading_rdb_used_mem", (int64_t)p->loading_used_mem);
    stats_info_num(out, "loading_loaded_bytes", (int64_t)p->loading_read);
    stats_info_real(out, "loading_loaded_perc", share * 100);
    stats_info_num(out, "loading_eta_seconds", eta_s);
}

void info_section_persistence(struct server *srv, struct rd_buf *out)
{
    const struct persist_info *p = &srv->durable.persist->info;
    bool child = p->child != PERSIST_NO_CHILD;
    stats_info_num(out, "loading", srv->sessions.loading && !srv->sessions.async_loading);
    stats_info_num(out, "async_loading", srv->sessions.async_loading);
    stats_info_num(out, "current_cow_peak", (int64_t)p->cow_peak);
    stats_info_num(out, "current_cow_size", (int64_t)p->cow_now);
    stats_info_num(out, "current_cow_size_age", child ? p->cow_age_s : 0);
    stats_info_real(
        out, "current_fork_perc",
        p->child_keys_total > 0 ? (double)p->child_keys * 100 / (double)p->child_keys_total : 0);
    stats_info_num(out, "current_save_keys_processed", (int64_t)p->child_keys);
    stats_info_num(out, "current_save_keys_total", (int64_t)p->child_keys_total);
    put_snapshots(srv, p, out);
    put_log(srv, p, out);
    if (srv->sessions.loading)
        put_loading(srv, p, out);
}

/* ---- stats ---- */

static void put_kbps(const struct stats *stats, enum stats_metric metric, const char *name,
                     struct rd_buf *out)
{
    stats_info_real(out, name, (double)stats_per_second(stats, metric) / 1024);
}

static void put_traffic(const struct stats *s, const struct replication *r, struct rd_buf *out)
{
    stats_info_num(out, "total_connections_received", (int64_t)s->connections);
    stats_info_num(out, "total_commands_processed", (int64_t)s->commands);
    stats_info_num(out, "instantaneous_ops_per_sec", (int64_t)stats_per_second(s, STATS_COMMANDS));
    stats_info_num(out, "total_net_input_bytes", (int64_t)s->net_in);
    stats_info_num(out, "total_net_output_bytes", (int64_t)s->net_out);
    stats_info_num(out, "total_net_repl_input_bytes", (int64_t)r->bytes_in);
    stats_info_num(out, "total_net_repl_output_bytes", (int64_t)r->bytes_out);
    put_kbps(s, STATS_NET_IN, "instantaneous_input_kbps", out);
    put_kbps(s, STATS_NET_OUT, "instantaneous_output_kbps", out);
    put_kbps(s, STATS_REPL_IN, "instantaneous_input_repl_kbps", out);
    put_kbps(s, STATS_REPL_OUT, "instantaneous_output_repl_kbps", out);
    stats_info_num(out, "rejected_connections", (int64_t)s->rejected_connections);
    stats_info_num(out, "sync_full", (int64_t)r->full_syncs);
    stats_info_num(out, "sync_partial_ok", (int64_t)r->partial_syncs);
    stats_info_num(out, "sync_partial_err", (int64_t)r->partial_refused);
}

static void put_data_set(struct server *srv, struct rd_buf *out)
{
    const struct stats *s = &srv->loop.stats;
    const struct engine_stats *now = engine_stats(srv->sessions.engine);
    stats_info_num(out, "expired_keys", (int64_t)now->expired);
    stats_info_real(out, "expired_stale_perc", 0);
    stats_info_num(out, "expired_time_cap_reached_count", (int64_t)s->expired_cap_reached);
    stats_info_num(out, "expire_cycle_cpu_milliseconds", (int64_t)(s->expire_cycle_us / 1000));
    stats_info_num(out, "evicted_keys", (int64_t)now->evicted);
    stats_info_num(out, "evicted_clients", (int64_t)s->evicted_clients);
    uint64_t excess_us =
        s->evict_since_mono_us != 0 ? (uint64_t)(srv->loop.mono_us - s->evict_since_mono_us) : 0;
    stats_info_num(out, "total_eviction_exceeded_time",
                   (int64_t)((s->evict_us + excess_us) / 1000));
    stats_info_num(out, "current_eviction_exceeded_time", (int64_t)(excess_us / 1000));
    stats_info_num(out, "keyspace_hits", (int64_t)now->hits);
    stats_info_num(out, "keyspace_misses", (int64_t)now->misses);
    stats_info_num(out, "pubsub_channels", (int64_t)pubsub_total(&srv->sessions, PUBSUB_CHANNEL));
    stats_info_num(out, "pubsub_patterns", (int64_t)pubsub_total(&srv->sessions, PUBSUB_PATTERN));
    stats_info_num(out, "pubsubshard_channels",
                   (int64_t)pubsub_total(&srv->sessions, PUBSUB_SHARD));
    stats_info_num(out, "latest_fork_usec", s->fork_us);
    stats_info_num(out, "total_forks", (int64_t)s->forks);
}

/* Fields of unsupported features: defragmentation, I/O threads. */
static void put_zeros(struct rd_buf *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stats_info_num(out, names[i], 0);
}

static void put_tracking(const struct server *srv, struct rd_buf *out)
{
    struct tracking_figures figures;
    tracking_figures(&srv->sessions, &figures);
    stats_info_num(out, "tracking_total_keys", (int64_t)figures.keys);
    stats_info_num(out, "tracking_total_items", (int64_t)figures.items);
    stats_info_num(out, "tracking_total_prefixes", (int64_t)figures.prefixes);
}

void info_section_stats(struct server *srv, struct rd_buf *out)
{
    static const char *const before[] = {
        "active_defrag_hits",       "active_defrag_misses",     "active_defrag_key_hits",
        "active_defrag_key_misses", "total_active_defrag_time", "current_active_defrag_time",
    };
    static const char *const after[] = {
        "io_threaded_reads_processed",
        "io_threaded_writes_processed",
    };
    const struct stats *s = &srv->loop.stats;
    put_traffic(s, srv->durable.replication, out);
    put_data_set(srv, out);
    stats_info_num(out, "migrate_cached_sockets", (int64_t)peers_count(srv));
    stats_info_num(out, "slave_expires_tracked_keys",
                   (int64_t)engine_own_expires_count(srv->sessions.engine));
    put_zeros(out, before, sizeof before / sizeof before[0]);
    put_tracking(srv, out);
    stats_info_num(out, "unexpected_error_replies", (int64_t)s->unexpected_errors);
    stats_info_num(out, "total_error_replies", (int64_t)s->total_errors);
    stats_info_num(out, "dump_payload_sanitizations", (int64_t)s->dump_sanitizations);
    stats_info_num(out, "total_reads_processed", (int64_t)s->reads);
    stats_info_num(out, "total_writes_processed", (int64_t)s->writes);
    put_zeros(out, after, sizeof after / sizeof after[0]);
    stats_info_num(out, "reply_buffer_shrinks", (int64_t)s->output_shrinks);
    stats_info_num(out, "reply_buffer_expands", (int64_t)s->output_expands);
}
