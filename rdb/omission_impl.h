/* omission_impl.h - counts what is left out; private to rdb/. */
#ifndef RDB_OMISSION_IMPL_H
#define RDB_OMISSION_IMPL_H

#include "rdb/omission.h"

void rdb_omitted_count(struct rdb_omitted_counts *counts, enum rdb_omitted what);

#endif
