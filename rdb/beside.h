/* beside.h - records beside the keys, for a pass that leaves out keys.
 *
 * A filter selects keys, but two kinds of records depend on keys without being part of them:
 *
 *   - MODULE_AUX, what a module stores outside of its keys. A server that does not have the module
 *     refuses the whole file because of it. A caller who excludes the values of modules gets a file
 *     for such a server, so these records are left out, too, and reported.
 *   - the aux fields that KeyDB writes for a single key: `mvcc-tstamp` before it, and
 *     `keydb-subexpire-key` and `keydb-subexpire-when` after it for each member that expires. KeyDB
 *     applies them to the nearest key of the file. They go where their key goes.
 *
 *     struct rdb_beside beside = {.no_modules = true, .omitted = report};
 *     while (rdb_reader_next(reader, &ev) == RDB_EVENT) {
 *         if (ev.kind == RDB_KEY) {
 *             if (!wanted(&ev)) {
 *                 rdb_beside_drop(&beside);
 *                 rdb_reader_skip_value(reader);
 *                 continue;
 *             }
 *             if (rdb_beside_keep(&beside, &ev, &before))
 *                 ... write before ...
 *         } else if (!rdb_beside_wants(&beside, &ev)) {
 *             continue;
 *         }
 *         ... write ev ...
 *     }
 *
 * Threads: one thread at a time uses a struct rdb_beside. Ownership: the caller's struct; there is
 * nothing to free. Errors: none. Cost: constant time for each record.
 */
#ifndef RDB_BESIDE_H
#define RDB_BESIDE_H

#include "rdb/event.h"
#include "rdb/omission.h"

/* An aux field of KeyDB that belongs to one key. */
enum rdb_beside_aux {
    RDB_BESIDE_NONE,   /* it describes the file */
    RDB_BESIDE_BEFORE, /* of the next key */
    RDB_BESIDE_MEMBER, /* of the last key: the member that expires */
    RDB_BESIDE_WHEN    /* of the last key: when it expires, in unix milliseconds */
};

enum rdb_beside_aux rdb_beside_aux(struct rd_slice name);

enum { RDB_BESIDE_MAX = 32 };

/* A zeroed struct leaves out nothing. */
struct rdb_beside {
    bool no_modules;        /* leave out MODULE_AUX */
    rdb_omitted_fn omitted; /* called for each record that is left out; may be NULL */
    void *omitted_ctx;
    uint64_t n_omitted;
    /* Private. */
    bool dropping;                /* inside of a record that is left out */
    bool dropped_key;             /* the last key was left out */
    uint8_t held[RDB_BESIDE_MAX]; /* the value of an aux field of the next key */
    size_t held_len;
    bool holds;
};

bool rdb_beside_wants_record(struct rdb_beside *beside, const struct rdb_event *ev);

/* Whether to pass on an event that is not a KEY. Call it for all of them, also inside of values. */
static inline bool rdb_beside_wants(struct rdb_beside *beside, const struct rdb_event *ev)
{
    bool plain = !beside->dropping && ev->kind != RDB_AUX && ev->kind != RDB_MODULE_AUX;
    return RD_LIKELY(plain) || rdb_beside_wants_record(beside, ev);
}

/* The key of this event is left out. */
void rdb_beside_drop(struct rdb_beside *beside);

/* The key of this event is kept. True: *ret is an AUX event to pass on before it; its bytes are
 * valid until the next call. */
bool rdb_beside_keep(struct rdb_beside *beside, const struct rdb_event *key, struct rdb_event *ret);

#endif
