/* faults.h - what goes wrong in a simulation: one of several, by their weights.
 *
 *     static void kill_one(void *run) { ... }
 *
 *     static const struct fault faults[] = {{2, kill_one}, {1, partition}, {3, start_one}};
 *     faults_make_one(faults, sizeof faults / sizeof *faults, &run->random, run);
 */
#ifndef TESTS_SIM_FAULTS_H
#define TESTS_SIM_FAULTS_H

#include <stddef.h>
#include <stdint.h>

struct fault {
    unsigned weight; /* its share of the sum of all weights */
    void (*make)(void *run);
};

/* Takes one number from the state of tests/support/chance.h. */
void faults_make_one(const struct fault *faults, size_t n, uint64_t *random, void *run);

#endif
