/* evict.h - the keys that go first when memory is short; private to engine/.
 *
 * engine_evict() itself is declared in engine/engine.h.
 */
#ifndef ENGINE_EVICT_H
#define ENGINE_EVICT_H

#include <stddef.h>
#include <stdint.h>

enum { ENGINE_VICTIMS_MAX = 16 };

struct engine_victim {
    uint64_t points; /* how much it deserves to go */
    uint8_t *key;
    size_t key_len;
    unsigned db;
};

/* Those seen so far, the one to go first last. */
struct engine_victims {
    struct engine_victim list[ENGINE_VICTIMS_MAX];
    unsigned n;
};

void engine_victims_done(struct engine_victims *victims);

#endif
