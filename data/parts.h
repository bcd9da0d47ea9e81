/* parts.h - converts a file in parts on two threads and writes the output in order.
 *
 * One thread reads the file and splits it. Each part can be converted (to lines, commands)
 * independently, by the thread that is free:
 *
 *     struct parts *parts;
 *     if (!parts_new(&parts, &ops, ctx, out, &err))
 *         ...
 *     while (... the next part is known ...)
 *         ok = parts_add(parts, &part, &err);     // makes parts here as well, and writes them
 *     ok = parts_end(parts, &err);                // all of them are made and written
 *     parts_free(parts);
 *
 * Memory: the waiting output is bounded, to PARTS_MAX parts of PARTS_FIRST bytes and PARTS_MORE
 * bytes for larger ones. A part whose output is longer waits until all parts before it are written,
 * and is then written directly. So a part may have any size. A caller should use parts of
 * PARTS_SIZE bytes, so that no part blocks the other thread.
 */
#ifndef DATA_PARTS_H
#define DATA_PARTS_H

#include "base/err.h"
#include "base/sink.h"

enum {
    PARTS_SIZE = 192 << 10,
    PARTS_BIG = 1 << 20, /* a part that is left to the second thread if there is a choice */
    PARTS_MAX = 24,
    PARTS_FIRST = 768 << 10,
    PARTS_MORE = 8 << 20,
    PARTS_WORKERS = 2
};

/* Bytes [from, to) of the input; the rest is the caller's state at `from`. */
struct part {
    uint64_t from;
    uint64_t to;
    uint64_t db;     /* of the selected keys */
    uint64_t key_db; /* of all keys in it */
    uint64_t slot;   /* of the named keys */
};

struct parts_ops {
    /* Makes the output of a part. `worker` is 0 or 1; two concurrent calls never have the same. If
     * it fails, the output so far is written, and nothing after it. */
    bool (*make)(void *ctx, unsigned worker, const struct part *part, struct rd_err *err);
    /* Called in order, before the output of each part that has any. Writes to the `out` of
     * parts_new(). May be NULL. */
    bool (*begin)(void *ctx, const struct part *part, struct rd_err *err);
};

struct parts;

/* False with *ret NULL and no error: there is only one processor. The caller keeps `out` and must
 * not write to it before parts_end(). */
bool parts_new(struct parts **ret, const struct parts_ops *ops, void *ctx, struct rd_sink *out,
               struct rd_err *err);

/* The sink that make() writes to, for this worker; valid until parts_free(). */
struct rd_sink *parts_sink(struct parts *parts, unsigned worker);

/* False: this part or an earlier one could not be made or written. Then call only parts_free(). */
bool parts_add(struct parts *parts, const struct part *part, struct rd_err *err);
bool parts_end(struct parts *parts, struct rd_err *err);

/* NULL is allowed. */
void parts_free(struct parts *parts);

#endif
