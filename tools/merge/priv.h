/* priv.h - private to merge*.c.
 *
 *     merge.c          options, the order of things, the report
 *     tools/merge/scan.c     first pass: which keys and functions there are, and which of them lose
 *     tools/merge/write.c    second pass: everything else goes to the output
 *
 * The first pass notes a hash of 128 bits for every key, sorts them on disk, and so finds what is
 * in two inputs. Keys that lose are sorted by where they stand, so that the second pass meets them
 * in that order.
 */
#ifndef TOOLS_MERGE_PRIV_H
#define TOOLS_MERGE_PRIV_H

#include "rdb/content.h"
#include "rdb/writer.h"
#include "tools/input/again.h"
#include "tools/cli/filter.h"
#include "tools/input/sort.h"

enum { MERGE_MEMORY = 16 << 20, MERGE_EXAMPLES = 5, MERGE_MAPS_MAX = 256, MERGE_LIB_NAME = 128 };

enum merge_policy { MERGE_FIRST, MERGE_LAST, MERGE_FAIL };

struct merge_input {
    const char *path;
    struct again in; /* open between the passes only where it was set aside */
    bool kept;
    enum rdb_dialect dialect;
    int version;
    uint64_t sum;  /* the checksum in the file, to find it changed */
    uint64_t seen; /* keys in it that are wanted */
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
    char name[MERGE_LIB_NAME];
    struct rd_hash128 code;
    bool drop;
};

/* Where a key stands that is in two inputs. */
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
    const char *out_path;
    int policy; /* enum merge_policy */
    uint64_t version;
    bool lossy;
    bool force;
    struct filter filter;
    struct compact_opts log;
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
    struct merge_conflict examples[MERGE_EXAMPLES]; /* in the order of their second places */
    size_t n_examples;

    /* The second pass. */
    enum rdb_dialect dialect;
    int target; /* version */
    struct rd_sink *out;
    struct rdb_writer *writer;
    uint8_t loser[12]; /* the next key to be left out */
    bool has_loser;
    uint64_t db;   /* that was selected, or RDB_UNKNOWN */
    bool dropping; /* the record that is under way */
    uint64_t total;
    bool is_void;      /* no key matches the filter: nothing is written */
    uint64_t left_out; /* records of modules and of slots, of all inputs but the first */
};

/* "[IN:]FROM=TO"; for CLI_EACH. */
bool merge_add_map(void *ctx, const char *value, struct rd_err *err);

/* The database in the output. */
uint64_t merge_map_db(const struct merge *merge, size_t input, uint64_t db);

/* The first pass over all inputs, which finds what loses. */
bool merge_scan(struct merge *merge, struct rd_err *err);

/* Opens an input for a pass over it. */
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
