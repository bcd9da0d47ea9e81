/* merge.h - takes back what commands did to a key, and nothing that came after.
 *
 * A merge of three: the value *before* the commands, the value *after* them, and the value *now*.
 * An element that the commands changed gets back what it was, unless it is no longer what they made
 * of it: then it is a conflict.
 *
 *     struct history_merge merge = {.before = b, .after = a, .now = n,
 *                                   .on_conflict = on_conflict, .ctx = ctx};
 *     if (!history_merge(&merge, &err))
 *         ...
 *     ... merge.redo.bytes: commands, as RESP, that make the merged value of the present one ...
 *     ... merge.back.bytes: those that take this back ...
 *     history_merge_done(&merge);
 *
 * The elements are those of history/mirror.h. A string is one element; bytes that were overwritten
 * are elements of their own if its length did not change. The elements of a list have no names:
 * what the commands changed is one region of it, and what changed since is another; if they
 * overlap, they conflict. Entries of a stream cannot be put back before newer ones: unless the
 * stream is as the commands left it, this is a conflict. The time to live is an element.
 *
 * Memory: the commands. Threads: one at a time.
 */
#ifndef HISTORY_MERGE_H
#define HISTORY_MERGE_H

#include "history/mirror.h"

enum history_prefer {
    HISTORY_PREFER_NONE,  /* conflicts are left as they are, and counted */
    HISTORY_PREFER_NOW,   /* the same, on purpose */
    HISTORY_PREFER_BEFORE /* they get back what was before the commands */
};

/* Both values of an element; a null slice is its absence. */
struct history_conflict {
    enum history_part_of of;
    bool is_whole;  /* the key as a whole: another type, another string, a region of a list */
    bool is_expiry; /* the time to live, as text */
    struct rd_slice name;
    struct rd_slice before, now;
};

typedef bool (*history_conflict_fn)(void *ctx, const struct history_conflict *conflict,
                                    struct rd_err *err);

struct history_commands {
    struct rd_buf bytes;
    uint64_t n;
};

struct history_merge {
    /* ABSENT, or NULL: the key does not exist. Not UNKNOWN. */
    const struct history_mirror *before, *after, *now;
    struct rd_slice dump_before; /* what DUMP gives of `before`: of streams and opaque values */
    struct rd_slice dump_now;    /* … and of `now` */
    enum history_prefer prefer;
    history_conflict_fn on_conflict; /* may be NULL */
    void *ctx;
    struct history_commands redo, back;
    uint64_t changes;   /* elements that get back what they were */
    uint64_t conflicts; /* counted unless they are resolved */
};

bool history_merge(struct history_merge *merge, struct rd_err *err);
void history_merge_done(struct history_merge *merge);

/* Whether two values are the same, without their times to live. */
bool history_mirror_equal(const struct history_mirror *a, const struct history_mirror *b);

#endif
