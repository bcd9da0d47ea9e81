/* who.h - the clients behind recorded commands, from recordings of MONITOR: those in a
 * capture, or those of --monitor-file.
 *
 *     struct recorded in;                     opened, with names
 *     if (!recorded_who_find(&in, now_us, &err))
 *         ...
 *     struct rd_slice client = recorded_who_of(&in, place);    // len 0: unknown
 *
 * Without a recording this does nothing. With one, the history of the keys is replayed once more.
 */
#ifndef TOOLS_RECORDED_WHO_H
#define TOOLS_RECORDED_WHO_H

#include "tools/recorded/recorded.h"

bool recorded_who_find(struct recorded *r, int64_t now_us, struct rd_err *err);
struct rd_slice recorded_who_of(const struct recorded *r, struct history_place place);
/* Whether there is a recording. */
static inline bool recorded_who_any(const struct recorded *r)
{
    return r->who != NULL;
}

#endif
