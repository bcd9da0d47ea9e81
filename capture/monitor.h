/* monitor.h - the second connection of a link, on which the master shows who sends what: MONITOR.
 *
 *     struct capture_monitor monitor = {0};
 *     capture_monitor_prepare(&monitor, link, now_ms, &poll, &wait_ms);
 *     ... wait ...
 *     capture_monitor_work(&monitor, link, poll.revents, now_ms);
 *     capture_monitor_close(&monitor, link);
 *
 * The lines are recorded (repl/monitor_writer.h). Nothing here fails a capture: if the recording
 * cannot go on, it ends, and begins again later; the event "monitor" says so.
 *
 * A PING every half second shows what has arrived: its reply comes after the lines of all commands
 * that ran before it. If a reply takes longer than a second, or the connection is lost, what came
 * after the last reply is not recorded.
 *
 * Memory: at most two blocks and a line, 3 MB.
 */
#ifndef CAPTURE_MONITOR_H
#define CAPTURE_MONITOR_H

#include <poll.h>

#include "base/buf.h"
#include "base/fs.h"
#include "capture/job.h"
#include "client/peer.h"
#include "repl/monitor_writer.h"

enum {
    CAPTURE_MONITOR_PING_MS = 500,
    CAPTURE_MONITOR_LATE_MS = 1000,
    CAPTURE_MONITOR_SYNC_MS = 1000,
    CAPTURE_MONITOR_RETRY_MS = 2000, /* then doubled */
    CAPTURE_MONITOR_RETRY_MAX_MS = 60000
};

/* The commands whose replies are awaited, in order. */
enum capture_monitor_asked {
    MONITOR_ASKED_AUTH,
    MONITOR_ASKED_MONITOR,
    MONITOR_ASKED_LIST,
    MONITOR_ASKED_PING
};

struct capture_monitor {
    struct client_peer *peer; /* NULL: not connected */
    bool connected;
    uint64_t retry_ms;
    unsigned tries;
    bool said; /* that it cannot be recorded */
    bool off;  /* a file cannot be written: no more in this run */

    struct rd_buf out;  /* to be sent */
    struct rd_buf line; /* the beginning of one */
    bool too_long;      /* the rest of it is passed over */
    enum capture_monitor_asked asked[8];
    size_t n_asked;
    bool in_list;      /* of clients: */
    uint64_t list_len; /* bytes that follow */
    bool shows;        /* MONITOR was accepted */
    uint64_t ping_ms;  /* when the last one was sent; 0: none is on its way */
    int64_t ping_us;
    uint64_t next_ms;

    struct repl_monitor_writer *writer;
    uint64_t flush_ms;
    struct capture_job *syncer; /* NULL: none yet */
    bool syncing;
    uint64_t synced_ms;
    uint64_t synced_size;
    int sync_fd, sync_result;
    struct rd_fs *fs;
    uint64_t told; /* bytes that were reported to the writer of the capture */
};

struct capture_link;

/* As capture_link_prepare() and capture_link_work(). */
void capture_monitor_prepare(struct capture_monitor *m, struct capture_link *link, uint64_t now_ms,
                             struct pollfd *ret_poll, uint64_t *ret_wait_ms);
void capture_monitor_work(struct capture_monitor *m, struct capture_link *link, short revents,
                          uint64_t now_ms);
/* The master has moved. */
void capture_monitor_drop(struct capture_monitor *m, uint64_t now_ms);
/* Writes everything, and ends. May be called twice. */
void capture_monitor_close(struct capture_monitor *m, struct capture_link *link);

#endif
