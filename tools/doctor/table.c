/* table.c - all checks, in the order of the report. */
#include "tools/doctor/doctor.h"

#define S DOCTOR_OF_SERVER
#define F DOCTOR_OF_FOLDER
#define W DOCTOR_OF_SENTINEL
#define C DOCTOR_OF_SENTINEL_FILE

const struct doctor_check doctor_checks[] = {
    {"no-persistence", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_ERROR, doctor_judge_no_persistence,
     "A master without persistence is empty after a restart, and its replicas then delete their "
     "data.",
     "CONFIG SET save \"3600 1 300 100\" or CONFIG SET appendonly yes; or no automatic restart"},
    {"rpo", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_WARNING, doctor_judge_rpo,
     "Changes that are not on disk are lost when the server or its host fails.",
     "CONFIG SET appendonly yes"},
    {"last-save-failed", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_ERROR, doctor_judge_last_save,
     "The snapshot on disk is older than it should be.",
     "the reason is in the server's log; then BGSAVE"},
    {"last-rewrite-failed", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_ERROR, doctor_judge_last_rewrite,
     "The log grows without limit, and a restart takes longer each day.",
     "the reason is in the server's log; then BGREWRITEAOF"},
    {"log-write-failed", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_ERROR, doctor_judge_log_write,
     "The latest changes are not in the log, and the server refuses writes.",
     "make room on the disk; the reason is in the server's log"},
    {"stop-writes-off", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_WARNING, doctor_judge_stop_writes,
     "The server continues to accept writes when it can no longer save them.",
     "CONFIG SET stop-writes-on-bgsave-error yes"},
    {"fsync-off", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_WARNING, doctor_judge_fsync_off,
     "The kernel decides when the log reaches the disk, which may take half a minute.",
     "CONFIG SET appendfsync everysec"},
    {"fsync-off-in-rewrite", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_WARNING,
     doctor_judge_fsync_rewrite,
     "During a rewrite the log is not synced, and a crash may lose half a minute of changes.",
     "CONFIG SET no-appendfsync-on-rewrite no"},
    {"fsync-delays", DOCTOR_GROUP_PERSISTENCE, S, DOCTOR_WARNING, doctor_judge_fsync_delays,
     "The disk is too slow for the log, and clients waited for an fsync.",
     "a faster disk, or fewer other writers on it"},

    {"disk-room", DOCTOR_GROUP_FILES, S | F, DOCTOR_ERROR, doctor_judge_disk_room,
     "A new snapshot or log is written beside the old one, and fails if the disk is full.",
     "a larger disk, or remove files from it"},
    {"snapshot-damaged", DOCTOR_GROUP_FILES, F, DOCTOR_ERROR, doctor_judge_snapshot,
     "A server does not start from a damaged snapshot, or loses the keys after the damage.",
     "restore a backup, or redoubt check-rdb --salvage OUT FILE"},
    {"log-damaged", DOCTOR_GROUP_FILES, F, DOCTOR_ERROR, doctor_judge_log,
     "A server does not start from a damaged log, or loses the commands after the damage.",
     "redoubt check-aof DIR names the damage and the repair"},
    {"no-data", DOCTOR_GROUP_FILES, F, DOCTOR_ERROR, doctor_judge_no_data,
     "A server that starts in this folder is empty.", "restore a backup: redoubt restore"},
    {"leftovers", DOCTOR_GROUP_FILES, F, DOCTOR_WARNING, doctor_judge_leftovers,
     "Temporary files of killed processes use the disk until they are removed.",
     "remove those that no process has open (fuser FILE); redoubt check-rdb shows what a snapshot "
     "holds"},

    {"fork-headroom", DOCTOR_GROUP_MEMORY, S, DOCTOR_WARNING, doctor_judge_fork_headroom,
     "While a child saves, each page that changes is copied, up to twice the memory.",
     "CONFIG SET maxmemory to 65 % of the memory"},
    {"maxmemory", DOCTOR_GROUP_MEMORY, S, DOCTOR_WARNING, doctor_judge_maxmemory,
     "Without a limit the server grows until the kernel kills it.",
     "CONFIG SET maxmemory to 65 % of the memory"},
    {"memory-full", DOCTOR_GROUP_MEMORY, S, DOCTOR_ERROR, doctor_judge_memory_full,
     "At the limit the server refuses writes.", "CONFIG SET maxmemory higher, or delete keys"},
    {"evicted-keys", DOCTOR_GROUP_MEMORY, S, DOCTOR_WARNING, doctor_judge_evicted,
     "The server deletes keys of a persistent data set, which later backups do not contain.",
     "CONFIG SET maxmemory-policy noeviction, or a higher maxmemory"},
    {"slow-fork", DOCTOR_GROUP_MEMORY, S, DOCTOR_WARNING, doctor_judge_slow_fork,
     "All clients wait while the server forks.",
     "smaller instances, huge pages off, or a host with faster virtual memory"},

    {"overcommit", DOCTOR_GROUP_HOST, S, DOCTOR_WARNING, doctor_judge_overcommit,
     "The kernel may refuse the fork for a snapshot although there is enough memory.",
     "sysctl vm.overcommit_memory=1, and the same line in /etc/sysctl.conf"},
    {"huge-pages", DOCTOR_GROUP_HOST, S, DOCTOR_WARNING, doctor_judge_huge_pages,
     "With huge pages, each write during a snapshot copies 2 MiB instead of 4 KiB.",
     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and restart the server"},
    {"swapped-out", DOCTOR_GROUP_HOST, S, DOCTOR_WARNING, doctor_judge_swapped,
     "Commands wait for the disk when they touch data that is swapped out.",
     "more memory, or a lower maxmemory"},

    {"replica-down", DOCTOR_GROUP_REPLICATION, S, DOCTOR_ERROR, doctor_judge_replica_down,
     "The data of this replica becomes stale.",
     "the reason is in the server's log: address, masterauth, or a full sync that fails"},
    {"replica-lag", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_replica_lag,
     "A failover to a replica that lags loses the changes that it does not have.",
     "check the network and the load of the replica"},
    {"writes-refused", DOCTOR_GROUP_REPLICATION, S, DOCTOR_ERROR, doctor_judge_writes_refused,
     "The master refuses writes, because too few replicas are connected.",
     "bring replicas back, or CONFIG SET min-replicas-to-write lower"},
    {"min-replicas", DOCTOR_GROUP_REPLICATION, S, DOCTOR_NOTE, doctor_judge_min_replicas,
     "A master that is cut off from its replicas accepts writes that a failover discards.",
     "CONFIG SET min-replicas-to-write 1, with at least two replicas"},
    {"backlog-size", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_backlog,
     "A replica that returns after the backlog was overwritten needs a full sync.",
     "CONFIG SET repl-backlog-size larger"},
    {"replica-buffer", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_replica_buffer,
     "The master disconnects a replica whose buffer exceeds the limit during a full sync, and the "
     "sync begins again.",
     "CONFIG SET client-output-buffer-limit"},
    {"repl-timeout", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_repl_timeout,
     "The link is cut although both sides work.", "CONFIG SET repl-timeout 60"},
    {"diskless-sync", DOCTOR_GROUP_REPLICATION, S, DOCTOR_NOTE, doctor_judge_diskless_sync,
     "A full sync through the disk is slower, and each replica that connects later needs its own "
     "snapshot.",
     "CONFIG SET repl-diskless-sync yes"},
    {"diskless-load", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_diskless_load,
     "The replica deletes its data before the new data has arrived.",
     "CONFIG SET repl-diskless-load disabled"},
    {"replica-writable", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_replica_writable,
     "Writes to the replica are lost at its next full sync, and it differs from its master.",
     "CONFIG SET replica-read-only yes"},
    {"masterauth", DOCTOR_GROUP_REPLICATION, S, DOCTOR_WARNING, doctor_judge_masterauth,
     "After a failover this server cannot log in at a master that requires the same password.",
     "CONFIG SET masterauth PASSWORD"},
    {"open-to-all", DOCTOR_GROUP_REPLICATION, S, DOCTOR_ERROR, doctor_judge_open,
     "Every host that reaches the port can copy all data as a replica, or make this server a "
     "replica of another one.",
     "a password (ACL SETUSER default or requirepass), protected-mode yes, or bind 127.0.0.1"},

    {"sentinel-config", DOCTOR_GROUP_SENTINEL, C, DOCTOR_ERROR, doctor_judge_sentinel_config,
     "A Sentinel does not start with a wrong line.", "correct the line; redoubt-sentinel(1)"},
    {"config-rewrite", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_ERROR, doctor_judge_rewrite,
     "A Sentinel that cannot save its state does not start, and a vote that is not saved may be "
     "given twice.",
     "chown the file and its folder to the user of the Sentinel, or choose another folder"},
    {"script-missing", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_ERROR, doctor_judge_scripts,
     "Nobody is notified of a failover, and clients are not reconfigured. A Sentinel does not "
     "start "
     "with such a line.",
     "chmod +x the script, or remove the line; while it runs: SENTINEL SET NAME "
     "notification-script "
     "\"\""},
    {"tilt", DOCTOR_GROUP_SENTINEL, W, DOCTOR_ERROR, doctor_judge_tilt,
     "In TILT mode the Sentinel fails nothing over.",
     "the clock was set, or the process was stopped: repair that; TILT ends after 30 seconds"},
    {"master-down", DOCTOR_GROUP_SENTINEL, W, DOCTOR_ERROR, doctor_judge_master_down,
     "The master does not answer this Sentinel.",
     "the events in the log of the Sentinels contain the reason why no failover has ended it"},
    {"quorum", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_ERROR, doctor_judge_quorum,
     "If the master fails now, no replica is promoted.",
     "start the other Sentinels, or SENTINEL SET NAME quorum lower; SENTINEL RESET NAME forgets "
     "Sentinels that no longer exist"},
    {"few-sentinels", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_WARNING, doctor_judge_few_sentinels,
     "With fewer than three Sentinels, the failure of one of them ends the majority.",
     "at least three Sentinels on different hosts"},
    {"sentinel-down", DOCTOR_GROUP_SENTINEL, W, DOCTOR_WARNING, doctor_judge_sentinel_down,
     "It neither agrees that the master is down nor votes, but counts for the majority.",
     "start it, or remove it from all others: SENTINEL RESET NAME, one after the other"},
    {"masters-differ", DOCTOR_GROUP_SENTINEL, W, DOCTOR_ERROR, doctor_judge_masters_differ,
     "Clients that ask different Sentinels write to different servers.",
     "compare ROLE of both servers; then SENTINEL REMOVE and SENTINEL MONITOR where it is wrong"},
    {"quorums-differ", DOCTOR_GROUP_SENTINEL, W, DOCTOR_WARNING, doctor_judge_quorums_differ,
     "How many Sentinels must agree depends on which of them asks.",
     "SENTINEL SET NAME quorum N on each Sentinel"},
    {"epochs-differ", DOCTOR_GROUP_SENTINEL, W, DOCTOR_WARNING, doctor_judge_epochs_differ,
     "One of them has not heard of the last failover.",
     "check the network between Sentinels and servers; passwords of the servers on all Sentinels"},
    {"limits-differ", DOCTOR_GROUP_SENTINEL, W, DOCTOR_NOTE, doctor_judge_limits_differ,
     "How fast a failover begins and ends depends on which Sentinel leads it.",
     "SENTINEL SET NAME OPTION VALUE on each Sentinel"},
    {"no-candidate", DOCTOR_GROUP_SENTINEL, W, DOCTOR_ERROR, doctor_judge_no_candidate,
     "If the master fails now, no replica can be promoted.",
     "bring back a replica; CONFIG SET replica-priority 100 on one that may become the master"},
    {"unable-replica", DOCTOR_GROUP_SENTINEL, W, DOCTOR_WARNING, doctor_judge_unable,
     "A failover does not choose these replicas.",
     "bring them back, or SENTINEL RESET NAME to forget those that no longer exist"},
    {"sentinels-on-one-host", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_WARNING,
     doctor_judge_sentinels_host,
     "If this host fails, the other Sentinels are no majority, and nothing is failed over.",
     "Sentinels on different hosts"},
    {"masters-on-one-host", DOCTOR_GROUP_SENTINEL, W | C, DOCTOR_NOTE, doctor_judge_masters_host,
     "If this host fails, all of them are failed over at once.",
     "SENTINEL FAILOVER NAME for some of them, to replicas on other hosts"},
    {"replicas-on-one-host", DOCTOR_GROUP_SENTINEL, W, DOCTOR_WARNING, doctor_judge_replicas_host,
     "If this host fails, no replica is left.", "a replica on another host"},

    {"backup-age", DOCTOR_GROUP_BACKUP, S | F, DOCTOR_ERROR, doctor_judge_backup_age,
     "Changes since the newest good backup are lost with the host.",
     "redoubt backup TARGET; check the timer or the cron job"},
    {"backup-paused", DOCTOR_GROUP_BACKUP, S | F, DOCTOR_WARNING, doctor_judge_backup_paused,
     "No backup is made until somebody resumes them.", "redoubt resume TARGET"},
    {"backup-stream", DOCTOR_GROUP_BACKUP, S | F, DOCTOR_ERROR, doctor_judge_backup_stream,
     "Moments after the missing segments can be restored only from the next set on.",
     "redoubt list TARGET shows what can be restored; redoubt backup TARGET makes another"},
    {"backup-elsewhere", DOCTOR_GROUP_BACKUP, S | F, DOCTOR_NOTE, doctor_judge_backup_elsewhere,
     "Who loses the host loses its backups as well.",
     "another line repository = s3://BUCKET, gs://BUCKET, azure://ACCOUNT/CONTAINER, "
     "sftp://HOST/PATH or "
     "webdavs://HOST/PATH"},
    {"backup-sealed", DOCTOR_GROUP_BACKUP, S | F, DOCTOR_NOTE, doctor_judge_backup_sealed,
     "Everyone who can read the store can read the data.",
     "redoubt seal --make-key FILE, and key-file = FILE in the configuration"},
};

const size_t doctor_n_checks = sizeof doctor_checks / sizeof doctor_checks[0];
_Static_assert(sizeof doctor_checks / sizeof doctor_checks[0] <= DOCTOR_CHECKS_MAX, "table");

unsigned doctor_subject(const struct doctor *d)
{
    return d->folder != NULL     ? DOCTOR_OF_FOLDER
           : d->file != NULL     ? DOCTOR_OF_SENTINEL_FILE
           : d->sentinel != NULL ? DOCTOR_OF_SENTINEL
                                 : DOCTOR_OF_SERVER;
}

const char *doctor_group_word(enum doctor_group group)
{
    static const char *const words[] = {
#define X(name, word) word,
        DOCTOR_GROUPS(X)
#undef X
    };
    return words[group];
}
