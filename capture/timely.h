/* timely.h - whether the stream arrives as the master writes it. timely.c says what is recorded.
 */
#ifndef CAPTURE_TIMELY_H
#define CAPTURE_TIMELY_H

#include <stdbool.h>

#include "base/err.h"
#include "capture/clock.h"

enum { CAPTURE_LATE_MS = 500 /* resolution of times */ };

struct capture_timely {
    bool known;                 /* this run had a stream */
    bool late;                  /* what arrives may be older than its time */
    bool drained;               /* the last read found nothing */
    bool silent;                /* the system of the master does not acknowledge what is sent */
    struct capture_stamp empty; /* everything that had arrived was read */
    struct capture_stamp heard; /* the last bytes */
    struct capture_stamp asked; /* when a snapshot was announced */
    struct capture_stamp alive; /* if silent: the last acknowledgement */
    struct capture_stamp began; /* if late: when the stream went on */
    int64_t wait_ms;            /* if late: after this time all has arrived */
    struct capture_stamp pinged;
    int64_t ping_ms; /* the shortest interval between two PINGs */
    unsigned n_pings;
};

struct capture;
struct capture_link;

/* The stream continues after a lost connection, or in another run. */
bool capture_timely_continue(struct capture_link *link, struct rd_err *err);
/* It begins after a snapshot: what the master kept in the meantime arrives late. */
bool capture_timely_full(struct capture_link *link, struct rd_err *err);
/* Bytes were read, which are appended next. */
bool capture_timely_read(struct capture_link *link, struct rd_err *err);
/* They contained a PING. */
void capture_timely_ping(struct capture_link *link);
/* A read that began at the stamp found nothing; the same for a poll. */
void capture_timely_empty(struct capture_link *link, const struct capture_stamp *stamp);
void capture_timely_idle(struct capture_link *link, const struct capture_stamp *stamp);
bool capture_timely_tick(struct capture_link *link, uint64_t *ret_wait_ms, struct rd_err *err);
/* Whether the clock was set since the last call. */
bool capture_timely_clock(struct capture *capture, struct rd_err *err);

#endif
