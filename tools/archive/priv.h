/* priv.h - shared by the parts of `redoubt archive`; private to tools/archive/.
 *
 *     archive.c   options; the capture into the spool; when a segment is closed
 *     logs.c      the same from the log of a server
 *     ship.c      a thread: closed segments of the spool into the repositories
 *     base.c      a thread: sets from which the stream can be replayed
 *     report.c    events, figures and the result
 *
 * The main thread runs the capture (capture/capture.h). The threads communicate through struct
 * archiver, which its mutex protects.
 */
#ifndef TOOLS_ARCHIVE_PRIV_H
#define TOOLS_ARCHIVE_PRIV_H

#include <inttypes.h>
#include <pthread.h>

#include "archive/stream.h"
#include "backup/heartbeat.h"
#include "backup/hook.h"
#include "backup/login.h"
#include "backup/log.h"
#include "backup/metrics.h"
#include "backup/source.h"
#include "backup/system.h"
#include "tools/vault/hint.h"
#include "tools/vault/vault.h"
#include "tools/capture/report.h"
#include "tools/capture/servers.h"
#include "tools/cli/stop.h"

enum {
    ARCHIVE_PATH_MAX = 4096,
    ARCHIVE_EVENTS = 32,
    ARCHIVE_RETRY_MS = 1000, /* before the first repetition, then doubled */
    ARCHIVE_RETRY_MAX_MS = 60000,
    /* The same for a set that the master has to fork for. */
    ARCHIVE_FORK_RETRY_MS = 15000,
    ARCHIVE_FORK_RETRY_MAX_MS = 30 * 60000,
    ARCHIVE_LOOK_MS = 500, /* between two looks at the spool */
    ARCHIVE_NOTE_MS = 60000,
    ARCHIVE_INTERVAL_MS = 10000,
    ARCHIVE_BASE_HOURS = 24
};

struct archive_event {
    const char *name;
    bool trouble;
    char text[700];
};

/* What ship.c reports. */
struct archive_shipped {
    uint64_t segments, bytes, stream_bytes; /* in this run */
    uint64_t offset;                        /* up to here everything is in all repositories */
    uint64_t gaps;                          /* segments were lost before they were shipped */
    uint64_t n_waiting;
    int64_t oldest_us;  /* the beginning of the unshipped data; INT64_MAX: nothing is waiting */
    int64_t last_ms;    /* when the last segment was shipped; 0: never */
    bool failing;       /* a repository currently does not accept segments */
    bool spool_failing; /* the spool cannot be read now: n_waiting is not known */
    bool looked;        /* the spool was looked at, and no repository has foreign segments */
    bool ended;
};

/* What base.c reports. */
struct archive_bases {
    uint64_t n;      /* in this run */
    int64_t last_ms; /* of the newest one; 0: there is none for this stream */
    bool failing;
    bool covers; /* a set is a base for the end of the stream: it can be restored */
};

struct archiver {
    struct cli *cli;
    struct vault vault;
    const struct backup_target *target;
    struct capture capture;
    struct client_opts opts; /* of the servers */
    sigset_t waiting;        /* the mask of signals while the main thread waits */
    uint64_t interval_ms, base_ms;
    char run[ARCHIVE_ID_MAX];     /* of the capture in the spool */
    char spool[ARCHIVE_PATH_MAX]; /* its folder */
    struct rd_fs fs;              /* the spool */
    struct repl_capture_lock lock;
    bool has_fs, locked;
    char source[ARCHIVE_TEXT_MAX];

    bool of_log; /* the source is an append-only folder */

    /* Used by the main thread only. */
    struct repl_capture_writer *writer; /* NULL: not open; of a link or of logs.c */
    bool up;                            /* the source gives its stream */
    uint64_t heard_ms;                  /* the last time that it did; 0: never */
    uint64_t rolled;                    /* the offset at which the last segment was closed */
    uint64_t dirty_ms; /* since when there is something after it; 0: there is not */
    int64_t dirty_us;  /* the same by the clock */
    uint64_t n_full;   /* of the link, when it was looked at last */
    bool had_stream;   /* there is a stream that may have a gap */
    uint64_t gaps;     /* the master did not continue */
    uint64_t worst_rpo_ms;
    uint64_t report_ms, note_ms;
    bool metrics_failed;

    pthread_t ship_thread, base_thread;
    bool has_ship, has_base;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct archive_event events[ARCHIVE_EVENTS];
    size_t n_events;
    uint64_t n_dropped;
    struct archive_shipped shipped;
    struct archive_bases bases;
    atomic_bool draining; /* the capture has ended: ship the rest, and end */
    bool want_base;
    bool streaming; /* the master sends its stream */
    struct rd_err fatal;
    char server_host[CLIENT_HOST_MAX]; /* the master */
    uint64_t server_port;
    atomic_bool cancel; /* of base.c */
};

/* ---- archive.c ---- */

/* Called in every turn: closes a segment if that is due, and reports. */
bool archive_tick(struct archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err);
/* Closes the last segment, so that it can be shipped. */
void archive_close_segment(struct archiver *a);
/* The same, and the writer, of logs.c. */
void archive_close_writer(struct archiver *a);

/* ---- logs.c: an append-only folder ---- */

/* Archives until a signal comes. */
bool archive_logs_run(struct archiver *a, struct rd_err *err);

/* ---- ship.c ---- */

void *archive_ship(void *archiver);

/* The path of a file of the spool. */
bool archive_spool_path(char ret[ARCHIVE_PATH_MAX], const struct archiver *a, const char *name,
                        struct rd_err *err);

/* ---- base.c ---- */

void *archive_base(void *archiver);

/* ---- report.c ---- */

/* From any thread. With trouble it is a warning. */
void archive_say(struct archiver *a, const char *event, bool trouble, const char *fmt, ...)
    RD_PRINTF(4, 5);
/* Ends the service. From any thread. */
void archive_give_up(struct archiver *a, const struct rd_err *err);

/* The rest is the main thread's. The age of the oldest byte that is not in all repositories. */
uint64_t archive_rpo_ms(struct archiver *a);
void archive_report_begin(struct archiver *a);
void archive_report_tick(struct archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms);
void archive_report_end(struct archiver *a);
/* Whether a set is a base for the end of the stream. After the threads have ended. */
bool archive_is_covered(const struct archiver *a);

/* ---- both threads ---- */

/* Waits until something changes, or for at most ms. The mutex is held. */
void archive_wait(struct archiver *a, uint64_t ms);

/* The wait before the next try, and the one after it. */
uint64_t archive_backoff(uint64_t *ms, uint64_t min_ms, uint64_t max_ms);
/* The stream begins again: no set is a base for its end. */
void archive_uncover(struct archiver *a);

#endif
