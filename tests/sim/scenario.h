/* scenario.h - one run of a tree of up to five nodes.
 *
 *     struct sim_sums sums = {0};
 *     const char *failure = sim_run(seed, NULL, 0, &sums);     // NULL: all is well
 *
 * Nodes write, lose connections, crash, restart and change roles. Then the network heals, and every
 * node must come to the data and the stream of the master. A write that the durable replica
 * acknowledged must survive. node.h has what is checked on the way.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "tests/sim/node.h"

struct sim_sums {
    uint64_t partial, full; /* syncs */
    uint64_t unknown_id;    /* full ones because the ids were forgotten */
    uint64_t safe;          /* acknowledged writes */
};

/* All chance comes from the seed; or, as long as it lasts, from the input (not NULL). The result is
 * the first failure, valid until the next call. */
const char *sim_run(uint64_t seed, const uint8_t *input, size_t len, struct sim_sums *sums);

/* A master and a replica, whose connection is cut after one byte, after two bytes, and so on, in
 * the handshake, the snapshot and the stream. *ret_n: how often. The result is as above. */
const char *sim_cut_everywhere(struct sim_sums *sums, uint64_t *ret_n);

#endif
