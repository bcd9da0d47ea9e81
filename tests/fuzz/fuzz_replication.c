/* fuzz_replication.c - the fuzzer plays the network between a master and its replicas: the input
 * decides what tests/sim draws from a seed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_sums sums = {0};
    const char *failure = size > 0 ? sim_run(1, data, size, &sums) : NULL;
    if (failure == NULL)
        return 0;
    fprintf(stderr, "fuzz_replication: %s\n", failure);
    abort();
}
