/* mirror.h - follows the values of replayed keys: what each command changed, and who wrote what is
 * there now.
 *
 *     struct history_mirrors mirrors = {.on_edit = on_edit, .ctx = ctx};
 *     in the visit of a replay:
 *         ok = history_mirrors_visit(&mirrors, visit, &err);
 *     when it begins again:
 *         history_mirrors_reset(&mirrors);
 *     at the end:
 *         const struct history_mirror *m = history_mirrors_find(&mirrors, db, name);
 *     history_mirrors_done(&mirrors);
 *
 * A mirror is a copy of a value. Each element has a writer: the command that wrote it last. HSET of
 * the same value writes it; SADD of a member that is there does not. RENAME, MOVE and SWAPDB move a
 * value, whose elements keep their writers; COPY and SUNIONSTORE write all elements of the copy.
 *
 * Most commands cost as much as they have arguments; the others as much as the value is large.
 * Memory: twice the values.
 */
#ifndef HISTORY_MIRROR_H
#define HISTORY_MIRROR_H

#include "base/buf.h"
#include "history/elements.h"
#include "history/replay.h"

/* What wrote: a command, or (is_base) a snapshot, which says nothing about who wrote it. */
struct history_writer {
    struct history_place place;
    int64_t time_us;                      /* INT64_MIN: not known */
    const struct engine_command *command; /* NULL: of a snapshot, or in no table */
    bool is_base;
};

/* Of a string: bytes up to `end`, from the end of the run before. */
struct history_run {
    size_t end;
    uint32_t writer;
};

struct history_mirror {
    unsigned db;
    struct rd_slice name;
    enum history_state state;
    enum engine_type type; /* if PRESENT */
    int64_t expire_ms;     /* or ENGINE_NO_EXPIRE */
    uint32_t writer;       /* of the command that created or removed the key, or made it unknown */
    uint32_t expire_writer;
    struct history_map map;    /* hashes: field to value; sorted sets: member to score; sets */
    struct history_map beside; /* of a stream: groups, name to state; of a hash: fields that expire,
                                  field to unix milliseconds as text */
    struct history_seq seq;    /* lists; streams: ID to its fields, as RESP, in order */
    struct rd_buf bytes;       /* strings; opaque values: what DUMP gives */
    struct history_run *runs;  /* of a string */
    size_t n_runs, cap_runs;
};

enum history_edit_kind {
    HISTORY_KEY_CREATED, /* edits of its elements follow */
    HISTORY_KEY_REMOVED, /* edits of its elements came before */
    HISTORY_KEY_MOVED,   /* its value went to another key, or came from one: `name` */
    HISTORY_KEY_UNKNOWN, /* a command that cannot be run here changed it */
    HISTORY_EXPIRY,      /* expire_ms of the mirror; old_expire_ms */
    HISTORY_ADDED,       /* an element */
    HISTORY_REMOVED,
    HISTORY_CHANGED, /* its content */
    HISTORY_WRITTEN  /* again, with the same content */
};

enum history_part_of {
    HISTORY_OF_VALUE,   /* field, member, element, entry; of a string: a range of bytes */
    HISTORY_OF_GROUPS,  /* a consumer group of a stream */
    HISTORY_OF_EXPIRIES /* the time to live of a field */
};

/* What the elements of `beside` are. */
static inline enum history_part_of history_beside_of(const struct history_mirror *m)
{
    return m->type == ENGINE_HASH ? HISTORY_OF_EXPIRIES : HISTORY_OF_GROUPS;
}

struct history_edit {
    enum history_edit_kind kind;
    enum history_part_of of;
    struct rd_slice name;   /* field, member, ID, group; of lists and strings empty */
    uint64_t index;         /* of lists: position; of strings: offset of the first byte */
    struct rd_slice before; /* content: value, score, element, bytes */
    struct rd_slice after;
    int64_t old_expire_ms;
};

typedef bool (*history_edit_fn)(void *ctx, const struct history_mirror *mirror,
                                const struct history_edit *edit, struct rd_err *err);

struct history_mirrors {
    history_edit_fn on_edit; /* may be NULL */
    void *ctx;
    struct history_mirror **list;
    size_t n, cap;
    struct history_mirror **slots;  /* by database and name; NULL: free */
    size_t n_slots;                 /* a power of two, or 0 */
    struct history_writer *writers; /* by number */
    size_t n_writers, cap_writers;
};

bool history_mirrors_visit(struct history_mirrors *mirrors, const struct history_visit *visit,
                           struct rd_err *err);
/* NULL: the key was never there. */
struct history_mirror *history_mirrors_find(const struct history_mirrors *mirrors, unsigned db,
                                            struct rd_slice name);
/* A mirror of its own, without writers; free it with history_mirror_free(). NULL: RD_ERR_MEMORY. */
struct history_mirror *history_mirror_copy(const struct history_mirror *m, struct rd_err *err);
/* What a key of a data set is. */
struct history_mirror *history_mirror_read(struct rebuild_data *data, unsigned db,
                                           struct rd_slice name, struct rd_err *err);
/* NULL is allowed. */
void history_mirror_free(struct history_mirror *m);

void history_mirrors_reset(struct history_mirrors *mirrors);
void history_mirrors_done(struct history_mirrors *mirrors);

#endif
