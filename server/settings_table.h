/* settings_table.h - every directive of redis.conf, by type: field of struct settings, name, alias
 * or NULL, default.
 *
 * What bounds a value, which values an ENUM takes, what may not be changed at run time and what is
 * done when it is changed stands in settings.c.
 */
#ifndef SERVER_SETTINGS_TABLE_H
#define SERVER_SETTINGS_TABLE_H

#define SETTINGS_BOOL(X)                                                                           \
    X(activedefrag, "activedefrag", NULL, false)                                                   \
    X(activerehashing, "activerehashing", NULL, true)                                              \
    X(always_show_logo, "always-show-logo", NULL, false)                                           \
    X(aof_disable_auto_gc, "aof-disable-auto-gc", NULL, false)                                     \
    X(aof_load_truncated, "aof-load-truncated", NULL, true)                                        \
    X(aof_rewrite_incremental_fsync, "aof-rewrite-incremental-fsync", NULL, true)                  \
    X(aof_timestamp_enabled, "aof-timestamp-enabled", NULL, false)                                 \
    X(aof_use_rdb_preamble, "aof-use-rdb-preamble", NULL, true)                                    \
    X(appendonly, "appendonly", NULL, false)                                                       \
    X(cluster_allow_pubsubshard_when_down, "cluster-allow-pubsubshard-when-down", NULL, true)      \
    X(cluster_allow_reads_when_down, "cluster-allow-reads-when-down", NULL, false)                 \
    X(cluster_allow_replica_migration, "cluster-allow-replica-migration", NULL, true)              \
    X(cluster_enabled, "cluster-enabled", NULL, false)                                             \
    X(cluster_replica_no_failover, "cluster-replica-no-failover", "cluster-slave-no-failover",     \
      false)                                                                                       \
    X(cluster_require_full_coverage, "cluster-require-full-coverage", NULL, true)                  \
    X(crash_log_enabled, "crash-log-enabled", NULL, true)                                          \
    X(crash_memcheck_enabled, "crash-memcheck-enabled", NULL, true)                                \
    X(daemonize, "daemonize", NULL, false)                                                         \
    X(disable_thp, "disable-thp", NULL, true)                                                      \
    X(dynamic_hz, "dynamic-hz", NULL, true)                                                        \
    X(io_threads_do_reads, "io-threads-do-reads", NULL, false)                                     \
    X(jemalloc_bg_thread, "jemalloc-bg-thread", NULL, true)                                        \
    X(latency_tracking, "latency-tracking", NULL, true)                                            \
    X(lazyfree_lazy_eviction, "lazyfree-lazy-eviction", NULL, false)                               \
    X(lazyfree_lazy_expire, "lazyfree-lazy-expire", NULL, false)                                   \
    X(lazyfree_lazy_server_del, "lazyfree-lazy-server-del", NULL, false)                           \
    X(lazyfree_lazy_user_del, "lazyfree-lazy-user-del", NULL, false)                               \
    X(lazyfree_lazy_user_flush, "lazyfree-lazy-user-flush", NULL, false)                           \
    X(no_appendfsync_on_rewrite, "no-appendfsync-on-rewrite", NULL, false)                         \
    X(protected_mode, "protected-mode", NULL, true)                                                \
    X(rdb_del_sync_files, "rdb-del-sync-files", NULL, false)                                       \
    X(rdb_save_incremental_fsync, "rdb-save-incremental-fsync", NULL, true)                        \
    X(rdbchecksum, "rdbchecksum", NULL, true)                                                      \
    X(rdbcompression, "rdbcompression", NULL, true)                                                \
    X(repl_disable_tcp_nodelay, "repl-disable-tcp-nodelay", NULL, false)                           \
    X(repl_diskless_sync, "repl-diskless-sync", NULL, true)                                        \
    X(replica_announced, "replica-announced", NULL, true)                                          \
    X(replica_ignore_disk_write_errors, "replica-ignore-disk-write-errors", NULL, false)           \
    X(replica_ignore_maxmemory, "replica-ignore-maxmemory", "slave-ignore-maxmemory", true)        \
    X(replica_lazy_flush, "replica-lazy-flush", "slave-lazy-flush", false)                         \
    X(replica_read_only, "replica-read-only", "slave-read-only", true)                             \
    X(replica_serve_stale_data, "replica-serve-stale-data", "slave-serve-stale-data", true)        \
    X(set_proc_title, "set-proc-title", NULL, true)                                                \
    X(stop_writes_on_bgsave_error, "stop-writes-on-bgsave-error", NULL, true)                      \
    X(syslog_enabled, "syslog-enabled", NULL, false)                                               \
    X(tls_cluster, "tls-cluster", NULL, false)                                                     \
    X(tls_prefer_server_ciphers, "tls-prefer-server-ciphers", NULL, false)                         \
    X(tls_replication, "tls-replication", NULL, false)                                             \
    X(tls_session_caching, "tls-session-caching", NULL, true)

#define SETTINGS_INT(X)                                                                            \
    X(acllog_max_len, "acllog-max-len", NULL, 128)                                                 \
    X(active_defrag_cycle_max, "active-defrag-cycle-max", NULL, 25)                                \
    X(active_defrag_cycle_min, "active-defrag-cycle-min", NULL, 1)                                 \
    X(active_defrag_max_scan_fields, "active-defrag-max-scan-fields", NULL, 1000)                  \
    X(active_defrag_threshold_lower, "active-defrag-threshold-lower", NULL, 10)                    \
    X(active_defrag_threshold_upper, "active-defrag-threshold-upper", NULL, 100)                   \
    X(active_expire_effort, "active-expire-effort", NULL, 1)                                       \
    X(auto_aof_rewrite_percentage, "auto-aof-rewrite-percentage", NULL, 100)                       \
    X(busy_reply_threshold, "busy-reply-threshold", "lua-time-limit", 5000)                        \
    X(cluster_announce_bus_port, "cluster-announce-bus-port", NULL, 0)                             \
    X(cluster_announce_port, "cluster-announce-port", NULL, 0)                                     \
    X(cluster_announce_tls_port, "cluster-announce-tls-port", NULL, 0)                             \
    X(cluster_migration_barrier, "cluster-migration-barrier", NULL, 1)                             \
    X(cluster_node_timeout, "cluster-node-timeout", NULL, 15000)                                   \
    X(cluster_port, "cluster-port", NULL, 0)                                                       \
    X(cluster_replica_validity_factor, "cluster-replica-validity-factor",                          \
      "cluster-slave-validity-factor", 10)                                                         \
    X(databases, "databases", NULL, 16)                                                            \
    X(hz, "hz", NULL, 10)                                                                          \
    X(io_threads, "io-threads", NULL, 1)                                                           \
    X(latency_monitor_threshold, "latency-monitor-threshold", NULL, 0)                             \
    X(lfu_decay_time, "lfu-decay-time", NULL, 1)                                                   \
    X(lfu_log_factor, "lfu-log-factor", NULL, 10)                                                  \
    X(list_compress_depth, "list-compress-depth", NULL, 0)                                         \
    X(list_max_listpack_size, "list-max-listpack-size", "list-max-ziplist-size", -2)               \
    X(maxclients, "maxclients", NULL, 10000)                                                       \
    X(maxmemory_eviction_tenacity, "maxmemory-eviction-tenacity", NULL, 10)                        \
    X(maxmemory_samples, "maxmemory-samples", NULL, 5)                                             \
    X(min_replicas_max_lag, "min-replicas-max-lag", "min-slaves-max-lag", 10)                      \
    X(min_replicas_to_write, "min-replicas-to-write", "min-slaves-to-write", 0)                    \
    X(port, "port", NULL, 6379)                                                                    \
    X(repl_backlog_ttl, "repl-backlog-ttl", NULL, 3600)                                            \
    X(repl_diskless_sync_delay, "repl-diskless-sync-delay", NULL, 5)                               \
    X(repl_diskless_sync_max_replicas, "repl-diskless-sync-max-replicas", NULL, 0)                 \
    X(repl_ping_replica_period, "repl-ping-replica-period", "repl-ping-slave-period", 10)          \
    X(repl_timeout, "repl-timeout", NULL, 60)                                                      \
    X(replica_announce_port, "replica-announce-port", "slave-announce-port", 0)                    \
    X(replica_priority, "replica-priority", "slave-priority", 100)                                 \
    X(shutdown_timeout, "shutdown-timeout", NULL, 10)                                              \
    X(slowlog_log_slower_than, "slowlog-log-slower-than", NULL, 10000)                             \
    X(slowlog_max_len, "slowlog-max-len", NULL, 128)                                               \
    X(socket_mark_id, "socket-mark-id", NULL, 0)                                                   \
    X(stream_node_max_entries, "stream-node-max-entries", NULL, 100)                               \
    X(tcp_backlog, "tcp-backlog", NULL, 511)                                                       \
    X(tcp_keepalive, "tcp-keepalive", NULL, 300)                                                   \
    X(timeout, "timeout", NULL, 0)                                                                 \
    X(tls_port, "tls-port", NULL, 0)                                                               \
    X(tls_session_cache_size, "tls-session-cache-size", NULL, 20480)                               \
    X(tls_session_cache_timeout, "tls-session-cache-timeout", NULL, 300)                           \
    X(unixsocketperm, "unixsocketperm", NULL, 0)

#define SETTINGS_SIZE(X)                                                                           \
    X(active_defrag_ignore_bytes, "active-defrag-ignore-bytes", NULL, 104857600)                   \
    X(auto_aof_rewrite_min_size, "auto-aof-rewrite-min-size", NULL, 67108864)                      \
    X(client_query_buffer_limit, "client-query-buffer-limit", NULL, 1073741824)                    \
    X(cluster_link_sendbuf_limit, "cluster-link-sendbuf-limit", NULL, 0)                           \
    X(hash_max_listpack_entries, "hash-max-listpack-entries", "hash-max-ziplist-entries", 512)     \
    X(hash_max_listpack_value, "hash-max-listpack-value", "hash-max-ziplist-value", 64)            \
    X(hll_sparse_max_bytes, "hll-sparse-max-bytes", NULL, 3000)                                    \
    X(maxmemory, "maxmemory", NULL, 0)                                                             \
    X(maxmemory_clients, "maxmemory-clients", NULL, 0)                                             \
    X(proto_max_bulk_len, "proto-max-bulk-len", NULL, 536870912)                                   \
    X(repl_backlog_size, "repl-backlog-size", NULL, 1048576)                                       \
    X(set_max_intset_entries, "set-max-intset-entries", NULL, 512)                                 \
    X(stream_node_max_bytes, "stream-node-max-bytes", NULL, 4096)                                  \
    X(tracking_table_max_keys, "tracking-table-max-keys", NULL, 1000000)                           \
    X(zset_max_listpack_entries, "zset-max-listpack-entries", "zset-max-ziplist-entries", 128)     \
    X(zset_max_listpack_value, "zset-max-listpack-value", "zset-max-ziplist-value", 64)

#define SETTINGS_STR(X)                                                                            \
    X(aclfile, "aclfile", NULL, "")                                                                \
    X(aof_rewrite_cpulist, "aof_rewrite_cpulist", NULL, "")                                        \
    X(appenddirname, "appenddirname", NULL, "appendonlydir")                                       \
    X(appendfilename, "appendfilename", NULL, "appendonly.aof")                                    \
    X(bgsave_cpulist, "bgsave_cpulist", NULL, "")                                                  \
    X(bind_source_addr, "bind-source-addr", NULL, "")                                              \
    X(bio_cpulist, "bio_cpulist", NULL, "")                                                        \
    X(cluster_announce_hostname, "cluster-announce-hostname", NULL, "")                            \
    X(cluster_announce_ip, "cluster-announce-ip", NULL, "")                                        \
    X(cluster_config_file, "cluster-config-file", NULL, "nodes.conf")                              \
    X(dbfilename, "dbfilename", NULL, "dump.rdb")                                                  \
    X(ignore_warnings, "ignore-warnings", NULL, "")                                                \
    X(logfile, "logfile", NULL, "")                                                                \
    X(masterauth, "masterauth", NULL, "")                                                          \
    X(masteruser, "masteruser", NULL, "")                                                          \
    X(pidfile, "pidfile", NULL, "")                                                                \
    X(replica_announce_ip, "replica-announce-ip", "slave-announce-ip", "")                         \
    X(requirepass, "requirepass", NULL, "")                                                        \
    X(server_cpulist, "server_cpulist", NULL, "")                                                  \
    X(syslog_ident, "syslog-ident", NULL, "redis")                                                 \
    X(tls_ca_cert_dir, "tls-ca-cert-dir", NULL, "")                                                \
    X(tls_ca_cert_file, "tls-ca-cert-file", NULL, "")                                              \
    X(tls_cert_file, "tls-cert-file", NULL, "")                                                    \
    X(tls_ciphers, "tls-ciphers", NULL, "")                                                        \
    X(tls_ciphersuites, "tls-ciphersuites", NULL, "")                                              \
    X(tls_client_cert_file, "tls-client-cert-file", NULL, "")                                      \
    X(tls_client_key_file, "tls-client-key-file", NULL, "")                                        \
    X(tls_client_key_file_pass, "tls-client-key-file-pass", NULL, "")                              \
    X(tls_dh_params_file, "tls-dh-params-file", NULL, "")                                          \
    X(tls_key_file, "tls-key-file", NULL, "")                                                      \
    X(tls_key_file_pass, "tls-key-file-pass", NULL, "")                                            \
    X(tls_protocols, "tls-protocols", NULL, "")                                                    \
    X(unixsocket, "unixsocket", NULL, "")

#define SETTINGS_ENUM(X)                                                                           \
    X(acl_pubsub_default, "acl-pubsub-default", NULL, "resetchannels")                             \
    X(appendfsync, "appendfsync", NULL, "everysec")                                                \
    X(cluster_preferred_endpoint_type, "cluster-preferred-endpoint-type", NULL, "ip")              \
    X(enable_debug_command, "enable-debug-command", NULL, "no")                                    \
    X(enable_module_command, "enable-module-command", NULL, "no")                                  \
    X(enable_protected_configs, "enable-protected-configs", NULL, "no")                            \
    X(loglevel, "loglevel", NULL, "notice")                                                        \
    X(maxmemory_policy, "maxmemory-policy", NULL, "noeviction")                                    \
    X(oom_score_adj, "oom-score-adj", NULL, "no")                                                  \
    X(propagation_error_behavior, "propagation-error-behavior", NULL, "ignore")                    \
    X(repl_diskless_load, "repl-diskless-load", NULL, "disabled")                                  \
    X(sanitize_dump_payload, "sanitize-dump-payload", NULL, "no")                                  \
    X(shutdown_on_sigint, "shutdown-on-sigint", NULL, "default")                                   \
    X(shutdown_on_sigterm, "shutdown-on-sigterm", NULL, "default")                                 \
    X(supervised, "supervised", NULL, "no")                                                        \
    X(syslog_facility, "syslog-facility", NULL, "local0")                                          \
    X(tls_auth_clients, "tls-auth-clients", NULL, "yes")

#define SETTINGS_SPECIAL(X)                                                                        \
    X(bind, "bind", NULL, "* -::*")                                                                \
    X(client_output_buffer_limit, "client-output-buffer-limit", NULL,                              \
      "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60")                       \
    X(dir, "dir", NULL, ".")                                                                       \
    X(latency_tracking_info_percentiles, "latency-tracking-info-percentiles", NULL, "50 99 99.9")  \
    X(notify_keyspace_events, "notify-keyspace-events", NULL, "")                                  \
    X(oom_score_adj_values, "oom-score-adj-values", NULL, "0 200 800")                             \
    X(proc_title_template, "proc-title-template", NULL, "{title} {listen-addr} {server-mode}")     \
    X(replicaof, "replicaof", "slaveof", "")                                                       \
    X(save, "save", NULL, "3600 1 300 100 60 10000")

#endif
