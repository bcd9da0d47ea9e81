/* list_impl.h - what the files of the list commands share; private to engine/cmd/list*.c.
 */
#ifndef ENGINE_CMD_LIST_IMPL_H
#define ENGINE_CMD_LIST_IMPL_H

#include "engine/call.h"
#include "engine/value/list.h"

/* The element as a bulk string. */
void engine_list_reply(struct engine_call *call, const struct engine_list_pos *pos);

/* An array of n elements from an index on, which there are, or backwards from the one at the index.
 */
void engine_list_reply_range(struct engine_call *call, struct engine_list *list, int64_t start,
                             uint64_t n, enum engine_list_end towards);

/* "LEFT" or "RIGHT"; else a syntax error is answered. */
bool engine_list_arg_end(struct engine_call *call, struct rd_slice arg, enum engine_list_end *ret);

/* n elements were taken from this end: says so, and deletes the key when it has none left. key may
 * not be the entry's own. */
void engine_list_popped(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                        enum engine_list_end end, uint64_t n);

/* LPOP or RPOP without count: the element is the answer, or the second of a pair with the key. */
void engine_list_pop(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                     enum engine_list_end end, bool with_key);

/* What LMPOP and BLMPOP do with the list they found: up to n elements, an answer and an effect. */
void engine_list_pop_range(struct engine_call *call, struct engine_entry *entry,
                           struct rd_slice key, enum engine_list_end end, uint64_t n);

/* The arguments of LMPOP, from that with the number of keys on. */
struct engine_list_mpop {
    const struct rd_slice *keys;
    size_t n_keys;
    enum engine_list_end end;
    int64_t count;
};

bool engine_list_arg_mpop(struct engine_call *call, size_t at, struct engine_list_mpop *ret);

/* From the list `source`, key argv[1], to the one at argv[2]. False: that is no list, which was
 * answered. */
bool engine_list_move(struct engine_call *call, struct engine_entry *source,
                      enum engine_list_end from, enum engine_list_end to);

#endif
