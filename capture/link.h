/* link.h - one master: its connection (client/peer.h), the replica's side of the protocol
 * (repl/psync.h), and its store.
 *
 *     if (!capture_link_new(&link, capture, &target, "", &err))
 *         ...
 *     capture_link_prepare(link, now_ms, &poll, &wait_ms, &err);
 *     ... wait ...
 *     capture_link_work(link, poll.revents, now_ms, &err);
 *     capture_link_free(link);
 *
 * A lost connection is opened again, after longer and longer times.
 */
#ifndef CAPTURE_LINK_H
#define CAPTURE_LINK_H

#include <poll.h>

#include "base/crc16.h"
#include "capture/monitor.h"
#include "capture/store.h"
#include "capture/timely.h"
#include "client/peer.h"
#include "client/topology.h"
#include "rebuild/knows.h"

enum {
    CAPTURE_READ = 256 * 1024, /* bytes per read */
    CAPTURE_BACKOFF_MS = 100,  /* before the first try to connect again, then doubled */
    CAPTURE_BACKOFF_MAX_MS = 10000,
    /* Each snapshot that is cut has cost the master a fork: the waits after these are longer. */
    CAPTURE_CUTS = 3,              /* in a row, without these waits */
    CAPTURE_CUT_BACKOFF_MS = 5000, /* then doubled */
    CAPTURE_CUT_BACKOFF_MAX_MS = 15 * 60000,
    CAPTURE_DOUBT_MS = 3000,   /* delay until a master without slots is dropped */
    CAPTURE_STEADY_MS = 10000, /* a stream of this duration resets the backoff */
    CAPTURE_FOLDER_MAX = 300
};

enum capture_state {
    CAPTURE_WAITING, /* until retry_ms */
    CAPTURE_CONNECTING,
    CAPTURE_TALKING,
    CAPTURE_DONE
};

struct capture_slots {
    uint64_t words[RD_HASH_SLOTS / 64];
};

static inline bool capture_slots_have(const struct capture_slots *slots, unsigned slot)
{
    return (slots->words[slot / 64] >> (slot % 64) & 1) != 0;
}

struct capture_link {
    struct capture *capture;
    struct client_target target;
    char folder[CAPTURE_FOLDER_MAX]; /* its name in OUT; "": OUT itself */
    struct capture_slots slots;      /* of a cluster */
    char id[CLIENT_TOPOLOGY_ID_MAX];
    bool known;          /* in the topology that was read last */
    uint64_t doubted_ms; /* since when it has no slots; 0: it has slots */
    bool gone;           /* dropped because it had no slots for too long */

    enum capture_state state;
    struct client_peer *peer;
    struct repl_psync *psync;
    struct capture_store store;
    struct capture_timely timely;
    struct capture_monitor monitor;
    uint64_t retry_ms;
    unsigned tries;     /* since the last success */
    unsigned n_cut;     /* snapshots that were cut, in a row */
    bool in_snapshot;   /* the master has begun one on this connection */
    bool resumed;       /* this connection resumes where the previous one ended */
    bool accepted;      /* a master has accepted PSYNC in this run */
    uint64_t stream_ms; /* start of the stream on this connection; 0: none */
    uint64_t began_ms;  /* start of the first stream; 0: not yet */
    uint64_t heard_ms;  /* time of the last byte */
    uint64_t mark;      /* an offset received at mark_ms and not acknowledged yet */
    uint64_t mark_ms;
    uint64_t n_bytes;    /* of the stream, in this run */
    uint64_t n_changes;  /* commands that may change data, in this run */
    uint64_t n_before;   /* of these, before this connection */
    uint64_t n_snapshot; /* bytes of snapshots, in this run */
    uint64_t n_full, n_partial, n_lost;
    struct rebuild_unsupported unsupported;
};

bool capture_link_new(struct capture_link **ret, struct capture *capture,
                      const struct client_target *target, const char *folder, struct rd_err *err);
void capture_link_free(struct capture_link *link);

/* Runs the timers: connects, acknowledges, flushes. *ret_poll is the event to wait for (fd -1:
 * none); *ret_wait_ms is the maximum time. False: the capture has failed. */
bool capture_link_prepare(struct capture_link *link, uint64_t now_ms, struct pollfd *ret_poll,
                          uint64_t *ret_wait_ms, struct rd_err *err);
bool capture_link_work(struct capture_link *link, short revents, uint64_t now_ms,
                       struct rd_err *err);
/* The master has moved: connects to the new address at once. Takes ownership of the target. */
void capture_link_move(struct capture_link *link, struct client_target *target, uint64_t now_ms);
/* Sends the last acknowledgement to the master, and syncs everything to disk. */
bool capture_link_finish(struct capture_link *link, uint64_t now_ms, struct rd_err *err);
/* The same with the data received so far, for a server that is not a master any more. */
bool capture_link_leave(struct capture_link *link, uint64_t now_ms, struct rd_err *err);

#endif
