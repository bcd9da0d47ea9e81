/* merge.h - merges several snapshots into one.
 *
 *     struct rd_sink *out = NULL;
 *     struct filter filter;
 *     struct job_input inputs[] = {{.path = "a.rdb"}, {.path = "b.rdb"}};
 *     struct merge_opts opts = {.inputs = inputs, .n_inputs = 2, .policy = MERGE_FIRST,
 *                               .filter = &filter};
 *     struct merge_result result = {0};
 *     filter_init(&filter, now_ms);
 *     bool ok = rd_sink_open_file(&out, "all.rdb", NULL, &err);
 *     opts.out = out;
 *     ok = ok && merge_run(&opts, watch, &result, &err) && !result.refused;
 *     if (!ok)
 *         rd_sink_abort(out);
 *     ok = ok && rd_sink_close(out, &err);
 *     merge_result_done(&result);
 *     filter_done(&filter);
 *
 * The first pass computes a 128-bit hash for every key and sorts the hashes on disk, which shows
 * the keys that occur in two inputs. The second pass writes all that is not omitted. Memory does
 * not grow with the number of keys.
 *
 * Errors: those of rdb/reader.h and rdb/writer.h; RD_ERR_IO: an input changed between the passes;
 * RD_ERR_USAGE: the inputs are snapshots of both Redis and Valkey, and no version is given.
 */
#ifndef JOBS_MERGE_H
#define JOBS_MERGE_H

#include "data/filter.h"
#include "jobs/input.h"
#include "jobs/omitted.h"
#include "rdb/content.h"

enum { MERGE_MAPS_MAX = 256, MERGE_VERSION_MAX = 999 };

/* Which of two keys, or functions, of one name is in the output. */
enum merge_policy { MERGE_FIRST, MERGE_LAST, MERGE_FAIL };

/* Moves the keys of a database. */
struct merge_map {
    size_t input; /* from 1; 0: any */
    uint64_t from;
    uint64_t to;
};

struct merge_maps {
    struct merge_map map[MERGE_MAPS_MAX];
    size_t n;
};

struct merge_opts {
    const struct job_input *inputs;
    size_t n_inputs;
    struct rd_sink *out; /* the caller closes it, or aborts it */
    int policy;          /* enum merge_policy */
    uint64_t version;    /* of the output; 0: the newest of the inputs */
    bool lossy;          /* leave out what the version cannot hold */
    struct merge_maps maps;
    const struct filter *filter;
    uint8_t key[RD_SIPHASH_KEY]; /* random */
    struct omitted *omitted;     /* takes what is left out; may be NULL */
};

/* What an input had. */
struct merge_count {
    enum rdb_dialect dialect;
    int version;
    uint64_t seen; /* keys that the filter wants */
    uint64_t keys; /* of them, in the output */
};

struct merge_result {
    bool refused; /* MERGE_FAIL, and there are conflicts: nothing was written */
    bool is_void; /* no key matches the filter: the output is not to be used */
    uint64_t conflicts, function_conflicts;
    enum rdb_dialect dialect; /* of the output, and its version */
    int version;
    uint64_t keys;
    struct merge_count *inputs;
    size_t n_inputs;
};

/* ret is zeroed by the caller, who calls merge_result_done() in any case. With MERGE_FAIL, the
 * watch gets a warning for each of the first conflicts. Everything in the options is borrowed. */
bool merge_run(const struct merge_opts *opts, const struct rd_watch *watch,
               struct merge_result *ret, struct rd_err *err);
void merge_result_done(struct merge_result *result);

/* "[IN:]FROM=TO": for an option of a tool; ctx is the struct merge_maps. RD_ERR_USAGE. */
bool merge_maps_add(void *ctx, const char *value, struct rd_err *err);

#endif
