/* rax.h - how many nodes a server's radix tree of stream ids has.
 *
 *     struct stat_rax rax = {0};
 *     for (each id, in ascending order)
 *         stat_rax_add(&rax, id);
 *     nodes = stat_rax_nodes(&rax);
 *
 * The keys are 16 bytes long, big-endian. A node stands for each place where keys part, for each
 * run of bytes between two such places, and for the end of each key. Ids that are not in order give
 * a number that is somewhat off. O(1) memory.
 */
#ifndef TOOLS_STAT_RAX_H
#define TOOLS_STAT_RAX_H

#include "rdb/event.h"

struct stat_rax {
    uint64_t n; /* ids */
    uint64_t nodes;
    struct rdb_stream_id last;
    int parted; /* where the last id parts from the one before, or -1 */
    int depth;  /* of the stack */
    int8_t forks[16];
};

void stat_rax_add(struct stat_rax *rax, struct rdb_stream_id id);
uint64_t stat_rax_nodes(const struct stat_rax *rax);

/* What MEMORY USAGE takes such a tree for. */
uint64_t stat_rax_memory(const struct stat_rax *rax);

#endif
