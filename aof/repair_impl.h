/* repair_impl.h - what a plan of a repair holds. Private to aof/repair.c and its tests. */
#ifndef AOF_REPAIR_IMPL_H
#define AOF_REPAIR_IMPL_H

#include "aof/repair.h"

struct aof_repair_state {
    struct aof_repair_step *steps;
    size_t n_steps, cap_steps;
    bool swap;                    /* the manifest changes */
    struct aof_manifest manifest; /* if swap: the new one */
    int64_t time_s;               /* see aof_repair_time() */
    int64_t base_time;            /* plan_time: when the base was saved, or AOF_NO_TIME */
    uint64_t annotations;         /* plan_time: number of time annotations read */
};

#endif
