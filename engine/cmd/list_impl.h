/* list_impl.h - shared by engine/cmd/list*.c.
 */
#ifndef ENGINE_CMD_LIST_IMPL_H
#define ENGINE_CMD_LIST_IMPL_H

#include "engine/call.h"
#include "engine/value/list.h"

/* The element as a bulk string. */
void engine_list_reply(struct engine_call *call, const struct engine_list_pos *pos);

/* An array of n existing elements from an index on, or backwards from the element at the index.
 */
void engine_list_reply_range(struct engine_call *call, struct engine_list *list, int64_t start,
                             uint64_t n, enum engine_list_end towards);

/* "LEFT" or "RIGHT"; otherwise replies with a syntax error. */
bool engine_list_arg_end(struct engine_call *call, struct rd_slice arg, enum engine_list_end *ret);

/* n elements were removed from this end: sends the event, and deletes the key if it is empty. key
 * must not be that of the entry. */
void engine_list_popped(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                        enum engine_list_end end, uint64_t n);

/* LPOP or RPOP without count: the element is the reply, or the second of a pair with the key. */
void engine_list_pop(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                     enum engine_list_end end, bool with_key);

/* LMPOP and BLMPOP on a list: pops up to n elements, with reply and effect. */
void engine_list_pop_range(struct engine_call *call, struct engine_entry *entry,
                           struct rd_slice key, enum engine_list_end end, uint64_t n);

/* The arguments of LMPOP, from the number of keys on. */
struct engine_list_mpop {
    const struct rd_slice *keys;
    size_t n_keys;
    enum engine_list_end end;
    int64_t count;
};

bool engine_list_arg_mpop(struct engine_call *call, size_t at, struct engine_list_mpop *ret);

/* Moves from the list `source`, key argv[1], to the list at argv[2]. False: argv[2] has another
 * type, and the error was replied. */
bool engine_list_move(struct engine_call *call, struct engine_entry *source,
                      enum engine_list_end from, enum engine_list_end to);

#endif
