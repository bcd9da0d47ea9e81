/* pace.h - how long this machine would take to replay a stream: an estimate.
 *
 *     struct backup_pace pace;
 *     if (!backup_pace_measure(&pace, &err))
 *         ...
 *     if (backup_pace_ms(&pace, n_commands, bytes) > restore_ms)
 *         ...
 *
 * A command counts as a SET of 100 bytes, which is measured. Commands that work on many keys or
 * elements at once take longer, and so does a machine that is slower than this one.
 *
 * Threads: any. Memory: 4 MiB during the measurement.
 */
#ifndef BACKUP_PACE_H
#define BACKUP_PACE_H

#include "base/err.h"

enum {
    /* To read, verify, open and decompress one: 250 MB a second. */
    BACKUP_PACE_BYTE_NS = 4,
    /* Where the number of commands is not known: small ones, so the time is rather too long. */
    BACKUP_PACE_COMMAND_BYTES = 64
};

struct backup_pace {
    uint64_t command_ns; /* of this machine */
};

/* Runs commands on an empty dataset for about 50 ms. */
bool backup_pace_measure(struct backup_pace *ret, struct rd_err *err);

/* The time for so many commands, which have so many bytes. It does not overflow. */
uint64_t backup_pace_ms(const struct backup_pace *pace, uint64_t n_commands, uint64_t bytes);

#endif
