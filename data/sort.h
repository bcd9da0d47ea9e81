/* sort.h - sorts more records than fit in memory.
 *
 * A record is a key and a value, both bytes. Records are returned in the order of their keys (as by
 * memcmp(), shorter first), and of their values if keys are equal. Records that exceed the memory
 * limit are written to a spool (spool.h) in sorted runs, which are then merged.
 *
 *     struct sort sort = {0};
 *     struct rd_slice key, value;
 *     bool end;
 *     ok = sort_init(&sort, 16 << 20, &err) && sort_add(&sort, key, value, &err) && …;
 *     ok = ok && sort_begin(&sort, &err);
 *     while ((ok = ok && sort_next(&sort, &key, &value, &end, &err)) && !end)
 *         ...
 *     sort_done(&sort);
 *
 * Disk: the size of all records and eight bytes more for each; twice that if there are so many runs
 * that they are merged in several rounds. Time: O(n log n) comparisons.
 */
#ifndef DATA_SORT_H
#define DATA_SORT_H

#include "base/buf.h"
#include "data/spool.h"

enum { SORT_RECORD_MAX = 4000, SORT_MEMORY_MIN = 64 * 1024 };

struct sort_run;

struct sort {
    size_t memory;
    uint8_t *arena;     /* records from its beginning, their index from its end */
    size_t used;        /* by records */
    size_t n;           /* records in the arena */
    size_t next;        /* the next of them to return */
    struct rd_buf ends; /* the end of each sorted run in the spool: uint64_t */
    struct spool spool;
    struct sort_run *heap; /* runs that are being merged, with the smallest record first */
    size_t n_heap;
    bool given; /* the first run's record was returned */
};

/* memory: the limit for records and index, at least SORT_MEMORY_MIN. */
bool sort_init(struct sort *sort, size_t memory, struct rd_err *err);

/* Both are copied; together at most SORT_RECORD_MAX bytes. */
bool sort_add(struct sort *sort, struct rd_slice key, struct rd_slice value, struct rd_err *err);

/* Call after the last record. */
bool sort_begin(struct sort *sort, struct rd_err *err);

/* The next record, valid until the next call, or *ret_end. */
bool sort_next(struct sort *sort, struct rd_slice *ret_key, struct rd_slice *ret_value,
               bool *ret_end, struct rd_err *err);

/* Frees everything; sort_init() may follow. A zeroed struct is allowed. */
void sort_done(struct sort *sort);

#endif
