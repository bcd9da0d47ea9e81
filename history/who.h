/* who.h - which client sent a command of a history, from a recording of MONITOR.
 *
 *     struct history_who *who;
 *     if (!history_who_new(&who, &opts, &err))
 *         ...
 *     for each command that the replay visits:   history_who_visit(who, visit, &err)
 *     for each line, in order:                   history_who_line(who, text, time_us, NULL, &err)
 *     for each gap-free piece of the recording:  history_who_covered(who, from_us, until_us, &err)
 *     history_who_join(who);
 *     struct rd_slice client = history_who_find(who, place);    // len 0: unknown
 *     history_who_free(who);
 *
 * A stream and MONITOR show commands in the same order: that in which the server ran them. A
 * command of the stream is joined to the lines that can be behind it: those with the same
 * arguments, and those of commands that servers replace (history/origin.h). They are in the same
 * database, and at most HISTORY_WHO_WINDOW_US away. If the order of all commands leaves only lines
 * of one client, it is this client. Otherwise it is unknown.
 *
 * Unknown are also commands
 * - of times that the recording does not cover,
 * - that servers write by themselves, when a key expires, unless a client sent the same,
 * - that a client may have waited for since before the recording: those of BLPOP and the like,
 * - that are scripts: servers before 5.0 can send them as a whole.
 *
 * A recording is read as a whole, whatever keys are asked for: a client may wait in BLPOP for
 * hours, so a line long before a command can decide who sent it. A gigabyte takes about a second,
 * so there is no index of it.
 *
 * Memory: about 100 bytes for each command that writes the keys, and for each line about them.
 * Threads: one at a time.
 */
#ifndef HISTORY_WHO_H
#define HISTORY_WHO_H

#include "base/siphash.h"
#include "history/replay.h"

#define HISTORY_WHO_WINDOW_US ((int64_t)2000000)

enum { HISTORY_WHO_MAX = 4000000 /* commands and lines about the keys; more are RD_ERR_LIMIT */ };

struct history_who;

struct history_who_opts {
    const struct history_names *names; /* of the keys; borrowed */
    uint8_t salt[RD_SIPHASH_KEY];
    /* When the server ran a command: from `early_us` before its time in the history to `late_us`
     * after it. The recording must cover all of that. */
    int64_t early_us, late_us;
};

bool history_who_new(struct history_who **ret, const struct history_who_opts *opts,
                     struct rd_err *err);
void history_who_free(struct history_who *who);

/* In the visit of a replay, whose `restart` calls history_who_restart(). */
bool history_who_visit(struct history_who *who, const struct history_visit *visit,
                       struct rd_err *err);
void history_who_restart(struct history_who *who);

/* A line of MONITOR; others are passed over. time_us: its time by the clock of the history;
 * INT64_MIN: that in the line. *ret_time_us: the time that counts, or INT64_MIN if it was passed
 * over; may be NULL. */
bool history_who_line(struct history_who *who, struct rd_slice text, int64_t time_us,
                      int64_t *ret_time_us, struct rd_err *err);
/* From here to there, all lines were recorded. Later pieces come later. */
bool history_who_covered(struct history_who *who, int64_t from_us, int64_t until_us,
                         struct rd_err *err);
/* The commands of these times may be older than their time in the history. */
bool history_who_late(struct history_who *who, int64_t from_us, int64_t until_us,
                      struct rd_err *err);
/* The recording begins again here. Clients that wait for a key are not known, unless
 * waiting_known: then history_who_waits() names them. */
bool history_who_begin(struct history_who *who, int64_t time_us, bool waiting_known,
                       struct rd_err *err);
bool history_who_waits(struct history_who *who, struct rd_slice client, int64_t time_us,
                       struct rd_err *err);

void history_who_join(struct history_who *who);
struct rd_slice history_who_find(const struct history_who *who, struct history_place place);

#endif
