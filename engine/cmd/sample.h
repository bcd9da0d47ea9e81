/* sample.h - random members: SRANDMEMBER and HRANDFIELD.
 *
 *     int64_t count;
 *     if (!engine_sample_count(call, call->argv[2], &count))
 *         return;                                            // the error was answered
 *     ...
 *     struct engine_sample pick = {.need = 3, .left = n};    // 3 of n, each set of 3 as likely
 *     for (size_t i = 0; i < n; i++)
 *         if (engine_sample_takes(call, &pick))
 *             ... the i-th ...
 */
#ifndef ENGINE_CMD_SAMPLE_H
#define ENGINE_CMD_SAMPLE_H

#include "engine/call.h"

/* The count: negative if members may repeat. False: the error was replied. */
bool engine_sample_count(struct engine_call *call, struct rd_slice arg, int64_t *ret);

/* Whether a reply of n bulk strings of at least one byte is within proto-max-bulk-len: repetitions
 * make large replies from little data. A reply with a limit ends by itself. False: an error was
 * replied. */
bool engine_sample_fits(struct engine_call *call, uint64_t n);

struct engine_sample {
    uint64_t need;
    uint64_t left;
};

/* Whether the next of the remaining items is selected. */
bool engine_sample_takes(struct engine_call *call, struct engine_sample *pick);

/* Different items of a table, n of them or all; an array for engine_scratch_free(). Takes time for
 * n items, or for all if n is more than a third of them. */
void **engine_sample_items(struct engine_call *call, struct engine_table *t, size_t n);

#endif
