/* string_impl.h - what the commands about strings, bitmaps and HyperLogLogs share; private to them.
 *
 *     struct engine_entry *entry;
 *     if (!engine_call_write(call, key, ENGINE_STRING, &entry) ||
 *         !engine_string_fits(call, offset, text.len))
 *         return;
 *     bool grown;
 *     struct engine_value *v = engine_string_stretch(call, entry, key, offset + text.len, &grown);
 *     memcpy(v->u.bytes + offset, text.ptr, text.len);
 */
#ifndef ENGINE_CMD_STRING_IMPL_H
#define ENGINE_CMD_STRING_IMPL_H

#include "engine/call.h"

/* GET: answers the string, or null where there is no such key. False: it holds another type, which
 * was answered. */
bool engine_string_give(struct engine_call *call, struct rd_slice key, struct engine_entry **ret);

/* A string of len and more bytes is within proto-max-bulk-len; or answers that it is not. */
bool engine_string_fits(struct engine_call *call, uint64_t len, uint64_t more);

/* How many bytes a string may have at most: what the configuration says, for a client. */
uint64_t engine_string_limit(const struct engine_call *call);

/* The string of a key as RAW and not shorter than len, a number that is within the limit. What was
 * not there is zero; entry may be NULL: the key is added. *ret_grown: it is longer than it was. */
struct engine_value *engine_string_stretch(struct engine_call *call, struct engine_entry *entry,
                                           struct rd_slice key, size_t len, bool *ret_grown);

#endif
