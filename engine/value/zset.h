/* zset.h - sorted set values: LISTPACK while they are small, else SKIPLIST.
 *
 *     struct engine_value v = engine_zset_new(config, 1, member.len);
 *     double score = 2.5;
 *     engine_zset_add(&v, config, 0, member, &score);
 *     struct engine_zset_cursor at;
 *     for (bool is = engine_zset_at(&v, 0, &at); is; is = engine_zset_next(&at))
 *         use(engine_zset_member(&at), engine_zset_score_at(&at));
 *     engine_value_free(&v);
 *
 *     LISTPACK    member, score, member, score … in their order; scores are integers where they are
 *                 whole and below 2^62, else text as "%.17g" writes it
 *     SKIPLIST    engine/value/skiplist.h, and a table of its nodes by member
 *
 * A set becomes a SKIPLIST when it gets more members than zset-max-listpack-entries or a longer one
 * than zset-max-listpack-value, and stays one. Members are shorter than 4 GiB.
 *
 * Operations that are logarithmic in a SKIPLIST of N members are linear in a LISTPACK, which is
 * short.
 */
#ifndef ENGINE_VALUE_ZSET_H
#define ENGINE_VALUE_ZSET_H

#include "engine/listpack.h"
#include "engine/table.h"
#include "engine/value.h"
#include "engine/value/skiplist.h"

struct engine_zset_loading;

struct engine_zset {
    struct engine_skiplist list;
    struct engine_table members; /* of the nodes of list */
    struct engine_zset_loading *loading;
};

/* An empty set, LISTPACK if the settings allow n members of up to len bytes. */
struct engine_value engine_zset_new(const struct engine_config *config, size_t n, size_t len);

/* An empty SKIPLIST, for results: engine_zset_settle() must follow. */
struct engine_value engine_zset_new_skiplist(void);

/* Converts a SKIPLIST to a LISTPACK if the settings allow it. */
void engine_zset_settle(struct engine_value *v, const struct engine_config *config);

/* Converts it to a SKIPLIST with room for n members. */
void engine_zset_become_skiplist(struct engine_value *v, size_t n);

uint64_t engine_zset_count(const struct engine_value *v);

/* ---- one member ---- */

/* How to add. INCR: the score is a difference; the others are conditions. */
enum {
    ENGINE_ZSET_NX = 1 << 0, /* only new members */
    ENGINE_ZSET_XX = 1 << 1, /* only existing members */
    ENGINE_ZSET_GT = 1 << 2, /* only if the score increases; new members in any case */
    ENGINE_ZSET_LT = 1 << 3, /* only if it decreases */
    ENGINE_ZSET_INCR = 1 << 4
};

enum engine_zset_done {
    ENGINE_ZSET_ADDED,
    ENGINE_ZSET_UPDATED,
    ENGINE_ZSET_SAME, /* the score is unchanged */
    ENGINE_ZSET_NOT,  /* a condition failed */
    ENGINE_ZSET_NAN   /* the result would be NaN; nothing was changed */
};

/* *score becomes that of the member, unless the result is NOT or NAN. It must not be NaN. */
enum engine_zset_done engine_zset_add(struct engine_value *v, const struct engine_config *config,
                                      unsigned how, struct rd_slice member, double *score);

/* False: no such member. */
bool engine_zset_score(const struct engine_value *v, struct rd_slice member, double *ret);
bool engine_zset_remove(struct engine_value *v, struct rd_slice member);
bool engine_zset_rank(const struct engine_value *v, struct rd_slice member, size_t *ret);

/* The SKIPLIST node of a member, or NULL; a new node for a member that does not exist. */
struct engine_skiplist_node *engine_zset_node(const struct engine_value *v, struct rd_slice member);
struct engine_skiplist_node *engine_zset_push(struct engine_value *v, double score,
                                              struct rd_slice member);

/* ---- members in their order ---- */

struct engine_zset_cursor {
    const struct engine_value *v;
    uint8_t *p;                        /* LISTPACK */
    struct engine_skiplist_node *node; /* SKIPLIST */
    char tmp[RD_NUM_I64_MAX];
};

/* The member of a rank. False: out of range. */
bool engine_zset_at(const struct engine_value *v, size_t rank, struct engine_zset_cursor *ret);

/* Constant time. False: the end; the cursor is then invalid. */
bool engine_zset_next(struct engine_zset_cursor *at);
bool engine_zset_prev(struct engine_zset_cursor *at);

/* The bytes are in the set or in the cursor. */
struct rd_slice engine_zset_member(struct engine_zset_cursor *at);
double engine_zset_score_at(const struct engine_zset_cursor *at);

/* Removes n members from a rank on; they must exist. */
void engine_zset_cut(struct engine_value *v, size_t rank, size_t n);

/* ---- ranges ---- */

enum engine_zset_bound { ENGINE_ZSET_TEXT, ENGINE_ZSET_LOWEST, ENGINE_ZSET_HIGHEST };

/* A range of scores, or of members (lex), whose order is that of the set if all scores are equal.
 * If they are not, the range of a LISTPACK is the result of a search from its first member on, that
 * of a SKIPLIST another one. */
struct engine_zset_range {
    bool lex;
    bool min_open; /* min itself is excluded */
    bool max_open;
    double min;
    double max;
    enum engine_zset_bound min_bound; /* lex: LOWEST and HIGHEST are "-" and "+" */
    enum engine_zset_bound max_bound;
    struct rd_slice min_text;
    struct rd_slice max_text;
};

/* The first or last member of the range. False: the range is empty. */
bool engine_zset_first_in(const struct engine_value *v, const struct engine_zset_range *range,
                          struct engine_zset_cursor *ret);
bool engine_zset_last_in(const struct engine_value *v, const struct engine_zset_range *range,
                         struct engine_zset_cursor *ret);

/* Whether the member at the cursor is not before the range, or not after it. */
bool engine_zset_from_min(const struct engine_zset_range *range, struct engine_zset_cursor *at);
bool engine_zset_to_max(const struct engine_zset_range *range, struct engine_zset_cursor *at);

/* The number of members, and the rank of the first (0 if there are none). */
size_t engine_zset_count_in(const struct engine_value *v, const struct engine_zset_range *range,
                            size_t *ret_rank);

/* ---- scores as they are stored ---- */

enum { ENGINE_ZSET_SCORE_MAX = 32 };

/* "%.17g", or "inf" and "-inf". Returns the length. */
size_t engine_zset_put_score(char dst[ENGINE_ZSET_SCORE_MAX], double score);

/* ---- private to zset*.c ---- */

/* The score of the LISTPACK member at p. */
double engine_zset_lp_score(uint8_t *p);

/* Inserts a pair before p, or at the end if p is NULL. */
void engine_zset_lp_put(uint8_t **lp, uint8_t *p, struct rd_slice member, double score);

#endif
