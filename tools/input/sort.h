/* sort.h - sorts more records than fit in memory.
 *
 * A record is a key and a value, both bytes; they come out in the order of their keys (as memcmp()
 * has it, a shorter one first), and of their values where keys are equal. What does not fit in the
 * memory that was granted goes, sorted, to a file without a name (spool.h) and is merged from
 * there.
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
 * Disk: the size of all records and eight bytes more for each; twice that where there are so many
 * that the pieces are merged in several rounds. Time: O(n log n) comparisons.
 */
#ifndef TOOLS_INPUT_SORT_H
#define TOOLS_INPUT_SORT_H

#include "base/buf.h"
#include "tools/input/spool.h"

enum { SORT_RECORD_MAX = 4000, SORT_MEMORY_MIN = 64 * 1024 };

struct sort_run;

struct sort {
    size_t memory;
    uint8_t *arena;     /* records from its beginning, their index from its end */
    size_t used;        /* by records */
    size_t n;           /* records in the arena */
    size_t next;        /* of them, to be given out */
    struct rd_buf ends; /* where each sorted run ends in the spool: uint64_t */
    struct spool spool;
    struct sort_run *heap; /* runs that are being merged, the smallest record's first */
    size_t n_heap;
    bool given; /* the first run's record was given out */
};

/* memory: what records and index may take, SORT_MEMORY_MIN or more. */
bool sort_init(struct sort *sort, size_t memory, struct rd_err *err);

/* Both are copied; together at most SORT_RECORD_MAX bytes. */
bool sort_add(struct sort *sort, struct rd_slice key, struct rd_slice value, struct rd_err *err);

/* After the last record. */
bool sort_begin(struct sort *sort, struct rd_err *err);

/* The next record, which lives until the next call, or *ret_end. */
bool sort_next(struct sort *sort, struct rd_slice *ret_key, struct rd_slice *ret_value,
               bool *ret_end, struct rd_err *err);

/* Makes room for another use after sort_init(). A zeroed struct is allowed. */
void sort_done(struct sort *sort);

#endif
