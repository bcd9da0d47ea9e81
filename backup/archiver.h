/* archiver.h - keeps the replication stream of a server in its repositories.
 *
 *     struct backup_archiver a;
 *     backup_archiver_init(&a, target);
 *     a.tick = tick;
 *     if (!backup_archiver_open(&a, &err) || !backup_archiver_run(&a, &err))
 *         ...
 *     backup_archiver_done(&a);
 *
 * The stream is written to a spool, which is a capture on the local disk (capture/capture.h), and
 * closed segments are uploaded to the repositories. So nothing is lost while a repository is
 * unreachable, and a killed run resumes where it stopped. For an append-only folder, tail.c takes
 * the place of the capture. Three threads work beside the caller's: ship.c uploads segments, base.c
 * takes the sets from which the stream is replayed, merger.c makes larger segments of small ones.
 * The spool is locked before anything in it is shipped or removed.
 *
 * Threads: the caller's struct; its functions are called in the caller's thread, except `hint` and
 * `watch`, which base.c uses. Errors: those of connections and repositories are events, and the
 * work is repeated.
 */
#ifndef BACKUP_ARCHIVER_H
#define BACKUP_ARCHIVER_H

#include <pthread.h>

#include "backup/places.h"
#include "backup/roll.h"
#include "capture/capture.h"

enum { BACKUP_ARCHIVER_EVENTS = 32, BACKUP_ARCHIVER_LOOK_MS = 500 /* between two looks */ };

struct backup_event {
    const char *name;
    bool trouble;
    char text[700];
};

/* What ship.c reports. */
struct backup_shipped {
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
struct backup_bases {
    uint64_t n;         /* in this run */
    int64_t last_ms;    /* of the newest one; 0: there is none for this stream */
    uint64_t offset;    /* of the newest one */
    uint64_t replay_ms; /* an estimate: replaying the stream after it; 0: not measured */
    bool failing;
    bool looked; /* `covers` is known: the repository was looked at */
    bool covers; /* a set is a base for the end of the stream: it can be restored */
};

/* What merger.c reports, of this run. */
struct backup_merged {
    uint64_t n_made, n_parts; /* segments that were made, and of how many */
    uint64_t n_removed;       /* small ones */
    bool failing;
};

/* How far the stream has come. */
struct backup_streamed {
    uint64_t first;    /* the offset when it was looked at first in this run; 0: not yet */
    uint64_t offset;   /* now */
    uint64_t commands; /* that may have changed data, since the first offset */
};

struct backup_archiver {
    /* Set by the caller after backup_archiver_init(); the functions may be NULL. */
    const volatile sig_atomic_t *stop; /* not 0: ship what there is, and end */
    const sigset_t *waiting;           /* the mask of signals while the main thread waits */
    const struct rd_watch *watch;      /* warnings of base.c */
    /* Called in every turn, and once after the threads have ended. */
    void (*tick)(struct backup_archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms);
    void (*link_event)(struct backup_archiver *a, const struct capture_link *link,
                       const char *event, bool trouble, const char *text);
    /* Advice about an error of the server. refused: it did not send anything. */
    const char *(*hint)(bool refused, const struct rd_err *err);
    void *ctx; /* of these */

    /* Set by this library. */
    const struct backup_target *target;
    struct capture capture;
    struct client_opts opts; /* of the servers */
    uint64_t base_ms;
    uint64_t restore_ms;         /* 0: not limited */
    char run[ARCHIVE_ID_MAX];    /* of the capture in the spool */
    char spool[BACKUP_PATH_MAX]; /* its folder */
    char shard[BACKUP_PATH_MAX]; /* the file of its shard: capture/shard.h */
    struct rd_fs fs;             /* the spool, for all threads */
    struct repl_capture_lock lock;
    bool has_fs, locked;
    char source[ARCHIVE_TEXT_MAX];
    bool of_log; /* the source is an append-only folder */

    /* Used by the main thread only. */
    struct repl_capture_writer *writer; /* NULL: not open; of a link or of tail.c */
    uint64_t received;                  /* its end, when it was looked at last */
    bool up;                            /* the source gives its stream */
    uint64_t heard_ms;                  /* the last time that it did; 0: never */
    uint64_t changes;        /* commands that may have changed data, when they were counted last */
    struct backup_roll roll; /* when its segment is closed */
    int64_t dirty_us;        /* roll.dirty_ms by the clock */
    uint64_t n_full;         /* of the link, when it was looked at last */
    bool had_stream;         /* there is a stream that may have a gap */
    bool resumes;            /* the spool had a stream when the run began */
    uint64_t gaps;           /* the master did not continue */
    uint64_t worst_rpo_ms;

    pthread_t ship_thread, base_thread, merger_thread;
    bool has_ship, has_base, has_merger;

    /* Protected by the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct backup_event events[BACKUP_ARCHIVER_EVENTS];
    size_t n_events;
    uint64_t n_dropped;
    struct backup_shipped shipped;
    struct backup_bases bases;
    struct backup_merged merged;
    atomic_bool draining; /* the capture has ended: ship the rest, and end */
    bool want_base;
    bool streaming; /* the master sends its stream */
    struct backup_streamed streamed;
    struct rd_err fatal;
    char server_host[CLIENT_HOST_MAX]; /* the master */
    uint64_t server_port;
    atomic_bool cancel; /* of base.c and merger.c */
};

void backup_archiver_init(struct backup_archiver *a, const struct backup_target *target);
void backup_archiver_done(struct backup_archiver *a);

/* Reads the settings and finds the folder of the spool. RD_ERR_USAGE, RD_ERR_UNSUPPORTED. */
bool backup_archiver_open(struct backup_archiver *a, struct rd_err *err);

/* Archives until it is stopped. What was received is shipped at the end, if the repositories accept
 * it. RD_ERR_LOCKED: another process writes the spool, or another run has the stream. */
bool backup_archiver_run(struct backup_archiver *a, struct rd_err *err);

/* Takes the events since the last call: at most BACKUP_ARCHIVER_EVENTS. *ret_dropped is the number
 * of those that had no room. */
size_t backup_archiver_events(struct backup_archiver *a,
                              struct backup_event ret[BACKUP_ARCHIVER_EVENTS],
                              uint64_t *ret_dropped);

struct backup_figures {
    struct backup_shipped shipped;
    struct backup_bases bases;
    struct backup_merged merged;
    bool up;
    uint64_t received; /* the offset */
    uint64_t rpo_ms;   /* the age of the oldest byte that is not in all repositories */
    uint64_t worst_rpo_ms;
    uint64_t gaps;
};

struct backup_figures backup_archiver_figures(struct backup_archiver *a);

/* Whether a set is a base for the end of the stream. After backup_archiver_run(). */
bool backup_archiver_is_covered(const struct backup_archiver *a);

#endif
