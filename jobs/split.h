/* split.h - splits a snapshot into snapshots that can be loaded separately.
 *
 *     struct filter filter;
 *     struct split_result result = {0};
 *     struct split_opts opts = {.input.path = "dump.rdb", .folder = "parts", .filter = &filter,
 *                               .rule = {.by = SPLIT_SLOTS}};
 *     filter_init(&filter, now_ms);
 *     bool ok = split_ranges(&opts.rule, "3", &err) && split_run(&opts, watch, &result, &err);
 *     for (size_t i = 0; ok && i < result.n_files; i++)
 *         printf("%s: %llu\n", result.files[i].name, (unsigned long long)result.files[i].keys);
 *     split_result_done(&result);
 *     filter_done(&filter);
 *
 * Everything before the keys (aux fields, functions, data of modules) is in every part, so that
 * each can be loaded alone. Values are copied as they are. The folder also gets index.json, which
 * lists the parts. All parts have temporary names until the whole input is read, and index.json
 * appears last: either all of them appear or none. A folder that was made is removed after a
 * failure.
 *
 * Memory: 64 KiB for each part, of which there are at most SPLIT_PARTS_MAX.
 * Errors: those of rdb/reader.h and base/sink.h; RD_ERR_UNSUPPORTED: no snapshot; RD_ERR_LIMIT: too
 * many parts.
 */
#ifndef JOBS_SPLIT_H
#define JOBS_SPLIT_H

#include "data/filter.h"
#include "jobs/input.h"
#include "jobs/omitted.h"
#include "json/write.h"

/* A sink can have 256 temporary files; some are reserved for index.json and others. */
enum { SPLIT_PARTS_MAX = 250, SPLIT_PARTS_DEFAULT = 200, SPLIT_NAME_MAX = 160 };

enum split_by {
    SPLIT_DB,
    SPLIT_SLOTS,
    SPLIT_PREFIX,
    SPLIT_SIZE,
    SPLIT_CRC32,
    SPLIT_RING,
    SPLIT_NOTHING
};

/* What the keys of a part have in common. */
enum split_of {
    SPLIT_OF_DB,
    SPLIT_OF_SLOTS,
    SPLIT_OF_PREFIX,
    SPLIT_OF_NUMBER,
    SPLIT_OF_SHARD,
    SPLIT_OF_NODE,
    SPLIT_OF_REST
};

struct split_range {
    unsigned first;
    unsigned last;
};

/* A point on the ring of CRC-32, and the part from there to the next point. */
struct split_point {
    uint32_t at;
    uint32_t part;
};

/* Points for each name on the ring. */
enum { SPLIT_POINTS = 160 };

/* The rule by which keys are split. */
struct split_rule {
    int by;                   /* enum split_by */
    uint64_t n_shards;        /* of crc32: the divisor; of ring: the nodes */
    const char *names;        /* of the nodes on the ring, separated by commas */
    struct split_point *ring; /* ascending */
    size_t n_points;
    struct split_range ranges[SPLIT_PARTS_MAX];
    size_t n_ranges;
    struct rd_slice separator; /* of prefix: not empty */
    uint64_t depth;            /* of prefix: at least 1 */
    uint64_t size;
    uint64_t max_parts; /* of prefix: less than SPLIT_PARTS_MAX */
};

struct split_opts {
    struct job_input input;
    struct split_rule rule;
    const char *folder; /* made if it does not exist */
    bool replace;       /* files that exist */
    const struct filter *filter;
    /* Sets mode and owner of a file that is written. NULL: only the owner may read it. */
    void (*access)(void *ctx, const char *path, struct rd_sink_opts *opts);
    void *ctx;
    struct omitted *omitted; /* takes what a filter omits with its keys; NULL: nothing does */
};

/* A part, as a file. */
struct split_file {
    char name[SPLIT_NAME_MAX + 16]; /* without folder */
    enum split_of of;
    uint64_t first;       /* database, first slot, remainder or number */
    uint64_t last;        /* slot */
    struct rd_buf prefix; /* or the name of the node */
    uint64_t keys;
    uint64_t bytes;
};

struct split_result {
    enum split_by by;
    enum rdb_dialect dialect;
    int version;
    uint64_t keys;
    struct split_file *files;
    size_t n_files;
    bool crowded; /* keys are in other.rdb because there are too many prefixes */
    bool is_void; /* no key matches the filter: nothing was written, and there are no files */
};

/* ret is zeroed by the caller, who calls split_result_done() in any case. The options and what they
 * refer to are borrowed. O(input), in one pass, and a second one if the input has no checksum. */
bool split_run(const struct split_opts *opts, const struct rd_watch *watch,
               struct split_result *ret, struct rd_err *err);
void split_result_done(struct split_result *result);

/* The members of index.json that describe the result, into the open object. */
void split_result_put(const struct split_result *result, struct json_write *json);

/* The word of --by and index.json: db, slot-range, prefix, size, crc32, ring. */
const char *split_by_word(enum split_by by);

/* Parses "3" (that many equal ranges) or "0-5460,5461-10922". The ranges of a number are those that
 * redis-cli --cluster create assigns to that many masters. RD_ERR_USAGE: invalid text, overlapping
 * ranges, or more than SPLIT_PARTS_MAX. */
bool split_ranges(struct split_rule *rule, const char *text, struct rd_err *err);

/* Makes the ring of the names: RD_ERR_USAGE if one is empty or exists twice, or there are too many.
 * split_ring_done() frees it. */
bool split_ring(struct split_rule *rule, struct rd_err *err);
void split_ring_done(struct split_rule *rule);

#endif
