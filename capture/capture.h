/* capture.h - records the snapshots and streams of masters in a folder, as their replica.
 *
 *     struct capture c = {.out = folder, .master = "mymaster", .event = event, .ctx = ctx};
 *     if (capture_init(&c, draw, &err) && client_target_set_url(&c.target, url, &err) &&
 *         capture_begin(&c, &err))
 *         ok = capture_run(&c, &err);
 *     capture_close(&c, &err);
 *
 * One loop around ppoll() serves all links (link.h). Blocking operations run as jobs on another
 * thread: fsync, and queries to sentinels or cluster members for the masters.
 *
 * Threads: one thread at a time. Ownership: the caller's struct; strings are borrowed, targets are
 * owned. Errors: those of connections only if the caller does not want to wait, see `wait`.
 */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include <signal.h>

#include "capture/hosts.h"
#include "capture/link.h"
#include "capture/shard.h"

enum { CAPTURE_SENTINELS_MAX = 16 };

struct capture {
    /* Set by the caller. */
    const char *out;             /* the folder; it is created if it is missing */
    const char *replica_version; /* NULL: RDB_REPLICA_VERSION */
    bool wait;                   /* keep trying if the master cannot be reached at first */
    bool monitor;                /* record which clients send commands: monitor.h */
    bool cluster;                /* the target is a member: capture all masters */
    int ack;                     /* enum capture_ack */
    bool has_until;
    uint64_t until;       /* end at the command that reaches this offset */
    uint64_t duration_ms; /* end this long after the stream began; 0: no end */
    uint64_t max_size, segment_size;
    struct capture_shard shard; /* its file: the target may be a member, whose shard is followed */
    const struct repl_capture_lock *lock; /* of the folder `out`; NULL: a link locks its own */
    const volatile sig_atomic_t *stop;    /* not 0: the loop ends; NULL: nothing stops it */
    const sigset_t *waiting; /* the mask of signals while the loop waits; NULL: unchanged */

    /* Set by the caller before capture_begin(); closing frees them. */
    struct client_target target;
    const char *master; /* its name in Sentinel */
    struct client_target sentinels[CAPTURE_SENTINELS_MAX];
    size_t n_sentinels; /* not 0: they name the master, and the target gives login and TLS */

    /* What is said of a link: a word, and a sentence. trouble: it is a warning. */
    void (*event)(struct capture *capture, const struct capture_link *link, const char *event,
                  bool trouble, const char *text);
    /* Called in every turn, after the links; NULL: not. *ret_wait_ms as in capture_link_prepare().
     */
    bool (*tick)(struct capture *capture, uint64_t now_ms, uint64_t *ret_wait_ms,
                 struct rd_err *err);
    void (*on_full)(struct capture *capture); /* a master begins a snapshot; NULL: not */
    void *ctx;                                /* of these */

    /* Set by this library. */
    struct repl_replid run; /* of this run, random */
    struct capture_link **links;
    size_t n_links, cap_links;
    struct capture_watch watch;
    struct capture_job syncer;
    struct capture_stamp clock; /* when it was looked at last */
    uint8_t *buf;               /* CAPTURE_READ bytes */
};

/* Where the id of a run comes from: fills size bytes, in a way that nobody can predict. */
typedef bool capture_random(void *ret, size_t size, struct rd_err *err);

/* capture_close() is called in any case. RD_ERR_MEMORY, and the errors of draw(). */
bool capture_init(struct capture *capture, capture_random *draw, struct rd_err *err);
/* Finds the masters unless the caller has added links. May block as long as a query lasts. */
bool capture_begin(struct capture *capture, struct rd_err *err);
/* Captures until it is over or stopped. Everything received is stored, however it ends. */
bool capture_run(struct capture *capture, struct rd_err *err);
/* err may be NULL. */
void capture_close(struct capture *capture, struct rd_err *err);

/* Takes ownership of the target, also where it fails. */
bool capture_add_link(struct capture *capture, const struct client_target *target,
                      const char *folder, struct capture_link **ret, struct rd_err *err);

/* Calls `event`, if there is one. */
void capture_event(struct capture *capture, const struct capture_link *link, const char *event,
                   bool trouble, const char *fmt, ...) RD_PRINTF(5, 6);

#endif
