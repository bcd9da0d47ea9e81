/* diff.h - compares the data of two snapshots, regardless of encodings.
 *
 *     static void each(void *ctx, const struct diff_found *found, struct rd_slice name,
 *                      const struct diff_value *value);
 *
 *     struct filter filter;
 *     struct diff_result result = {0};
 *     struct diff_opts opts = {.input = {{.path = "a.rdb"}, {.path = "b.rdb"}},
 *                              .name = {"a.rdb", "b.rdb"}, .filter = &filter, .each = each};
 *     filter_init(&filter, now_ms);
 *     if (diff_run(&opts, watch, &result, &err))
 *         printf("%s\n", diff_differs(&result) ? "different" : "the same");
 *     filter_done(&filter);
 *
 * A record of a key is a hash of database and name, a hash of its value, its type, its expiry and
 * its position. The records are sorted on disk. The first pass hashes the bytes in which a value is
 * stored; values whose bytes differ are read again and compared by content (rdb/content.h). Names
 * are read again only for keys that differ. Memory does not grow with the number of keys.
 *
 * Threads: each side is read by a thread of its own. The functions of the options are called by the
 *   thread that calls diff_run().
 * Errors: those of rdb/reader.h; RD_ERR_IO: an input changed while it was read.
 */
#ifndef JOBS_DIFF_H
#define JOBS_DIFF_H

#include "data/filter.h"
#include "jobs/input.h"
#include "rdb/content.h"

enum {
    DIFF_ELEMENTS_DEFAULT = 10,
    DIFF_ELEMENTS_MAX = 1000,
    DIFF_TEXT_MAX = 200 /* bytes of an element that are shown */
};

enum diff_side { DIFF_A, DIFF_B };

enum diff_flag { DIFF_TYPE = 1, DIFF_EXPIRY = 2, DIFF_VALUE = 4 };

/* One key on one side. */
struct diff_key {
    bool present;
    enum rdb_kind kind;
    int64_t expire_ms;
    uint64_t record;
    struct rd_hash128 content; /* of the bytes of the value, or of its content */
};

/* A key that differs between the sides. */
struct diff_found {
    uint64_t db;
    struct diff_key key[2];
    unsigned flags; /* enum diff_flag; set if both are present */
};

/* A part of a value that differs between the sides. */
struct diff_part {
    enum rdb_part_kind kind;
    bool present[2];
    uint64_t index[2]; /* in the values */
    int64_t expire_ms[2];
    bool expiry_only;
    /* With --values: the first bytes of its name and of its content. */
    struct rd_buf name;
    struct rd_buf text[2];
    bool name_cut;
    bool text_cut[2];
};

/* The result of comparing two values. */
struct diff_value {
    uint64_t changed;
    uint64_t only[2];
    uint64_t n_parts[2];
    uint64_t bytes[2]; /* strings: their lengths, and the first byte that differs */
    uint64_t first_byte;
    struct diff_part *parts; /* the first ones */
    size_t n_kept;
    struct rd_buf path; /* of a path hash, while it is read */
};

struct diff_counts {
    uint64_t keys[2];
    uint64_t only[2];
    uint64_t expired[2]; /* of these: keys that have expired, which servers drop */
    uint64_t different;
    uint64_t type;
    uint64_t expiry;
    uint64_t value;
};

/* What is known of a side when its input is open, for those that are no files. */
struct diff_facts {
    uint64_t tolerance_ms; /* its expiry times are that approximate */
    bool no_functions;     /* they could not be read */
};

struct diff_opts {
    struct job_input input[2];
    const char *name[2];               /* of the sides, in the progress */
    const struct diff_facts *facts[2]; /* read when both sides are open; may be NULL */
    const struct filter *filter;       /* with a filter, functions are not compared */
    bool fast;                         /* do not read values a second time */
    bool values; /* collect the parts of values that differ, at most max_elements of a key */
    bool ignore_expire;
    uint64_t tolerance_ms; /* expiry times that are at most so far apart are equal */
    uint64_t max_elements;
    /* A key or field that is on one side only is not a difference if it expires there when both
     * sides are open, or before: it has expired since. Of A this time is shift_ms earlier. */
    bool judge_due;
    int64_t shift_ms;
    int64_t (*now_ms)(void);     /* the clock; needed for judge_due only */
    uint8_t key[RD_SIPHASH_KEY]; /* random */
    /* Called once, when the differences were found and before the first is given; may be NULL. */
    bool (*begin)(void *ctx, struct rd_err *err);
    /* Called for every difference, by database and name. name and value are valid during the call;
     * value is NULL if the values were not compared. NULL: the differences are only counted. Then
     * begin() is not called, and values are not compared again unless tolerance_ms demands it. */
    void (*each)(void *ctx, const struct diff_found *found, struct rd_slice name,
                 const struct diff_value *value);
    void *ctx;
};

struct diff_result {
    struct diff_counts counts;
    uint64_t n_functions[2];
    bool functions_differ;
    uint64_t n_due; /* keys that were ignored because they are due */
    bool is_void;   /* there is a filter that no key of either side matches */
};

/* ret is written on success. Everything in the options is borrowed. An input that is opened may set
 * its path, its name and its facts. */
bool diff_run(const struct diff_opts *opts, const struct rd_watch *watch, struct diff_result *ret,
              struct rd_err *err);

bool diff_differs(const struct diff_result *result);

/* Whether a key has expired. Servers drop such keys when they load them or later. */
bool diff_is_expired(const struct filter *filter, const struct diff_key *key);

#endif
