/* diff_impl.h - private to jobs/diff*.c.
 *
 *     diff.c          the sequence of steps
 *     diff_read.c     reads both sides into records
 *     diff_scan.c     joins the records and collects the differences
 *     diff_names.c    gives the differences in the order of their names
 *     diff_value.c    compares two values part by part
 *     diff_group.c    two consumer groups with the same counts
 */
#ifndef JOBS_DIFF_IMPL_H
#define JOBS_DIFF_IMPL_H

#include "data/sort.h"
#include "jobs/again.h"
#include "jobs/diff.h"

enum {
    DIFF_MEMORY = 20 << 20,
    DIFF_NAME_SORTED = 1024,
    DIFF_FOUND_KEY_LEN = 18,
    DIFF_FOUND_LEN = 9 + 2 * DIFF_FOUND_KEY_LEN
};

struct diff_record {
    uint8_t hash[RD_HASH128_LEN]; /* of database and name */
    uint64_t db;
    struct diff_key key;
};

struct diff {
    const struct diff_opts *opts;
    const struct rd_watch *watch;
    struct again in[2];
    struct rdb_content_opts hashing;
    uint64_t key_tolerance_ms; /* of keys: some servers report their expiry approximately */
    bool stored;               /* the records are about bytes, not about contents */
    struct sort keys[2];       /* hash -> record */
    struct sort closer[2];     /* position of a key whose content is compared -> hash */
    uint64_t n_closer;
    struct sort found; /* position of the key -> difference */
    struct sort named; /* database, name -> difference */
    struct sort parts; /* of two values: kind, name -> side, part */
    struct diff_counts counts;
    uint64_t n_functions[2];
    struct rd_hash128 functions[2];
    int64_t due_ms[2];
    uint64_t n_due;
    bool no_functions; /* do not compare functions */
    bool functions_differ;
    struct rd_buf name; /* of the key that is given */
};

/* The records of both sides, to be taken with diff_next_record() in the order of their
 * hashes. The second function reads the contents of those that diff_read_closer() collected. */
bool diff_read(struct diff *diff, struct rd_err *err);
bool diff_read_closer(struct diff *diff, enum diff_side side, const uint8_t *hash,
                      const struct diff_found *found, struct rd_err *err);
bool diff_read_contents(struct diff *diff, struct rd_err *err);
bool diff_next_record(struct diff *diff, enum diff_side side, struct diff_record *ret,
                      bool *ret_end, struct rd_err *err);
void diff_read_done(struct diff *diff);

/* Reads both sides and finds the differences. Counts them, except those that need a closer look
 * (diff_must_look). */
bool diff_scan(struct diff *diff, struct rd_err *err);

/* Counts a difference after the closer look. */
void diff_count_looked(struct diff *diff, const struct diff_found *found);

void diff_found_put(uint8_t dst[DIFF_FOUND_LEN], const struct diff_found *found);

/* Calls each() for every difference, by database and name. `name` is valid during the call. */
typedef bool (*diff_each_fn)(struct diff *diff, struct diff_found *found, struct rd_slice name,
                             struct rd_err *err);
bool diff_names_each(struct diff *diff, diff_each_fn each, struct rd_err *err);

/* Whether values may be equal although their hashes differ: with a tolerance for the expiry times
 * of fields. */
bool diff_must_look(const struct diff *diff, const struct diff_found *found);

/* Whether a key or field on one side only, with this expiry, is due: see judge_due. */
bool diff_is_due(const struct diff *diff, enum diff_side side, int64_t expire_ms);

bool diff_same_expiry(const struct diff *diff, int64_t a, int64_t b);
/* The same for keys: some servers report their expiry approximately. */
bool diff_same_key_expiry(const struct diff *diff, int64_t a, int64_t b);

/* Compares two values of one kind; with opts->values also collects the texts. The caller frees
 * *ret with diff_value_done(), also after a failure. */
bool diff_value_compare(struct diff *diff, const struct diff_found *found, struct diff_value *ret,
                        struct rd_err *err);
/* Puts the first difference of the pending entries before the texts of two groups of a
 * stream, if these texts are the same. */
bool diff_group_texts(struct diff *diff, const struct diff_found *found, struct diff_part *part,
                      struct rd_err *err);
void diff_value_done(struct diff_value *value);

#endif
