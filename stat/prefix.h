/* prefix.h - sums keys and memory by prefix of the key name, in bounded memory.
 *
 *     struct stat_prefixes table;
 *     if (!stat_prefixes_init(&table, rd_slice_str(":"), depth, details, &err))
 *         ...
 *     stat_prefixes_add(&table, &noted);      // every key
 *     stat_prefixes_sort(&table);             // rows: the largest first
 *     stat_prefixes_done(&table);
 *
 * A prefix ends with a separator: "user:1:name" has the prefixes "user:" and "user:1:", up to
 * `depth` levels. When the table is full, the half with the least memory is dropped. A dropped
 * prefix may occur again: it is then counted from zero, and `missed` is the upper bound of the
 * bytes that were dropped. So the true figure is between `memory` and `memory + missed`, and a
 * prefix that is not in the table takes at most table.floor.
 */
#ifndef STAT_PREFIX_H
#define STAT_PREFIX_H

#include "stat/detail.h"

enum {
    STAT_PREFIX_DEPTH_MAX = 16,
    STAT_PREFIX_NAME_MAX = 256, /* bytes; a longer prefix counts for its parent only */
    STAT_PREFIX_CAP = 8192
};

struct stat_prefix {
    uint64_t hash;
    uint64_t db;
    uint32_t name_at; /* in the table's names */
    uint16_t name_len;
    uint16_t level; /* 1: up to the first separator */
    uint64_t keys;
    uint64_t expires;
    uint64_t elements;
    uint64_t memory;
    uint64_t missed;
    uint64_t lasting;      /* memory of the keys that do not expire */
    struct stat_share was; /* before stat_prefixes_continue() */
    uint32_t detail;
    uint64_t of_kind[RDB_KIND_COUNT]; /* memory */
};

struct stat_prefixes {
    struct rd_slice separator; /* borrowed; empty: prefixes are not counted */
    unsigned depth;
    struct stat_prefix *rows; /* STAT_PREFIX_CAP */
    size_t n;
    uint32_t *slots; /* index + 1 into rows, by hash */
    uint8_t *names;
    size_t names_len, names_cap;
    uint64_t floor;
    struct stat_details details;
};

/* details: also keep what detail.h describes. */
bool stat_prefixes_init(struct stat_prefixes *table, struct rd_slice separator, unsigned depth,
                        bool details, struct rd_err *err);
void stat_prefixes_done(struct stat_prefixes *table);

/* Amortized O(length of the name). */
void stat_prefixes_add(struct stat_prefixes *table, struct stat_noted *noted);

/* The keys added from now on are those of another snapshot. Figures become row->was. The memory
 * that a row missed may be of either snapshot. */
void stat_prefixes_continue(struct stat_prefixes *table);

static inline struct rd_slice stat_prefix_name(const struct stat_prefixes *table,
                                               const struct stat_prefix *row)
{
    return rd_slice(table->names + row->name_at, row->name_len);
}

/* Sorts the rows by memory, the largest first; no key may be added afterwards. If rows were
 * dropped, also removes the rows that are not larger than a dropped one may be. */
void stat_prefixes_sort(struct stat_prefixes *table);

#endif
