/* merge_impl.h - private to jobs/merge*.c.
 *
 *     merge.c         the sequence of steps, and the result
 *     merge_scan.c    first pass: finds keys and functions that occur in two inputs
 *     merge_write.c   second pass: writes everything that is not omitted
 *
 * The keys to omit are sorted by position, in the order of the second pass.
 */
#ifndef JOBS_MERGE_IMPL_H
#define JOBS_MERGE_IMPL_H

#include "data/sort.h"
#include "jobs/again.h"
#include "jobs/merge.h"
#include "rdb/beside.h"
#include "rdb/writer.h"

enum { MERGE_MEMORY = 16 << 20, MERGE_EXAMPLES = 5 };

struct merge_input {
    const struct job_input *input;
    struct again in; /* open between the passes only if it is a spool */
    bool kept;
    struct merge_count count;
    uint64_t sum; /* the checksum of the file, to detect a change */
};

/* A library of functions. */
struct merge_lib {
    size_t input;
    uint64_t offset;
    bool named; /* the first line has a name */
    struct rd_hash128 name;
    struct rd_hash128 code;
    bool drop;
};

/* The position of a key that occurs in two inputs. */
struct merge_place {
    size_t input;
    uint64_t record;
    uint64_t db; /* in the input */
};

struct merge_conflict {
    struct merge_place first;
    struct merge_place again;
};

struct merge {
    const struct merge_opts *opts;
    const struct rd_watch *watch;

    struct merge_input *inputs;
    size_t n_inputs;
    struct rdb_content_opts hashing;
    struct sort keys;   /* hash -> input, record, db */
    struct sort losers; /* input, record */
    struct rd_buf libs; /* struct merge_lib */
    struct rd_siphash code;
    uint64_t conflicts;
    uint64_t lib_conflicts;
    struct merge_conflict examples[MERGE_EXAMPLES]; /* in the order of the second occurrence */
    size_t n_examples;

    /* The second pass. */
    enum rdb_dialect dialect;
    int target; /* version */
    struct rdb_writer *writer;
    uint8_t loser[12]; /* the next key to omit */
    bool has_loser;
    uint64_t db;   /* selected, or RDB_UNKNOWN */
    bool dropping; /* the current record */
    struct rdb_beside beside;
    uint64_t total;
};

/* The database in the output. */
uint64_t merge_map_db(const struct merge *merge, size_t input, uint64_t db);

/* The first pass over all inputs, which finds the keys to omit. */
bool merge_scan(struct merge *merge, struct rd_err *err);

/* Opens an input for a pass. */
bool merge_open(struct merge *merge, struct merge_input *input, struct rd_err *err);

/* The second pass. */
bool merge_write(struct merge *merge, struct rd_err *err);

static inline struct merge_lib *merge_libs(const struct merge *merge, size_t *ret_n)
{
    void *libs = merge->libs.ptr;
    *ret_n = merge->libs.len / sizeof(struct merge_lib);
    return libs;
}

#endif
