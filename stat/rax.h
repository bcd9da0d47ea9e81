/* rax.h - the memory of a server's radix tree of stream ids.
 *
 *     struct stat_rax rax = {.layout = layout};
 *     for (each id, in ascending order)
 *         stat_rax_add(&rax, id);
 *     bytes = stat_rax_memory(&rax);
 *
 * The keys are 16 bytes long, big-endian. The tree has a node for each position where keys diverge,
 * for each run of bytes between two such positions, and for the end of each key. If ids are not in
 * order, the result is an approximation. O(1) memory.
 */
#ifndef STAT_RAX_H
#define STAT_RAX_H

#include "rdb/event.h"
#include "stat/layout.h"

struct stat_rax {
    const struct stat_layout *layout;
    bool open;  /* for the caller: the tree exists, even without ids */
    uint64_t n; /* ids */
    uint64_t bytes;
    struct rdb_stream_id last;
    int parted; /* where the last id diverges from the one before, or -1 */
    int depth;  /* of the stack */
    int8_t forks[16];
    uint16_t branches[16]; /* of each fork */
};

void stat_rax_add(struct stat_rax *rax, struct rdb_stream_id id);

/* The nodes of the tree, without its header. */
uint64_t stat_rax_memory(const struct stat_rax *rax);

#endif
