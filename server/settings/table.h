/* table.h - all directives of redis.conf, by type.
 *
 *     BOOL, STR, ENUM, SPECIAL    field of struct settings, name, alias or NULL, default, flags
 *     INT, SIZE                   the same with the smallest and the largest value before the flags
 *
 * A value of type SIZE is bytes if the flags contain S_MEMORY, else a count. server/settings/item.c
 * and server/settings/special.c have the words of an ENUM and the parsers of a SPECIAL.
 */
#ifndef SERVER_SETTINGS_TABLE_H
#define SERVER_SETTINGS_TABLE_H

#include <limits.h>
#include <stdint.h>

enum settings_flag {
    S_FIXED = 1 << 0,       /* CONFIG SET refuses: read at the start only */
    S_PROTECTED = 1 << 1,   /* CONFIG SET refuses unless enable-protected-configs allows it */
    S_HIDDEN = 1 << 2,      /* found by name only, not by a pattern */
    S_SECRET = 1 << 3,      /* its value is never logged */
    S_NOT_LOADING = 1 << 4, /* cannot be set while data is loaded */
    S_MULTI = 1 << 5,       /* has several values */
    S_MEMORY = 1 << 6,      /* 1gb, 512mb … */
    S_PERCENT = 1 << 7,     /* or 5%, kept as (uint64_t)-5 */
    S_OCTAL = 1 << 8
};

#define SETTINGS_BOOL(X)                                                                           \
    X(activedefrag, "activedefrag", NULL, false, 0)                                                \
    X(activerehashing, "activerehashing", NULL, true, 0)                                           \
    X(always_show_logo, "always-show-logo", NULL, false, S_FIXED)                                  \
    X(aof_disable_auto_gc, "aof-disable-auto-gc", NULL, false, 0)                                  \
    X(aof_load_truncated, "aof-load-truncated", NULL, true, 0)                                     \
    X(aof_rewrite_incremental_fsync, "aof-rewrite-incremental-fsync", NULL, true, 0)               \
    X(aof_timestamp_enabled, "aof-timestamp-enabled", NULL, false, 0)                              \
    X(aof_use_rdb_preamble, "aof-use-rdb-preamble", NULL, true, 0)                                 \
    X(appendonly, "appendonly", NULL, false, S_NOT_LOADING)                                        \
    X(cluster_allow_pubsubshard_when_down, "cluster-allow-pubsubshard-when-down", NULL, true, 0)   \
    X(cluster_allow_reads_when_down, "cluster-allow-reads-when-down", NULL, false, 0)              \
    X(cluster_allow_replica_migration, "cluster-allow-replica-migration", NULL, true, 0)           \
    X(cluster_enabled, "cluster-enabled", NULL, false, S_FIXED)                                    \
    X(cluster_replica_no_failover, "cluster-replica-no-failover", "cluster-slave-no-failover",     \
      false, 0)                                                                                    \
    X(cluster_require_full_coverage, "cluster-require-full-coverage", NULL, true, 0)               \
    X(crash_log_enabled, "crash-log-enabled", NULL, true, 0)                                       \
    X(crash_memcheck_enabled, "crash-memcheck-enabled", NULL, true, 0)                             \
    X(daemonize, "daemonize", NULL, false, S_FIXED)                                                \
    X(disable_thp, "disable-thp", NULL, true, S_FIXED)                                             \
    X(dynamic_hz, "dynamic-hz", NULL, true, 0)                                                     \
    X(io_threads_do_reads, "io-threads-do-reads", NULL, false, S_FIXED)                            \
    X(jemalloc_bg_thread, "jemalloc-bg-thread", NULL, true, 0)                                     \
    X(latency_tracking, "latency-tracking", NULL, true, 0)                                         \
    X(lazyfree_lazy_eviction, "lazyfree-lazy-eviction", NULL, false, 0)                            \
    X(lazyfree_lazy_expire, "lazyfree-lazy-expire", NULL, false, 0)                                \
    X(lazyfree_lazy_server_del, "lazyfree-lazy-server-del", NULL, false, 0)                        \
    X(lazyfree_lazy_user_del, "lazyfree-lazy-user-del", NULL, false, 0)                            \
    X(lazyfree_lazy_user_flush, "lazyfree-lazy-user-flush", NULL, false, 0)                        \
    X(lua_enable_deprecated_api, "lua-enable-deprecated-api", NULL, false, S_FIXED | S_HIDDEN)     \
    X(no_appendfsync_on_rewrite, "no-appendfsync-on-rewrite", NULL, false, 0)                      \
    X(protected_mode, "protected-mode", NULL, true, 0)                                             \
    X(rdb_del_sync_files, "rdb-del-sync-files", NULL, false, 0)                                    \
    X(rdb_save_incremental_fsync, "rdb-save-incremental-fsync", NULL, true, 0)                     \
    X(rdbchecksum, "rdbchecksum", NULL, true, S_FIXED)                                             \
    X(rdbcompression, "rdbcompression", NULL, true, 0)                                             \
    X(repl_disable_tcp_nodelay, "repl-disable-tcp-nodelay", NULL, false, 0)                        \
    X(repl_diskless_sync, "repl-diskless-sync", NULL, true, 0)                                     \
    X(replica_announced, "replica-announced", NULL, true, 0)                                       \
    X(replica_ignore_disk_write_errors, "replica-ignore-disk-write-errors", NULL, false, 0)        \
    X(replica_ignore_maxmemory, "replica-ignore-maxmemory", "slave-ignore-maxmemory", true, 0)     \
    X(replica_lazy_flush, "replica-lazy-flush", "slave-lazy-flush", false, 0)                      \
    X(replica_read_only, "replica-read-only", "slave-read-only", true, 0)                          \
    X(replica_serve_stale_data, "replica-serve-stale-data", "slave-serve-stale-data", true, 0)     \
    X(set_proc_title, "set-proc-title", NULL, true, S_FIXED)                                       \
    X(stop_writes_on_bgsave_error, "stop-writes-on-bgsave-error", NULL, true, 0)                   \
    X(syslog_enabled, "syslog-enabled", NULL, false, S_FIXED)                                      \
    X(tls_cluster, "tls-cluster", NULL, false, 0)                                                  \
    X(tls_prefer_server_ciphers, "tls-prefer-server-ciphers", NULL, false, 0)                      \
    X(tls_replication, "tls-replication", NULL, false, 0)                                          \
    X(tls_session_caching, "tls-session-caching", NULL, true, 0)                                   \
    X(use_exit_on_panic, "use-exit-on-panic", NULL, false, S_HIDDEN)

#define SETTINGS_INT(X)                                                                            \
    X(acllog_max_len, "acllog-max-len", NULL, 128, 0, INT64_MAX, 0)                                \
    X(active_defrag_cycle_max, "active-defrag-cycle-max", NULL, 25, 1, 99, 0)                      \
    X(active_defrag_cycle_min, "active-defrag-cycle-min", NULL, 1, 1, 99, 0)                       \
    X(active_defrag_max_scan_fields, "active-defrag-max-scan-fields", NULL, 1000, 1, INT64_MAX, 0) \
    X(active_defrag_threshold_lower, "active-defrag-threshold-lower", NULL, 10, 0, 1000, 0)        \
    X(active_defrag_threshold_upper, "active-defrag-threshold-upper", NULL, 100, 0, 1000, 0)       \
    X(active_expire_effort, "active-expire-effort", NULL, 1, 1, 10, 0)                             \
    X(auto_aof_rewrite_percentage, "auto-aof-rewrite-percentage", NULL, 100, 0, INT_MAX, 0)        \
    X(busy_reply_threshold, "busy-reply-threshold", "lua-time-limit", 5000, 0, INT64_MAX, 0)       \
    X(cluster_announce_bus_port, "cluster-announce-bus-port", NULL, 0, 0, 65535, 0)                \
    X(cluster_announce_port, "cluster-announce-port", NULL, 0, 0, 65535, 0)                        \
    X(cluster_announce_tls_port, "cluster-announce-tls-port", NULL, 0, 0, 65535, 0)                \
    X(cluster_migration_barrier, "cluster-migration-barrier", NULL, 1, 0, INT_MAX, 0)              \
    X(cluster_node_timeout, "cluster-node-timeout", NULL, 15000, 0, INT64_MAX, 0)                  \
    X(cluster_port, "cluster-port", NULL, 0, 0, 65535, S_FIXED)                                    \
    X(cluster_replica_validity_factor, "cluster-replica-validity-factor",                          \
      "cluster-slave-validity-factor", 10, 0, INT_MAX, 0)                                          \
    X(databases, "databases", NULL, 16, 1, INT_MAX, S_FIXED)                                       \
    X(hz, "hz", NULL, 10, 0, INT_MAX, 0)                                                           \
    X(io_threads, "io-threads", NULL, 1, 1, 128, S_FIXED)                                          \
    X(key_load_delay, "key-load-delay", NULL, 0, INT_MIN, INT_MAX, S_HIDDEN)                       \
    X(latency_monitor_threshold, "latency-monitor-threshold", NULL, 0, 0, INT64_MAX, 0)            \
    X(lfu_decay_time, "lfu-decay-time", NULL, 1, 0, INT_MAX, 0)                                    \
    X(lfu_log_factor, "lfu-log-factor", NULL, 10, 0, INT_MAX, 0)                                   \
    X(list_compress_depth, "list-compress-depth", NULL, 0, 0, INT_MAX, 0)                          \
    X(list_max_listpack_size, "list-max-listpack-size", "list-max-ziplist-size", -2, INT_MIN,      \
      INT_MAX, 0)                                                                                  \
    X(loading_process_events_interval_bytes, "loading-process-events-interval-bytes", NULL,        \
      2097152, 1024, INT_MAX, S_HIDDEN)                                                            \
    X(maxclients, "maxclients", NULL, 10000, 1, UINT_MAX, 0)                                       \
    X(maxmemory_eviction_tenacity, "maxmemory-eviction-tenacity", NULL, 10, 0, 100, 0)             \
    X(maxmemory_samples, "maxmemory-samples", NULL, 5, 1, INT_MAX, 0)                              \
    X(min_replicas_max_lag, "min-replicas-max-lag", "min-slaves-max-lag", 10, 0, INT_MAX, 0)       \
    X(min_replicas_to_write, "min-replicas-to-write", "min-slaves-to-write", 0, 0, INT_MAX, 0)     \
    X(port, "port", NULL, 6379, 0, 65535, 0)                                                       \
    X(rdb_key_save_delay, "rdb-key-save-delay", NULL, 0, INT_MIN, INT_MAX, S_HIDDEN)               \
    X(repl_backlog_ttl, "repl-backlog-ttl", NULL, 3600, 0, INT64_MAX, 0)                           \
    X(repl_diskless_sync_delay, "repl-diskless-sync-delay", NULL, 5, 0, INT_MAX, 0)                \
    X(repl_diskless_sync_max_replicas, "repl-diskless-sync-max-replicas", NULL, 0, 0, INT_MAX, 0)  \
    X(repl_ping_replica_period, "repl-ping-replica-period", "repl-ping-slave-period", 10, 1,       \
      INT_MAX, 0)                                                                                  \
    X(repl_timeout, "repl-timeout", NULL, 60, 1, INT_MAX, 0)                                       \
    X(replica_announce_port, "replica-announce-port", "slave-announce-port", 0, 0, 65535, 0)       \
    X(replica_priority, "replica-priority", "slave-priority", 100, 0, INT_MAX, 0)                  \
    X(shutdown_timeout, "shutdown-timeout", NULL, 10, 0, INT_MAX, 0)                               \
    X(slowlog_log_slower_than, "slowlog-log-slower-than", NULL, 10000, -1, INT64_MAX, 0)           \
    X(slowlog_max_len, "slowlog-max-len", NULL, 128, 0, INT64_MAX, 0)                              \
    X(socket_mark_id, "socket-mark-id", NULL, 0, 0, UINT_MAX, S_FIXED)                             \
    X(stream_node_max_entries, "stream-node-max-entries", NULL, 100, 0, INT64_MAX, 0)              \
    X(tcp_backlog, "tcp-backlog", NULL, 511, 0, INT_MAX, S_FIXED)                                  \
    X(tcp_keepalive, "tcp-keepalive", NULL, 300, 0, INT_MAX, 0)                                    \
    X(timeout, "timeout", NULL, 0, 0, INT_MAX, 0)                                                  \
    X(tls_port, "tls-port", NULL, 0, 0, 65535, 0)                                                  \
    X(tls_session_cache_size, "tls-session-cache-size", NULL, 20480, 0, INT_MAX, 0)                \
    X(tls_session_cache_timeout, "tls-session-cache-timeout", NULL, 300, 0, INT_MAX, 0)            \
    X(unixsocketperm, "unixsocketperm", NULL, 0, 0, 511, S_OCTAL | S_FIXED)                        \
    X(watchdog_period, "watchdog-period", NULL, 0, 0, INT_MAX, S_HIDDEN)

#define SETTINGS_SIZE(X)                                                                           \
    X(active_defrag_ignore_bytes, "active-defrag-ignore-bytes", NULL, 104857600, 1, INT64_MAX,     \
      S_MEMORY)                                                                                    \
    X(auto_aof_rewrite_min_size, "auto-aof-rewrite-min-size", NULL, 67108864, 0, INT64_MAX,        \
      S_MEMORY)                                                                                    \
    X(client_query_buffer_limit, "client-query-buffer-limit", NULL, 1073741824, 1048576,           \
      INT64_MAX, S_MEMORY)                                                                         \
    X(cluster_link_sendbuf_limit, "cluster-link-sendbuf-limit", NULL, 0, 0, UINT64_MAX, S_MEMORY)  \
    X(hash_max_listpack_entries, "hash-max-listpack-entries", "hash-max-ziplist-entries", 512, 0,  \
      INT64_MAX, 0)                                                                                \
    X(hash_max_listpack_value, "hash-max-listpack-value", "hash-max-ziplist-value", 64, 0,         \
      INT64_MAX, S_MEMORY)                                                                         \
    X(hll_sparse_max_bytes, "hll-sparse-max-bytes", NULL, 3000, 0, INT64_MAX, S_MEMORY)            \
    X(maxmemory, "maxmemory", NULL, 0, 0, UINT64_MAX, S_MEMORY)                                    \
    X(maxmemory_clients, "maxmemory-clients", NULL, 0, 0, UINT64_MAX, S_PERCENT)                   \
    X(proto_max_bulk_len, "proto-max-bulk-len", NULL, 536870912, 1048576, INT64_MAX, S_MEMORY)     \
    X(repl_backlog_size, "repl-backlog-size", NULL, 1048576, 1, INT64_MAX, S_MEMORY)               \
    X(set_max_intset_entries, "set-max-intset-entries", NULL, 512, 0, INT64_MAX, 0)                \
    X(stream_node_max_bytes, "stream-node-max-bytes", NULL, 4096, 0, INT64_MAX, S_MEMORY)          \
    X(tracking_table_max_keys, "tracking-table-max-keys", NULL, 1000000, 0, INT64_MAX, 0)          \
    X(zset_max_listpack_entries, "zset-max-listpack-entries", "zset-max-ziplist-entries", 128, 0,  \
      INT64_MAX, 0)                                                                                \
    X(zset_max_listpack_value, "zset-max-listpack-value", "zset-max-ziplist-value", 64, 0,         \
      INT64_MAX, S_MEMORY)

#define SETTINGS_STR(X)                                                                            \
    X(aclfile, "aclfile", NULL, "", S_FIXED)                                                       \
    X(aof_rewrite_cpulist, "aof_rewrite_cpulist", NULL, "", S_FIXED)                               \
    X(appenddirname, "appenddirname", NULL, "appendonlydir", S_FIXED)                              \
    X(appendfilename, "appendfilename", NULL, "appendonly.aof", S_FIXED)                           \
    X(bgsave_cpulist, "bgsave_cpulist", NULL, "", S_FIXED)                                         \
    X(bind_source_addr, "bind-source-addr", NULL, "", 0)                                           \
    X(bio_cpulist, "bio_cpulist", NULL, "", S_FIXED)                                               \
    X(cluster_announce_hostname, "cluster-announce-hostname", NULL, "", 0)                         \
    X(cluster_announce_ip, "cluster-announce-ip", NULL, "", 0)                                     \
    X(cluster_config_file, "cluster-config-file", NULL, "nodes.conf", S_FIXED)                     \
    X(dbfilename, "dbfilename", NULL, "dump.rdb", S_PROTECTED)                                     \
    X(ignore_warnings, "ignore-warnings", NULL, "", 0)                                             \
    X(logfile, "logfile", NULL, "", S_FIXED)                                                       \
    X(masterauth, "masterauth", NULL, "", S_SECRET)                                                \
    X(masteruser, "masteruser", NULL, "", S_SECRET)                                                \
    X(pidfile, "pidfile", NULL, "", S_FIXED)                                                       \
    X(replica_announce_ip, "replica-announce-ip", "slave-announce-ip", "", 0)                      \
    X(requirepass, "requirepass", NULL, "", S_SECRET)                                              \
    X(server_cpulist, "server_cpulist", NULL, "", S_FIXED)                                         \
    X(syslog_ident, "syslog-ident", NULL, "redis", S_FIXED)                                        \
    X(tls_ca_cert_dir, "tls-ca-cert-dir", NULL, "", 0)                                             \
    X(tls_ca_cert_file, "tls-ca-cert-file", NULL, "", 0)                                           \
    X(tls_cert_file, "tls-cert-file", NULL, "", 0)                                                 \
    X(tls_ciphers, "tls-ciphers", NULL, "", 0)                                                     \
    X(tls_ciphersuites, "tls-ciphersuites", NULL, "", 0)                                           \
    X(tls_client_cert_file, "tls-client-cert-file", NULL, "", 0)                                   \
    X(tls_client_key_file, "tls-client-key-file", NULL, "", 0)                                     \
    X(tls_client_key_file_pass, "tls-client-key-file-pass", NULL, "", S_SECRET)                    \
    X(tls_dh_params_file, "tls-dh-params-file", NULL, "", 0)                                       \
    X(tls_key_file, "tls-key-file", NULL, "", 0)                                                   \
    X(tls_key_file_pass, "tls-key-file-pass", NULL, "", S_SECRET)                                  \
    X(tls_protocols, "tls-protocols", NULL, "", 0)                                                 \
    X(unixsocket, "unixsocket", NULL, "", S_FIXED)

#define SETTINGS_ENUM(X)                                                                           \
    X(acl_pubsub_default, "acl-pubsub-default", NULL, "resetchannels", 0)                          \
    X(appendfsync, "appendfsync", NULL, "everysec", 0)                                             \
    X(cluster_preferred_endpoint_type, "cluster-preferred-endpoint-type", NULL, "ip", 0)           \
    X(enable_debug_command, "enable-debug-command", NULL, "no", S_FIXED)                           \
    X(enable_module_command, "enable-module-command", NULL, "no", S_FIXED)                         \
    X(enable_protected_configs, "enable-protected-configs", NULL, "no", S_FIXED)                   \
    X(loglevel, "loglevel", NULL, "notice", 0)                                                     \
    X(maxmemory_policy, "maxmemory-policy", NULL, "noeviction", 0)                                 \
    X(oom_score_adj, "oom-score-adj", NULL, "no", 0)                                               \
    X(propagation_error_behavior, "propagation-error-behavior", NULL, "ignore", 0)                 \
    X(redoubt_level, "redoubt-level", NULL, "7.0", S_FIXED | S_HIDDEN)                             \
    X(repl_diskless_load, "repl-diskless-load", NULL, "disabled", S_NOT_LOADING)                   \
    X(sanitize_dump_payload, "sanitize-dump-payload", NULL, "no", 0)                               \
    X(shutdown_on_sigint, "shutdown-on-sigint", NULL, "default", S_MULTI)                          \
    X(shutdown_on_sigterm, "shutdown-on-sigterm", NULL, "default", S_MULTI)                        \
    X(supervised, "supervised", NULL, "no", S_FIXED)                                               \
    X(syslog_facility, "syslog-facility", NULL, "local0", S_FIXED)                                 \
    X(tls_auth_clients, "tls-auth-clients", NULL, "yes", 0)

#define SETTINGS_SPECIAL(X)                                                                        \
    X(bind, "bind", NULL, "* -::*", S_MULTI)                                                       \
    X(client_output_buffer_limit, "client-output-buffer-limit", NULL,                              \
      "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", S_MULTI)              \
    X(dir, "dir", NULL, ".", S_PROTECTED | S_NOT_LOADING)                                          \
    X(latency_tracking_info_percentiles, "latency-tracking-info-percentiles", NULL, "50 99 99.9",  \
      S_MULTI)                                                                                     \
    X(notify_keyspace_events, "notify-keyspace-events", NULL, "", 0)                               \
    X(oom_score_adj_values, "oom-score-adj-values", NULL, "0 200 800", S_MULTI)                    \
    X(proc_title_template, "proc-title-template", NULL, "{title} {listen-addr} {server-mode}", 0)  \
    X(replicaof, "replicaof", "slaveof", "", S_FIXED | S_MULTI)                                    \
    X(save, "save", NULL, "3600 1 300 100 60 10000", S_MULTI)
#endif
