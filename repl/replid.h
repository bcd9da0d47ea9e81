/* replid.h - the name of a history of writes: 40 hexadecimal digits.
 *
 * A master chooses a random replication id when it begins a history, and again when it stops being
 * a replica. An id together with an offset identifies one state of a data set.
 *
 * Example: prints an id.
 *
 *     struct repl_replid id;
 *     if (repl_replid_get(rd_slice_str("0123456789abcdef0123456789abcdef01234567"), &id))
 *         puts(id.hex);
 *
 * A zeroed struct means that the id is unknown.
 *
 * Threads: any thread may call everything.
 * Ownership: nothing is allocated.
 * Errors: false means that the text is not an id; *ret is then unchanged.
 * Cost: constant time.
 */
#ifndef REPL_REPLID_H
#define REPL_REPLID_H

#include "base/api.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { REPL_REPLID_LEN = 40 };

/* Open: an id is a text of fixed length, and is copied by value. */
struct repl_replid {
    char hex[REPL_REPLID_LEN + 1]; /* as received, NUL-terminated */
};

/* Parses exactly 40 hexadecimal digits of either case; their case is kept. */
RD_API bool repl_replid_get(struct rd_slice text, struct repl_replid *ret);

static inline bool repl_replid_is_set(const struct repl_replid *id)
{
    return id->hex[0] != 0;
}

/* Whether both identify the same history; case is ignored, as in servers. */
RD_API bool repl_replid_eq(const struct repl_replid *a, const struct repl_replid *b);

#ifdef __cplusplus
}
#endif

#endif
