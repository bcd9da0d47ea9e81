/* rax.h - counts the nodes of a server's radix tree of stream ids.
 *
 *     struct stat_rax rax = {0};
 *     for (each id, in ascending order)
 *         stat_rax_add(&rax, id);
 *     nodes = stat_rax_nodes(&rax);
 *
 * The keys are 16 bytes long, big-endian. The tree has a node for each position where keys diverge,
 * for each run of bytes between two such positions, and for the end of each key. If ids are not in
 * order, the result is an approximation. O(1) memory.
 */
#ifndef TOOLS_STAT_RAX_H
#define TOOLS_STAT_RAX_H

#include "rdb/event.h"

struct stat_rax {
    uint64_t n; /* ids */
    uint64_t nodes;
    struct rdb_stream_id last;
    int parted; /* where the last id diverges from the one before, or -1 */
    int depth;  /* of the stack */
    int8_t forks[16];
};

void stat_rax_add(struct stat_rax *rax, struct rdb_stream_id id);
uint64_t stat_rax_nodes(const struct stat_rax *rax);

/* The size of such a tree according to MEMORY USAGE. */
uint64_t stat_rax_memory(const struct stat_rax *rax);

#endif
