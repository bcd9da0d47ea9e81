/* chance.h - random numbers from a seed (splitmix64), so that a failure can be repeated.
 *
 *     uint64_t chance = 17;
 *     if (chance_below(&chance, 6) == 0)
 *         ...
 */
#ifndef TESTS_SUPPORT_CHANCE_H
#define TESTS_SUPPORT_CHANCE_H

#include <stdint.h>

static inline uint64_t chance_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t chance_below(uint64_t *state, uint64_t n)
{
    return chance_next(state) % n;
}

#endif
