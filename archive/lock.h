/* lock.h - the lock of a target in a repository, with heartbeats.
 *
 * A folder has a lock of the system (the file `name`), which ends with its process. Other stores
 * have nothing of the kind, so there the lock is objects:
 *
 *     TARGET/locks/sets/00000017-1f2e3d4c5b6a7988
 *
 * The name has a number and the id of its holder. Objects are only created and removed, and no two
 * processes create the same one, so a store needs no conditional requests. To take the lock, a
 * process creates the next number, lists the folder, and has the lock if no other process is in it.
 * Of two that do so at the same time, at least one finds the other and withdraws. To renew the lock
 * (a heartbeat), its holder creates the next number and removes the previous one.
 *
 * A lock that was not renewed for its time of expiry may be taken. That time passes by the clock of
 * the process that waits and sees no new number, or by the clock of the store; never by comparing
 * the clocks of two hosts. The holder that was slow, or was stopped, finds out before it changes
 * anything: archive_lock_check() and archive_lock_renew() fail.
 *
 *     struct archive_lock lock;
 *     if (!archive_lock_init(&lock, "nightly", ARCHIVE_LOCK_SETS, &opts, &err))
 *         ...
 *     while (!archive_lock_try(&lock, store, &err))
 *         ... wait, if err.code is RD_ERR_LOCKED ...
 *     archive_lock_renew(&lock, store, &err);      // from any thread, with a store of its own
 *     archive_lock_drop(&lock, store);
 *     archive_lock_done(&lock);
 */
#ifndef ARCHIVE_LOCK_H
#define ARCHIVE_LOCK_H

#include "archive/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    ARCHIVE_LOCK_EXPIRE_MS = 5 * 60 * 1000, /* without a heartbeat */
    ARCHIVE_LOCK_BEATS = 5,                 /* heartbeats in that time */
    ARCHIVE_LOCK_ID = 17,                   /* 16 hexadecimal digits and a zero byte */
    ARCHIVE_LOCK_TEXT = 128
};

/* A lock of version 0.2.0 and older has no heartbeat. That of a backup expires by the clock of the
 * store after this time, which no backup takes. That of an archive does not expire. */
#define ARCHIVE_LOCK_OLD_MS ((int64_t)7 * 24 * 3600 * 1000)

/* The locks of a target. */
enum archive_lock_kind {
    ARCHIVE_LOCK_SETS,
    ARCHIVE_LOCK_STREAM,
    ARCHIVE_LOCK_MERGE, /* the segments of the stream are merged */
    ARCHIVE_LOCK_KINDS
};

/* What a lock says about its holder. */
struct archive_lock_holder {
    char id[ARCHIVE_LOCK_ID];      /* "": none */
    char owner[ARCHIVE_OWNER_MAX]; /* a line of text */
    char host[ARCHIVE_LOCK_TEXT];
    char space[ARCHIVE_LOCK_TEXT]; /* identifies the boot and the name space of pid; "": unknown */
    uint64_t pid;
    int64_t since_ms, beat_ms; /* Unix time by the holder's clock: for messages only */
    uint64_t expire_ms;
};

struct archive_lock_opts {
    struct archive_lock_holder self; /* without the times; expire_ms 0: the default */
    uint64_t (*now_ms)(void); /* a clock that is never set, and that counts the time of a suspend */
    int64_t (*wall_ms)(void); /* Unix time */
    void (*wait_ms)(uint64_t ms); /* NULL: no waiting */
    /* Whether a holder has certainly ended, although its time has not. NULL: never known. */
    bool (*gone)(const struct archive_lock_holder *holder);
};

struct archive_lock_seen {
    char name[ARCHIVE_NAME_MAX];
    uint64_t since_ms;
};

struct archive_lock {
    struct archive_lock_opts opts;
    enum archive_lock_kind kind;
    char name[ARCHIVE_NAME_MAX];        /* of a lock of the system, and of older versions */
    char folder[ARCHIVE_NAME_MAX - 60]; /* of the objects */
    pthread_mutex_t mutex;
    bool held;
    atomic_bool lost;    /* may be read by any thread */
    uint64_t number;     /* of the object that holds it */
    uint64_t renewed_ms; /* when the last renewal that succeeded began, by now_ms() */
    bool seen_alive; /* the last try met a holder that lives: it has renewed its lock meanwhile */
    bool is_old;     /* the last try met a lock without heartbeats */
    struct archive_lock_seen *seen; /* locks of others, since when */
    size_t n_seen;
};

/* RD_ERR_LIMIT: the name of the target is too long. */
bool archive_lock_init(struct archive_lock *lock, const char *target, enum archive_lock_kind kind,
                       const struct archive_lock_opts *opts, struct rd_err *err);
void archive_lock_done(struct archive_lock *lock);

/* One attempt. RD_ERR_LOCKED names the holder. Attempts with the same struct see when a lock
 * expires. What the same id still has of an earlier attempt is taken over. */
bool archive_lock_try(struct archive_lock *lock, struct archive_store *store, struct rd_err *err);

/* Renews the lock. RD_ERR_LOCKED: it was lost, for good. Other errors: unknown; it may be renewed
 * later, even after its expiry, if no other process has taken it. */
bool archive_lock_renew(struct archive_lock *lock, struct archive_store *store, struct rd_err *err);

/* True if the lock was not lost and was renewed within half of its time; else renews it. */
bool archive_lock_check(struct archive_lock *lock, struct archive_store *store, struct rd_err *err);

/* True if the lock was held until now: no other process is in the folder. If the store does not
 * answer: the time of expiry has not passed since the last renewal. */
bool archive_lock_confirm(struct archive_lock *lock, struct archive_store *store,
                          struct rd_err *err);

void archive_lock_drop(struct archive_lock *lock, struct archive_store *store);

/* ---- the locks of others ---- */

enum archive_lock_state {
    ARCHIVE_LOCK_FREE,
    ARCHIVE_LOCK_ALIVE,   /* renewed within its time, or held by a process of this system */
    ARCHIVE_LOCK_UNKNOWN, /* not known yet */
    ARCHIVE_LOCK_EXPIRED, /* not renewed within its time */
    ARCHIVE_LOCK_ENDED,   /* the process of the holder has ended */
    ARCHIVE_LOCK_OLD,     /* of a version without heartbeats */
    ARCHIVE_LOCK_STATES
};

struct archive_lock_report {
    enum archive_lock_state state;
    struct archive_lock_holder holder;
    int64_t age_ms; /* since the last heartbeat, by the clock of the store; -1: unknown */
    size_t n;       /* objects of the lock */
};

/* Reports the lock and changes nothing. lock needs archive_lock_init() only. */
bool archive_lock_look(struct archive_lock *lock, struct archive_store *store,
                       struct archive_lock_report *ret, struct rd_err *err);

/* Removes the lock, even if its holder is alive: it finds out before its next change. */
bool archive_lock_break(struct archive_lock *lock, struct archive_store *store, struct rd_err *err);

#endif
