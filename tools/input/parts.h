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
#ifndef TOOLS_INPUT_PARTS_H
#define TOOLS_INPUT_PARTS_H

#include "base/err.h"
#include "base/sink.h"

enum {
    PARTS_SIZE = 192 << 10,
    PARTS_BIG = 1 << 20, /* a part that is left to the second thread, when it has the choice */
    PARTS_MAX = 24,
    PARTS_FIRST = 768 << 10,
    PARTS_MORE = 8 << 20,
    PARTS_WORKERS = 2
};

/* Bytes [from, to) of the input. The rest is the caller's: what held at `from`. */
struct part {
    uint64_t from;
    uint64_t to;
    uint64_t db;     /* that was selected */
    uint64_t key_db; /* of all keys in it */
    uint64_t slot;   /* that was named */
};

struct parts_ops {
    /* Makes a part's output. `worker` is 0 or 1; two calls at a time never have the same. When it
     * fails, what it has written is written still, nothing after it. */
    bool (*make)(void *ctx, unsigned worker, const struct part *part, struct rd_err *err);
    /* Before the output of a part that has any, in order. It writes to the `out` of
     * parts_new(). May be NULL. */
    bool (*begin)(void *ctx, const struct part *part, struct rd_err *err);
};

struct parts;

/* False with *ret NULL and no error: there is one processor only. `out` stays the caller's and is
 * not to be written to before parts_end(). */
bool parts_new(struct parts **ret, const struct parts_ops *ops, void *ctx, struct rd_sink *out,
               struct rd_err *err);

/* Where make() writes, for this worker: valid until parts_free(). */
struct rd_sink *parts_sink(struct parts *parts, unsigned worker);

/* False: a part could not be made, this one or one before it, or not be written. Then, and before
 * parts_free(), nothing is called any more. */
bool parts_add(struct parts *parts, const struct part *part, struct rd_err *err);
bool parts_end(struct parts *parts, struct rd_err *err);

/* NULL is allowed. */
void parts_free(struct parts *parts);

#endif
