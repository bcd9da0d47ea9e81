/* pattern.h - sums keys and memory by the pattern of their names, in bounded memory.
 *
 *     struct stat_patterns tree;
 *     if (!stat_patterns_init(&tree, separator, false, &err))
 *         ...
 *     stat_patterns_add(&tree, &noted);       ... every key
 *     stat_patterns_leaves(&tree, &list, &n, &err);   ... the largest first
 *     name = stat_pattern_name(&tree, list[0].at, buffer);
 *     stat_patterns_done(&tree);
 *
 * A name is split at the separators. In each part, what looks like an id is replaced: digits by
 * {n}, a UUID by {uuid}, at least eight hexadecimal digits by {hex}, a long mixture of letters and
 * digits by {id}. "user:17:roles" and "user:18:roles" are both "user:{n}:roles". If the original
 * text of a part is the same in all keys of a pattern, it is shown instead.
 *
 * The parts form a tree. A node with too many children (STAT_PATTERN_WIDTH) keeps those with a
 * tenth of its memory and merges the others into the child "*". If the tree is full, narrower and
 * then flatter trees are made. Merging adds figures, so that all of them are exact.
 */
#ifndef STAT_PATTERN_H
#define STAT_PATTERN_H

#include "stat/detail.h"

enum {
    STAT_PATTERN_CAP = 8192,
    STAT_PATTERN_DEPTH = 8,      /* levels below the root */
    STAT_PATTERN_WIDTH = 64,     /* children of one kind */
    STAT_PATTERN_ROOT_MAX = 512, /* … of the root, with a separator */
    STAT_PATTERN_PART_MAX = 64,  /* bytes of a part; a longer one is "*" */
    STAT_PATTERN_NAME_MAX = (STAT_PATTERN_DEPTH + 1) * STAT_PATTERN_PART_MAX
};

struct stat_pattern_part {
    uint8_t len;
    uint8_t bytes[STAT_PATTERN_PART_MAX];
};

struct stat_pattern {
    uint64_t hash;
    uint64_t keys, expires, elements, memory;
    struct stat_share was;  /* before stat_patterns_continue() */
    uint32_t parent;        /* index; the root is its own parent */
    uint32_t child, next;   /* 0: none, the root is never a child */
    uint32_t n_children[2]; /* that end with a separator, and that do not */
    bool folded[2];         /* some of them are merged into "*" */
    bool used, leaf, star, varies;
    uint8_t level;
    uint32_t detail;
    struct stat_pattern_part text;  /* normalised, with the separator */
    struct stat_pattern_part first; /* of the first key */
};

struct stat_patterns {
    struct rd_slice separator; /* borrowed */
    struct stat_pattern *rows; /* STAT_PATTERN_CAP; rows[0] is the root, with all keys */
    uint32_t *slots;           /* index + 1 into rows, by hash */
    uint32_t *unused;
    size_t n_unused;
    struct stat_details details;
    unsigned width;   /* of nodes below the root */
    unsigned deepest; /* level */
};

/* The memory in both snapshots. */
static inline uint64_t stat_pattern_most(const struct stat_pattern *row)
{
    return row->memory + row->was.memory;
}

/* details: also keep what detail.h describes. */
bool stat_patterns_init(struct stat_patterns *tree, struct rd_slice separator, bool details,
                        struct rd_err *err);
void stat_patterns_done(struct stat_patterns *tree);

void stat_patterns_add(struct stat_patterns *tree, struct stat_noted *noted);

/* The keys added from now on are those of another snapshot. Figures become row->was. */
void stat_patterns_continue(struct stat_patterns *tree);

/* A leaf, with the memory in both snapshots. */
struct stat_pattern_leaf {
    uint64_t memory;
    uint32_t at; /* in rows */
};

/* Returns the leaves by memory, the largest first, as memory that the caller frees. Each key
 * belongs to one leaf. */
bool stat_patterns_leaves(const struct stat_patterns *tree, struct stat_pattern_leaf **ret,
                          size_t *ret_n, struct rd_err *err);

/* Calls each for the `max` largest leaves; *ret_more is the number of the others. */
bool stat_patterns_largest(const struct stat_patterns *tree, size_t max,
                           void (*each)(void *ctx, const struct stat_pattern *row,
                                        struct rd_slice name),
                           void *ctx, size_t *ret_more, struct rd_err *err);

/* The text of a node without and with its parents. */
struct rd_slice stat_pattern_part(const struct stat_pattern *row);
struct rd_slice stat_pattern_name(const struct stat_patterns *tree, uint32_t at,
                                  uint8_t dst[STAT_PATTERN_NAME_MAX]);

/* Writes a part with its ids replaced. False: it does not fit. */
bool stat_pattern_normalise(struct rd_slice part, struct stat_pattern_part *ret);

#endif
