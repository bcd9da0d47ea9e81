/* prefetch.h - a store whose objects are read before they are asked for, over several connections.
 *
 * A restore reads thousands of small segments one after another. Each takes the time of a request,
 * so most of the time is spent waiting. This store wraps another one: threads read the objects of a
 * list, in its order, each over a connection of its own, and get() returns what has arrived.
 *
 *     const struct archive_prefetch_opts opts = {.parallel = repo->parallel, .object = object,
 *                                                .ctx = plan, .n = 172800};
 *     struct archive_store *ahead;
 *     if (!archive_prefetch_open(&ahead, store, &opts, &err))
 *         ...
 *     ... ahead->ops->get(ahead, name, &src, &err), in the order of the list ...
 *     archive_store_close(ahead); // `store` stays open
 *
 * An object that is not on the list, that was skipped, that is larger than half of the room, or
 * whose reading failed is read from the wrapped store, which tries again and knows the error. So is
 * every object if no connection can be opened. range(), stat() and list() are those of the wrapped
 * store; the others do not exist: it only reads.
 *
 * Threads: one thread at a time uses the store; the threads of this module use only stores that
 *   open() made.
 * Ownership: the wrapped store is borrowed until archive_store_close(). A source of get() owns its
 *   bytes.
 * Errors: those of the wrapped store.
 * Cost: memory for `room` bytes, and 40 bytes for each object of the list.
 */
#ifndef ARCHIVE_PREFETCH_H
#define ARCHIVE_PREFETCH_H

#include <stdatomic.h>

#include "archive/store.h"

enum { ARCHIVE_PARALLEL_MAX = 64, ARCHIVE_PREFETCH_ROOM = 64 * 1024 * 1024 };

/* How a store is opened again, for reading over several connections at once. */
struct archive_parallel {
    /* Opens it for one thread, in that thread. Its requests end soon after *cancel became true. */
    bool (*open)(void *ctx, struct archive_store **ret, const atomic_bool *cancel,
                 struct rd_err *err);
    void *ctx;
    unsigned n; /* connections, that of the wrapped store included; at most
                   ARCHIVE_PARALLEL_MAX */
};

struct archive_prefetch_opts {
    const struct archive_parallel *parallel; /* copied */
    /* The name of object i < n of the list, and its size, as a listing shows it. False: the object
     * is not read ahead. Called in all threads. */
    bool (*object)(void *ctx, size_t i, char ret_name[ARCHIVE_NAME_MAX], uint64_t *ret_size);
    void *ctx;
    size_t n;
    size_t room; /* bytes that wait; 0: ARCHIVE_PREFETCH_ROOM */
};

bool archive_prefetch_open(struct archive_store **ret, struct archive_store *store,
                           const struct archive_prefetch_opts *opts, struct rd_err *err);

#endif
