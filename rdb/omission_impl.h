/* omission_impl.h - counts what is left out; private to rdb/. */
#ifndef RDB_OMISSION_IMPL_H
#define RDB_OMISSION_IMPL_H

#include "rdb/event.h"
#include "rdb/omission.h"

enum { RDB_IDMP_DURATION_S = 100, RDB_IDMP_MAX_ENTRIES = 100 };

/* Whether these are the settings that a stream has by default. No server accepts 0. */
static inline bool rdb_idmp_is_default(const struct rdb_event *idmp)
{
    return (idmp->idmp.duration == RDB_IDMP_DURATION_S &&
            idmp->idmp.max_size == RDB_IDMP_MAX_ENTRIES) ||
           (idmp->idmp.duration == 0 && idmp->idmp.max_size == 0);
}

void rdb_omitted_count(struct rdb_omitted_counts *counts, enum rdb_omitted what);

#endif
