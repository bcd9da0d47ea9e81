/* roll.h - when the segment that is being written is closed, so that it is stored.
 *
 * A change of the data is stored after the interval. While a master sends nothing but PING, there
 * is only the proof that nothing has changed: the first segment of this kind is closed after the
 * interval as well, and each one after it covers twice the time, up to BACKUP_ROLL_IDLE_MS. So a
 * moment soon after the last change can be restored soon, and an idle server fills 300 segments a
 * day instead of 8640.
 *
 *     struct backup_roll roll = {.interval_ms = 10000};
 *     backup_roll_note(&roll, received, changes, now_ms);
 *     if (backup_roll_due(&roll, now_ms, &wait_ms)) {
 *         ... close the segment ...
 *         backup_roll_done(&roll, received, changes);
 *     }
 */
#ifndef BACKUP_ROLL_H
#define BACKUP_ROLL_H

#include <stdbool.h>
#include <stdint.h>

enum { BACKUP_ROLL_IDLE_MS = 300000 };

struct backup_roll {
    uint64_t interval_ms; /* set by the caller */

    uint64_t received, changes; /* when the last segment was closed */
    uint64_t fresh_ms;          /* since when there are bytes after it; 0: there are none */
    uint64_t dirty_ms;          /* since when there are changes after it; 0: there are none */
    uint64_t hold_ms;           /* how long bytes that are no changes wait; 0: the interval */
};

/* Offset after the last byte, and the number of commands that may change data, so far. True:
 * changes begin with this call. now_ms is not 0. */
bool backup_roll_note(struct backup_roll *roll, uint64_t received, uint64_t changes,
                      uint64_t now_ms);

/* Whether the segment is to be closed now. Otherwise *ret_left_ms is the time until then;
 * UINT64_MAX: there is nothing in it. */
bool backup_roll_due(const struct backup_roll *roll, uint64_t now_ms, uint64_t *ret_left_ms);

/* The segment was closed. */
void backup_roll_done(struct backup_roll *roll, uint64_t received, uint64_t changes);

#endif
