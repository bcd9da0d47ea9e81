#include "engine/lru.h"

enum { CLOCK_MASK = 0xffffff, MINUTE_MASK = 0xffff, MINUTE_MS = 60000, COUNTER_NEW = 5 };

static uint32_t clock_s(int64_t now_ms)
{
    return (uint32_t)(now_ms / 1000) & CLOCK_MASK;
}

static uint32_t minutes(int64_t now_ms)
{
    return (uint32_t)(now_ms / MINUTE_MS) & MINUTE_MASK;
}

uint32_t engine_lfu_from_counter(unsigned counter, int64_t now_ms)
{
    return minutes(now_ms) << 8 | (counter & 0xff);
}

uint32_t engine_lru_new(const struct engine_config *config, int64_t now_ms)
{
    return engine_lfu_on(config) ? engine_lfu_from_counter(COUNTER_NEW, now_ms) : clock_s(now_ms);
}

unsigned engine_lfu_counter(const struct engine_value *v, const struct engine_config *config,
                            int64_t now_ms)
{
    unsigned counter = v->lru & 0xff;
    uint32_t since = (minutes(now_ms) - (v->lru >> 8)) & MINUTE_MASK;
    unsigned periods = config->lfu_decay_time > 0 ? since / (unsigned)config->lfu_decay_time : 0;
    return periods > counter ? 0 : counter - periods;
}

/* The probability of an increment decreases as the counter grows. */
static unsigned count_access(struct engine_call *call, unsigned counter)
{
    if (counter == 255)
        return counter;
    unsigned above = counter > COUNTER_NEW ? counter - COUNTER_NEW : 0;
    uint64_t odds = (uint64_t)above * (uint64_t)call->config->lfu_log_factor + 1;
    return counter + (engine_random_below(call, odds) == 0);
}

void engine_lru_touch(struct engine_call *call, struct engine_value *v)
{
    if (!engine_lfu_on(call->config)) {
        v->lru = clock_s(call->now_ms) & CLOCK_MASK;
        return;
    }
    unsigned counter = engine_lfu_counter(v, call->config, call->now_ms);
    v->lru = engine_lfu_from_counter(count_access(call, counter), call->now_ms) & CLOCK_MASK;
}

uint64_t engine_lru_idle_ms(const struct engine_value *v, int64_t now_ms)
{
    return (uint64_t)((clock_s(now_ms) - v->lru) & CLOCK_MASK) * 1000;
}

uint32_t engine_lru_from_idle(int64_t idle_s, int64_t now_ms)
{
    int64_t at = (int64_t)clock_s(now_ms) - idle_s;
    return at < 0 ? 0 : (uint32_t)at & CLOCK_MASK;
}
