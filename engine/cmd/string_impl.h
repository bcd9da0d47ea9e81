/* string_impl.h - shared by the commands for strings, bitmaps and HyperLogLogs.
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

/* GET: replies with the string, or null if the key does not exist. False: another type; the error
 * was replied. */
bool engine_string_give(struct engine_call *call, struct rd_slice key, struct engine_entry **ret);

/* Checks that a string of len + more bytes is within proto-max-bulk-len; otherwise replies with the
 * error. */
bool engine_string_fits(struct engine_call *call, uint64_t len, uint64_t more);

/* The maximum length of a string: that of the configuration, for a client. */
uint64_t engine_string_limit(const struct engine_call *call);

/* The string of a key as RAW and at least len bytes long, a length within the limit. New bytes are
 * zero; entry may be NULL: adds the key. *ret_grown: it is longer than before. */
struct engine_value *engine_string_stretch(struct engine_call *call, struct engine_entry *entry,
                                           struct rd_slice key, size_t len, bool *ret_grown);

/* The argument of EX, PX, EXAT or PXAT as Unix time. False: an error was replied. */
bool engine_string_arg_expiry(struct engine_call *call, struct rd_slice arg, bool in_s,
                              bool from_now, int64_t *ret_ms);

/* ---- conditions on a string, of servers after 7.0 ---- */

enum engine_string_if {
    ENGINE_STRING_IFEQ, /* it is this text */
    ENGINE_STRING_IFNE,
    ENGINE_STRING_IFDEQ, /* its digest is this one */
    ENGINE_STRING_IFDNE
};

/* Whether the condition holds. False: an error was replied. */
bool engine_string_judge(struct engine_call *call, const struct engine_value *v,
                         enum engine_string_if kind, struct rd_slice expected, bool *ret);

#endif
