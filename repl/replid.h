/* replid.h - the name of a history of writes: 40 hexadecimal digits.
 *
 * A master draws a replication id when it begins a history, and again when it stops being
 * somebody's replica. An id together with an offset names one state of a data set exactly.
 *
 *     struct repl_replid id;
 *     if (!repl_replid_get(text, &id))
 *         ... not an id ...
 *     printf("%s\n", id.hex);
 *
 * A zeroed struct is no id ("not known").
 */
#ifndef REPL_REPLID_H
#define REPL_REPLID_H

#include "base/api.h"
#include "base/slice.h"

enum { REPL_REPLID_LEN = 40 };

struct repl_replid {
    char hex[REPL_REPLID_LEN + 1]; /* as it was received, NUL after it */
};

/* Exactly 40 hexadecimal digits, small or capital; they are kept as they are. */
RD_API bool repl_replid_get(struct rd_slice text, struct repl_replid *ret);

static inline bool repl_replid_is_set(const struct repl_replid *id)
{
    return id->hex[0] != 0;
}

/* Whether both name the same history; capital and small letters are one, as servers compare. */
RD_API bool repl_replid_eq(const struct repl_replid *a, const struct repl_replid *b);

#endif
