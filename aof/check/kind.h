/* kind.h - detects the kind of a file that is not a log.
 */
#ifndef AOF_CHECK_KIND_H
#define AOF_CHECK_KIND_H

#include "base/slice.h"

enum { AOF_KIND_LOOK = 512 };

struct aof_kind {
    const char *text; /* "it is compressed with gzip" */
    const char *hint; /* advice, or NULL */
};

/* Examines the first AOF_KIND_LOOK bytes, or fewer. NULL: unknown. */
const struct aof_kind *aof_kind_of(struct rd_slice head);

#endif
