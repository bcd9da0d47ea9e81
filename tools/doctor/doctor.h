/* doctor.h - shared by the parts of `redoubt doctor`; private to tools/doctor/.
 *
 * server.c and host.c collect facts, sentinel.h has those of Sentinels; table.c lists the checks;
 * the files judge_*.c have a function for each check, which compares facts and fills in a verdict;
 * report.c prints the verdicts.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_H
#define TOOLS_DOCTOR_DOCTOR_H

#include "client/info.h"
#include "client/peer.h"
#include "tools/cli/peer_options.h"
#include "tools/vault/vault.h"

enum { DOCTOR_TEXT_MAX = 400, DOCTOR_CHECKS_MAX = 64 };

/* ---- verdicts ---- */

#define DOCTOR_STATES(X)                                                                           \
    X(PASSED, "passed")                                                                            \
    X(FOUND, "found")                                                                              \
    X(UNKNOWN, "not-examined") /* it should have been examined, but that was not possible */       \
    X(NONE, "does-not-apply")                                                                      \
    X(SKIPPED, "skipped") /* by --skip, or the option that requests it is not given */

enum doctor_state {
#define X(name, word) DOCTOR_##name,
    DOCTOR_STATES(X)
#undef X
};

#define DOCTOR_SEVERITIES(X)                                                                       \
    X(NOTE, "note") /* a setting to decide about; the exit status stays 0 */                       \
    X(WARNING, "warning")                                                                          \
    X(ERROR, "error") /* data is lost now, or at the next restart or failure */

enum doctor_severity {
#define X(name, word) DOCTOR_##name,
    DOCTOR_SEVERITIES(X)
#undef X
};

#define DOCTOR_GROUPS(X)                                                                           \
    X(PERSISTENCE, "persistence")                                                                  \
    X(FILES, "files")                                                                              \
    X(MEMORY, "memory")                                                                            \
    X(HOST, "host")                                                                                \
    X(REPLICATION, "replication")                                                                  \
    X(SENTINEL, "sentinel")                                                                        \
    X(BACKUP, "backup")

enum doctor_group {
#define X(name, word) DOCTOR_GROUP_##name,
    DOCTOR_GROUPS(X)
#undef X
};

struct doctor_verdict {
    enum doctor_state state;
    enum doctor_severity severity;
    char figure[DOCTOR_TEXT_MAX]; /* what was measured, or why it was not */
    char fix[DOCTOR_TEXT_MAX];    /* empty: that of the check */
};

struct doctor;

/* What is examined. */
enum {
    DOCTOR_OF_SERVER = 1,
    DOCTOR_OF_FOLDER = 2,
    DOCTOR_OF_SENTINEL = 4,     /* one that runs */
    DOCTOR_OF_SENTINEL_FILE = 8 /* its configuration */
};

struct doctor_check {
    const char *id;
    enum doctor_group group;
    unsigned of; /* DOCTOR_OF_… */
    enum doctor_severity severity;
    void (*judge)(const struct doctor *d, struct doctor_verdict *v);
    const char *why; /* one sentence */
    const char *fix; /* a setting or a command */
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_n_checks;

const char *doctor_group_word(enum doctor_group group);

/* DOCTOR_OF_…: what is examined. */
unsigned doctor_subject(const struct doctor *d);

/* ---- facts ---- */

/* The process of a server that runs on this host. */
struct doctor_host {
    bool here;       /* the process was found */
    char why[200];   /* the reason why it was not */
    char proc[64];   /* its folder below /proc */
    uint64_t memory; /* that the process may use, in bytes; 0: unknown */
};

enum doctor_answer { DOCTOR_NO, DOCTOR_YES, DOCTOR_NOT_KNOWN };

struct doctor {
    struct cli *cli;
    /* the command line */
    const char *folder;  /* NULL: something else */
    const char *file;    /* the configuration of a Sentinel; NULL: something else */
    bool rpo_given;      /* --rpo */
    uint64_t rpo_ms;     /* */
    uint64_t outage_ms;  /* --outage */
    uint64_t sample_ms;  /* --sample */
    uint64_t max_age_ms; /* --max-age */
    bool with_backup;    /* a repository or a target is named */
    struct vault vault;  /* its target */
    bool skip[DOCTOR_CHECKS_MAX];
    const char *proc, *sys; /* "/proc", "/sys"; tests have others */
    /* the server */
    char name[CLIENT_HOST_MAX + 10];
    struct rd_buf info;  /* the reply to INFO */
    struct rd_buf later; /* a second one; empty: it was not needed */
    uint64_t between_ms; /* the two */
    struct client_peer_reply config;
    bool has_config;
    char no_config[RD_ERR_TEXT_MAX]; /* why not */
    enum doctor_answer open_to_all;  /* a client needs no password */
    struct doctor_host host;
    struct doctor_sentinel *sentinel; /* NULL: it is none */
    /* results */
    struct doctor_verdict verdicts[DOCTOR_CHECKS_MAX];
};

/* server.c: asks the server. False: it cannot be reached, or refuses INFO. */
bool doctor_ask(struct doctor *d, const struct client_target *target, struct rd_err *err);
void doctor_done(struct doctor *d);

/* host.c: finds the process of the server. `near`: the connection is to this host. */
void doctor_find_process(struct doctor *d, bool near);
/* The number after "NAME:" in a file of /proc, in bytes where its unit is kB. */
bool doctor_proc_u64(const char *path, const char *name, uint64_t *ret);

/* ---- facts.c: for the judges ---- */

/* A field of INFO. False: it is missing, and the verdict is that this was not examined. */
bool doctor_info(const struct doctor *d, struct doctor_verdict *v, const char *name,
                 struct rd_slice *ret);
bool doctor_info_u64(const struct doctor *d, struct doctor_verdict *v, const char *name,
                     uint64_t *ret);
/* A field that may be missing: 0 then. */
uint64_t doctor_info_or_0(const struct doctor *d, const char *name);

/* A setting. False, with a verdict: CONFIG is refused (not examined), or the server has no such
 * setting (does not apply). "min-slaves-*" and "repl-ping-slave-period" are found under both
 * names. */
bool doctor_config(const struct doctor *d, struct doctor_verdict *v, const char *name,
                   struct rd_slice *ret);
bool doctor_config_u64(const struct doctor *d, struct doctor_verdict *v, const char *name,
                       uint64_t *ret);
bool doctor_config_is(const struct doctor *d, const char *name, const char *value);

/* Major and minor version of the server's compatibility, as 700 for 7.0; 0: unknown. */
unsigned doctor_version(const struct doctor *d);
bool doctor_is_master(const struct doctor *d);
uint64_t doctor_replicas(const struct doctor *d);

/* Save points: their number, and the seconds of the strictest one that a single change triggers (0:
 * none). */
size_t doctor_save_points(struct rd_slice text, uint64_t *ret_seconds);

/* Bytes per second of the replication stream between the two samples. */
bool doctor_traffic(const struct doctor *d, struct doctor_verdict *v, uint64_t *ret);

/* ---- verdicts ---- */

void doctor_found(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
void doctor_passed(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
void doctor_unknown(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
void doctor_none(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
void doctor_skipped(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);
void doctor_fix(struct doctor_verdict *v, const char *fmt, ...) RD_PRINTF(2, 3);

/* ---- judges ---- */

#define DOCTOR_JUDGES(X)                                                                           \
    X(no_persistence)                                                                              \
    X(rpo)                                                                                         \
    X(last_save)                                                                                   \
    X(last_rewrite)                                                                                \
    X(log_write)                                                                                   \
    X(stop_writes)                                                                                 \
    X(fsync_off)                                                                                   \
    X(fsync_rewrite)                                                                               \
    X(fsync_delays)                                                                                \
    X(disk_room)                                                                                   \
    X(snapshot)                                                                                    \
    X(log)                                                                                         \
    X(no_data)                                                                                     \
    X(leftovers)                                                                                   \
    X(fork_headroom)                                                                               \
    X(maxmemory)                                                                                   \
    X(memory_full)                                                                                 \
    X(evicted)                                                                                     \
    X(slow_fork)                                                                                   \
    X(overcommit)                                                                                  \
    X(huge_pages)                                                                                  \
    X(swapped)                                                                                     \
    X(replica_down)                                                                                \
    X(replica_lag)                                                                                 \
    X(writes_refused)                                                                              \
    X(min_replicas)                                                                                \
    X(backlog)                                                                                     \
    X(replica_buffer)                                                                              \
    X(repl_timeout)                                                                                \
    X(diskless_sync)                                                                               \
    X(diskless_load)                                                                               \
    X(replica_writable)                                                                            \
    X(masterauth)                                                                                  \
    X(open)                                                                                        \
    X(sentinel_config)                                                                             \
    X(rewrite)                                                                                     \
    X(scripts)                                                                                     \
    X(tilt)                                                                                        \
    X(master_down)                                                                                 \
    X(quorum)                                                                                      \
    X(few_sentinels)                                                                               \
    X(sentinel_down)                                                                               \
    X(masters_differ)                                                                              \
    X(quorums_differ)                                                                              \
    X(epochs_differ)                                                                               \
    X(limits_differ)                                                                               \
    X(no_candidate)                                                                                \
    X(unable)                                                                                      \
    X(sentinels_host)                                                                              \
    X(masters_host)                                                                                \
    X(replicas_host)                                                                               \
    X(backup_age)                                                                                  \
    X(backup_paused)                                                                               \
    X(backup_stream)                                                                               \
    X(backup_elsewhere)                                                                            \
    X(backup_sealed)

#define X(name) void doctor_judge_##name(const struct doctor *d, struct doctor_verdict *v);
DOCTOR_JUDGES(X)
#undef X

/* ---- report.c ---- */

/* Prints all verdicts; returns the exit status. */
int doctor_report(const struct doctor *d);

#endif
