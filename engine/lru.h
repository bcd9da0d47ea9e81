/* lru.h - the last access of a value, or its access frequency: the 24 bits of engine_value.lru.
 *
 * With an LRU policy: Unix time in seconds, modulo 2^24. With an LFU policy: 16 bits of Unix time
 * in minutes of the last decay, above eight bits of a counter that grows logarithmically with the
 * accesses.
 */
#ifndef ENGINE_LRU_H
#define ENGINE_LRU_H

#include "engine/call.h"

static inline bool engine_lfu_on(const struct engine_config *config)
{
    return config->maxmemory_policy == ENGINE_ALLKEYS_LFU ||
           config->maxmemory_policy == ENGINE_VOLATILE_LFU;
}

/* The bits of a new value. */
uint32_t engine_lru_new(const struct engine_config *config, int64_t now_ms);

/* Records an access. */
void engine_lru_touch(struct engine_call *call, struct engine_value *v);

/* Time since the last access; with an LRU policy. */
uint64_t engine_lru_idle_ms(const struct engine_value *v, int64_t now_ms);
uint32_t engine_lru_from_idle(int64_t idle_s, int64_t now_ms);

/* The counter after its decay until now, 0 to 255; with an LFU policy. */
unsigned engine_lfu_counter(const struct engine_value *v, const struct engine_config *config,
                            int64_t now_ms);
uint32_t engine_lfu_from_counter(unsigned counter, int64_t now_ms);

#endif
