/* huge.h - a bitmap of a few bytes can be a string of 512 MiB, which no run should make. */
#ifndef TESTS_FUZZ_HUGE_H
#define TESTS_FUZZ_HUGE_H

#include "rdb/event.h"

enum { HUGE_STRING = 256 << 10 };

/* Whether such a string begins or continues. */
static inline bool is_huge(const struct rdb_event *ev)
{
    return ev->kind == RDB_ELEM && ev->elem.role == RDB_ROLE_STRING &&
           ev->elem.str.total > HUGE_STRING;
}

#endif
