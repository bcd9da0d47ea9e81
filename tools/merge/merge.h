/* merge.h - private to tools/merge.
 *
 *     merge.c   options, the sequence of steps, and the report
 *     scan.c    first pass: finds keys and functions that occur in two inputs
 *     write.c   second pass: writes everything that is not omitted
 *
 * The first pass computes a 128-bit hash for every key and sorts the hashes on disk, which shows
 * the keys that occur in two inputs. The keys to omit are sorted by position, in the order of the
 * second pass.
 */
#ifndef TOOLS_MERGE_MERGE_H
#define TOOLS_MERGE_MERGE_H

#include "rdb/beside.h"
#include "rdb/content.h"
#include "rdb/writer.h"
#include "tools/input/again.h"
#include "jobs/omitted.h"
#include "tools/cli/filter.h"
#include "data/sort.h"

enum { MERGE_MEMORY = 16 << 20, MERGE_EXAMPLES = 5, MERGE_MAPS_MAX = 256 };

enum merge_policy { MERGE_FIRST, MERGE_LAST, MERGE_FAIL };

struct merge_input {
    const char *path;
    struct again in; /* open between the passes only if it is a spool */
    bool kept;
    enum rdb_dialect dialect;
    int version;
    uint64_t sum;  /* the checksum of the file, to detect a change */
    uint64_t seen; /* selected keys in it */
    uint64_t keys; /* of them, in the output */
};

/* --db-map */
struct merge_map {
    size_t input; /* 0: any */
    uint64_t from;
    uint64_t to;
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
    struct cli *cli;
    struct rd_watch watch; /* that of cli */
    const char *out_path;
    int policy; /* enum merge_policy */
    uint64_t version;
    bool lossy;
    bool force;
    struct filter filter;
    struct snapshot_in_opts log;
    struct merge_map maps[MERGE_MAPS_MAX];
    size_t n_maps;

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
    struct rd_sink *out;
    struct rdb_writer *writer;
    uint8_t loser[12]; /* the next key to omit */
    bool has_loser;
    uint64_t db;   /* selected, or RDB_UNKNOWN */
    bool dropping; /* the current record */
    struct rdb_beside beside;
    uint64_t total;
    bool is_void; /* no key matches the filter: nothing is written */
    struct omitted omitted;
};

/* "[IN:]FROM=TO"; for CLI_EACH. */
bool merge_add_map(void *ctx, const char *value, struct rd_err *err);

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
