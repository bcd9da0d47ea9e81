/* hash_impl.h - private to engine/cmd: how commands get at hashes, of which fields may be due.
 *
 *     struct engine_entry *entry;
 *     struct engine_hash_names names = {.list = call->argv + 2, .n = 1, .step = 1};
 *     if (!engine_hash_read(call, call->argv[1], names, &entry))
 *         return;                                            // WRONGTYPE was answered
 */
#ifndef ENGINE_CMD_HASH_IMPL_H
#define ENGINE_CMD_HASH_IMPL_H

#include "engine/call.h"
#include "engine/value/hash.h"

/* The fields that a command is about: each step-th of n * step arguments. n 0: all. */
struct engine_hash_names {
    const struct rd_slice *list;
    size_t n;
    size_t step;
};

#define ENGINE_HASH_ALL ((struct engine_hash_names){.n = 0})

static inline struct engine_hash_names engine_hash_one(const struct rd_slice *field)
{
    return (struct engine_hash_names){.list = field, .n = 1, .step = 1};
}

/* Like engine_call_read() and _write(). Those fields that are due are taken out first, which is an
 * event and has the effect HDEL, and where nothing is left the key goes: *ret is NULL then. Of a
 * table only fields that are asked for are looked at. */
bool engine_hash_read(struct engine_call *call, struct rd_slice key, struct engine_hash_names names,
                      struct engine_entry **ret);
bool engine_hash_write(struct engine_call *call, struct rd_slice key,
                       struct engine_hash_names names, struct engine_entry **ret);

/* The second half of them: what is left of a hash that the command has looked up; entry may be
 * NULL. */
struct engine_entry *engine_hash_fresh(struct engine_call *call, struct engine_entry *entry,
                                       struct rd_slice key, struct engine_hash_names names);

/* Whether a field is there and due, for those who leave it where it is. */
bool engine_hash_due(const struct engine_call *call, const struct engine_value *v,
                     struct rd_slice field);

/* Says what the command did to a hash that has lost fields, with the key where none is left. */
void engine_hash_lost(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                      uint64_t n);

/* The value of a field, or null; entry may be NULL. */
void engine_hash_reply_value(struct engine_call *call, const struct engine_entry *entry,
                             struct rd_slice field);

#endif
