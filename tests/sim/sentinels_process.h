/* sentinels_process.h - the Sentinels of a run. */
#ifndef TESTS_SIM_SENTINELS_PROCESS_H
#define TESTS_SIM_SENTINELS_PROCESS_H

#include <stdlib.h>

#include "tests/sim/sentinels.h"

/* Starts with its file; sets failure if that cannot be read. */
void sim_process_start(struct sim_run *r, int host);

/* Does what the Sentinel asks for. False: the process has ended, and its Sentinel is NULL. */
bool sim_process_act(struct sim_run *r, int host);

#endif
