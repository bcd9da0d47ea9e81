/* hash_impl.h - private to engine/cmd: access to hashes whose fields may be expired.
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

/* The fields of a command: each step-th of n * step arguments. n 0: all. */
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

/* Like engine_call_read() and _write(). Expired fields among these are removed first, with an event
 * and the effect HDEL. If no field is left, the key is removed too, and *ret is NULL. In a table,
 * only the requested fields are checked. */
bool engine_hash_read(struct engine_call *call, struct rd_slice key, struct engine_hash_names names,
                      struct engine_entry **ret);
bool engine_hash_write(struct engine_call *call, struct rd_slice key,
                       struct engine_hash_names names, struct engine_entry **ret);

/* The second half: removes expired fields of a hash that the command has looked up; entry may be
 * NULL. */
struct engine_entry *engine_hash_fresh(struct engine_call *call, struct engine_entry *entry,
                                       struct rd_slice key, struct engine_hash_names names);

/* Whether a field exists and is expired, for callers that do not remove it. */
bool engine_hash_due(const struct engine_call *call, const struct engine_value *v,
                     struct rd_slice field);

/* Reports a command that removed fields; deletes the key if no field is left. */
void engine_hash_lost(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                      uint64_t n);

/* The value of a field, or null; entry may be NULL. */
void engine_hash_reply_value(struct engine_call *call, const struct engine_entry *entry,
                             struct rd_slice field);

#endif
