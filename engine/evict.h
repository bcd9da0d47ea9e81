/* evict.h - candidates for eviction; private to engine/.
 *
 * engine_evict() itself is declared in engine/engine.h.
 */
#ifndef ENGINE_EVICT_H
#define ENGINE_EVICT_H

#include <stddef.h>
#include <stdint.h>

enum { ENGINE_VICTIMS_MAX = 16 };

struct engine_victim {
    uint64_t points; /* the higher, the sooner it is evicted */
    uint8_t *key;
    size_t key_len;
    unsigned db;
};

/* The candidates so far, the next to be evicted last. */
struct engine_victims {
    struct engine_victim list[ENGINE_VICTIMS_MAX];
    unsigned n;
};

void engine_victims_done(struct engine_victims *victims);

#endif
