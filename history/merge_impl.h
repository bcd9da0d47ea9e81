/* merge_impl.h - private to merge*.c: commands about the key that is merged. */
#ifndef HISTORY_MERGE_IMPL_H
#define HISTORY_MERGE_IMPL_H

#include "history/merge.h"

/* Appends a command: its name, the key, and more words. False: out of memory. */
bool history_merge_put(const struct history_merge *m, struct history_commands *to,
                       const char *command, const struct rd_slice *words, size_t n);

/* Commands that make a whole value of an absent key, without its time to live; a stream or an
 * opaque value with it, and of any key. */
bool history_merge_create(const struct history_merge *m, const struct history_mirror *value,
                          struct rd_slice dump, struct history_commands *to);
/* HPEXPIREAT, or (a null time) HPERSIST. */
bool history_merge_field_expiry(const struct history_merge *m, struct rd_slice field,
                                struct rd_slice time, struct history_commands *to);
/* PEXPIREAT, unless there is no time to live. */
bool history_merge_put_expiry(const struct history_merge *m, int64_t expire_ms,
                              struct history_commands *to);
/* A conflict, which the caller of the merge is told; *ret_resolve: `before` wins. */
bool history_merge_conflict(struct history_merge *m, const struct history_conflict *conflict,
                            bool *ret_resolve, struct rd_err *err);
/* The value of `before` takes the place of that of `now`. */
bool history_merge_replace(struct history_merge *m);
/* As a conflict of the whole key. */
bool history_merge_whole(struct history_merge *m, struct rd_err *err);

/* By type. */
bool history_merge_map(struct history_merge *m, struct rd_err *err);
bool history_merge_list(struct history_merge *m, struct rd_err *err);
bool history_merge_string(struct history_merge *m, struct rd_err *err);
bool history_merge_stream(struct history_merge *m, struct rd_err *err);

static inline bool history_is_there(const struct history_mirror *m)
{
    return m != NULL && m->state == HISTORY_PRESENT;
}

#endif
