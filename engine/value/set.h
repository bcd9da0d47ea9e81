/* set.h - set values: INTSET while all members are integers and few, else HASHTABLE.
 *
 *     struct engine_value v = engine_set_new(member);
 *     engine_set_add(&v, member, config);
 *     struct engine_set_iter it;
 *     struct rd_slice each;
 *     engine_set_iter_begin(&it, &v);
 *     while (engine_set_iter_next(&it, &each))
 *         ...
 *     engine_set_iter_end(&it);
 *
 * A set becomes a table when it gets a member that is not an integer, or more integers than
 * set-max-intset-entries, and stays one. Members are shorter than 4 GiB.
 */
#ifndef ENGINE_VALUE_SET_H
#define ENGINE_VALUE_SET_H

#include "engine/intset.h"
#include "engine/table.h"
#include "engine/value.h"

/* An item of the table. */
struct engine_member {
    uint32_t len;
    uint8_t bytes[];
};

struct engine_set {
    struct engine_table members;
};

static inline struct rd_slice engine_member_text(const struct engine_member *m)
{
    return rd_slice(m->bytes, m->len);
}

/* An empty set, in the encoding for its first member. */
struct engine_value engine_set_new(struct rd_slice first);

/* An empty INTSET, for results with unknown members. */
struct engine_value engine_set_new_intset(void);

/* Constant time for tables; logarithmic for intsets, in which adding and removing is linear. */
bool engine_set_has(const struct engine_value *v, struct rd_slice member);

/* Returns whether the set changed. The bytes of the member are copied; they may be in another set
 * and, for removing, in this one. */
bool engine_set_add(struct engine_value *v, struct rd_slice member,
                    const struct engine_config *config);
bool engine_set_remove(struct engine_value *v, struct rd_slice member);

uint64_t engine_set_count(const struct engine_value *v);

/* A member chosen by 64 random bits, from a set that is not empty. Its bytes are in the set or in
 * tmp. */
struct rd_slice engine_set_random(const struct engine_value *v, uint64_t random,
                                  char tmp[RD_NUM_I64_MAX]);

/* Iterates over all members, ascending in an INTSET, else in no order. The set must not change
 * meanwhile. */
struct engine_set_iter {
    const struct engine_value *v;
    size_t index;
    struct engine_table_iter table;
    char tmp[RD_NUM_I64_MAX];
};

void engine_set_iter_begin(struct engine_set_iter *it, const struct engine_value *v);

/* False: the end. *ret is valid until the next call. */
bool engine_set_iter_next(struct engine_set_iter *it, struct rd_slice *ret);

/* Required after iterating, even if members remain. */
void engine_set_iter_end(struct engine_set_iter *it);

#endif
