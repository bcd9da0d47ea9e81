#include "engine/cmd/bitmap_impl.h"

/* ---- counting ---- */

static inline __attribute__((always_inline)) uint64_t count_tail(const uint8_t *bytes, size_t len)
{
    uint64_t word = 0;
    if (len > 0)
        memcpy(&word, bytes, len);
    return (uint64_t)__builtin_popcountll(word);
}

static inline __attribute__((always_inline)) uint64_t count_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return (uint64_t)__builtin_popcountll(word);
}

/* Four sums, so that no addition waits for the previous one. */
static inline __attribute__((always_inline)) uint64_t count_words(const uint8_t *bytes, size_t len)
{
    uint64_t a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 32 <= len; i += 32) {
        a += count_word(bytes + i);
        b += count_word(bytes + i + 8);
        c += count_word(bytes + i + 16);
        d += count_word(bytes + i + 24);
    }
    for (; i + 8 <= len; i += 8)
        a += count_word(bytes + i);
    return a + b + c + d + count_tail(bytes + i, len - i);
}

#if defined(__x86_64__)
/* Not every processor of this architecture has the instruction. */
__attribute__((target("popcnt"))) static uint64_t count_popcnt(const uint8_t *bytes, size_t len)
{
    return count_words(bytes, len);
}

uint64_t engine_bitmap_count(const uint8_t *bytes, size_t len)
{
    return __builtin_cpu_supports("popcnt") ? count_popcnt(bytes, len) : count_words(bytes, len);
}
#else
uint64_t engine_bitmap_count(const uint8_t *bytes, size_t len)
{
    return count_words(bytes, len);
}
#endif

/* ---- searching for a different byte ---- */

size_t engine_bitmap_skip(const uint8_t *bytes, size_t len, uint8_t same)
{
    uint64_t all = same == 0 ? 0 : UINT64_MAX, word[4];
    size_t i = 0;
    for (; i + sizeof word <= len; i += sizeof word) {
        memcpy(word, bytes + i, sizeof word);
        if (((word[0] ^ all) | (word[1] ^ all) | (word[2] ^ all) | (word[3] ^ all)) != 0)
            break;
    }
    while (i < len && bytes[i] == same)
        i++;
    return i;
}
