/* lru.h - when a value was last used, or how often: the 24 bits of engine_value.lru.
 *
 * Under a policy of LRU: unix time in seconds, modulo 2^24. Under one of LFU: 16 bits of unix time
 * in minutes, when the counter was last let decay, and above eight bits of a counter that grows
 * ever more slowly with each access.
 */
#ifndef ENGINE_LRU_H
#define ENGINE_LRU_H

#include "engine/call.h"

static inline bool engine_lfu_on(const struct engine_config *config)
{
    return config->maxmemory_policy == ENGINE_ALLKEYS_LFU ||
           config->maxmemory_policy == ENGINE_VOLATILE_LFU;
}

/* For a value that is new. */
uint32_t engine_lru_new(const struct engine_config *config, int64_t now_ms);

/* An access. */
void engine_lru_touch(struct engine_call *call, struct engine_value *v);

/* Since the last access; under a policy of LRU. */
uint64_t engine_lru_idle_ms(const struct engine_value *v, int64_t now_ms);
uint32_t engine_lru_from_idle(int64_t idle_s, int64_t now_ms);

/* The counter as it has decayed by now, 0 to 255; under a policy of LFU. */
unsigned engine_lfu_counter(const struct engine_value *v, const struct engine_config *config,
                            int64_t now_ms);
uint32_t engine_lfu_from_counter(unsigned counter, int64_t now_ms);

#endif
