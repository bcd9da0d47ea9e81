/* crc64.c - CRC-64/Jones: tables, constants, choice of the implementation, combination.
 *
 * The tables take 32 KiB and some ten microseconds, so they are made at the first call rather than
 * kept in the program.
 */
#include "base/crc64.h"

#include "base/crc64_impl.h"
#include "base/endian.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SLICES = 16 };

typedef uint64_t (*update_fn)(uint64_t crc, const void *ptr, size_t len);

/* table[k][b]: the CRC of byte b followed by k zero bytes. */
static uint64_t table[SLICES][256];

/* zeros[k]: x^(8 * 2^k), the factor by which 2^k zero bytes multiply a CRC. */
static uint64_t zeros[64];

/* unzeros[k]: x^(-8 * 2^k). */
static uint64_t unzeros[64];

/* The top bytes of the entries of table[0] are all different: entry_of[] is the index. */
static uint8_t entry_of[256];

struct rd_crc64_fold rd_crc64_folds[RD_CRC64_FOLD_MAX + 1];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(update_fn) chosen;

static struct rd_crc64_impl impls[] = {
    {"table", true, rd_crc64_table},
#if defined(__x86_64__)
    {"pclmul", false, rd_crc64_pclmul},
    {"vpclmul256", false, rd_crc64_vpclmul256},
    {"vpclmul", false, rd_crc64_vpclmul},
#endif
#if RD_CRC64_PMULL
    {"pmull", false, rd_crc64_pmull},
#endif
    {NULL, false, NULL},
};

/* x times a. */
static uint64_t times_x(uint64_t a)
{
    return (a >> 1) ^ (RD_CRC64_POLY & (0 - (a & 1)));
}

/* a divided by x. */
static uint64_t over_x(uint64_t a)
{
    return a >> 63 != 0 ? (a ^ RD_CRC64_POLY) << 1 | 1 : a << 1;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (; a != 0; a <<= 1) {
        if (a >> 63 != 0)
            product ^= b;
        b = times_x(b);
    }
    return product;
}

static void make_table(void)
{
    for (unsigned b = 0; b < 256; b++) {
        uint64_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = times_x(crc);
        table[0][b] = crc;
    }
    for (unsigned b = 0; b < 256; b++)
        entry_of[table[0][b] >> 56] = (uint8_t)b;
    for (unsigned k = 1; k < SLICES; k++)
        for (unsigned b = 0; b < 256; b++) {
            uint64_t crc = table[k - 1][b];
            table[k][b] = table[0][crc & 0xff] ^ (crc >> 8);
        }
}

static void make_zeros(void)
{
    zeros[0] = RD_CRC64_ONE >> 8; /* x^8 */
    unzeros[0] = RD_CRC64_ONE;
    for (int bit = 0; bit < 8; bit++)
        unzeros[0] = over_x(unzeros[0]);
    for (unsigned k = 1; k < 64; k++) {
        zeros[k] = multiply(zeros[k - 1], zeros[k - 1]);
        unzeros[k] = multiply(unzeros[k - 1], unzeros[k - 1]);
    }
}

/* The product of the powers whose bits are set in n. */
static uint64_t power_of(const uint64_t powers[64], uint64_t n)
{
    uint64_t power = RD_CRC64_ONE;
    for (unsigned k = 0; n != 0; k++, n >>= 1)
        if (n & 1)
            power = multiply(power, powers[k]);
    return power;
}

/* The power of x by which n zero bytes multiply a CRC. */
static uint64_t zero_bytes(uint64_t n)
{
    return power_of(zeros, n);
}

/* x^(8 n - 1) is x^(8 n - 8) x^7. */
static uint64_t power_below(uint64_t n)
{
    return multiply(zero_bytes(n - 1), UINT64_C(1) << (63 - 7));
}

static void make_folds(void)
{
    for (unsigned n = 1; n <= RD_CRC64_FOLD_MAX; n++) {
        rd_crc64_folds[n].low = power_below(n * 16 + 8);
        rd_crc64_folds[n].high = power_below(n * 16);
    }
}

static bool usable(update_fn update)
{
#if defined(__x86_64__)
    if (update == rd_crc64_pclmul)
        return rd_crc64_has_pclmul();
    if (update == rd_crc64_vpclmul256)
        return rd_crc64_has_vpclmul256();
    if (update == rd_crc64_vpclmul)
        return rd_crc64_has_vpclmul();
#endif
#if RD_CRC64_PMULL
    if (update == rd_crc64_pmull)
        return rd_crc64_has_pmull();
#endif
    return update == rd_crc64_table;
}

/* The list is ordered from slow to fast. */
static void init(void)
{
    make_table();
    make_zeros();
    make_folds();
    update_fn best = rd_crc64_table;
    for (struct rd_crc64_impl *impl = impls; impl->name != NULL; impl++) {
        impl->usable = usable(impl->update);
        if (impl->usable)
            best = impl->update;
    }
    atomic_store_explicit(&chosen, best, memory_order_release);
}

static update_fn choose(void)
{
    pthread_once(&once, init);
    return atomic_load_explicit(&chosen, memory_order_acquire);
}

/* The CRC of eight bytes, whose last one is followed by `after` more bytes. */
static inline uint64_t eight(uint64_t word, unsigned after)
{
    return table[after + 7][word & 0xff] ^ table[after + 6][(word >> 8) & 0xff] ^
           table[after + 5][(word >> 16) & 0xff] ^ table[after + 4][(word >> 24) & 0xff] ^
           table[after + 3][(word >> 32) & 0xff] ^ table[after + 2][(word >> 40) & 0xff] ^
           table[after + 1][(word >> 48) & 0xff] ^ table[after][word >> 56];
}

uint64_t rd_crc64_table(uint64_t crc, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    for (; len >= 16; len -= 16, p += 16)
        crc = eight(crc ^ rd_get_le64(p), 8) ^ eight(rd_get_le64(p + 8), 0);
    if (len >= 8) {
        crc = eight(crc ^ rd_get_le64(p), 0);
        p += 8;
        len -= 8;
    }
    for (; len > 0; len--)
        crc = table[0][(crc ^ *p++) & 0xff] ^ (crc >> 8);
    return crc;
}

uint64_t rd_crc64(uint64_t crc, const void *ptr, size_t len)
{
    update_fn update = atomic_load_explicit(&chosen, memory_order_acquire);
    if (RD_UNLIKELY(update == NULL))
        update = choose();
    return update(crc, ptr, len);
}

uint64_t rd_crc64_combine(uint64_t crc1, uint64_t crc2, uint64_t len2)
{
    choose();
    return multiply(crc1, zero_bytes(len2)) ^ crc2;
}

/* The checksum before the byte b was added. */
static inline uint64_t without(uint64_t crc, uint8_t b)
{
    uint8_t entry = entry_of[crc >> 56];
    return (crc ^ table[0][entry]) << 8 | (entry ^ b);
}

uint64_t rd_crc64_split(uint64_t crc, uint64_t crc2, uint64_t len2)
{
    choose();
    return multiply(crc ^ crc2, power_of(unzeros, len2));
}

uint64_t rd_crc64_undo(uint64_t crc, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    choose();
    while (len > 0)
        crc = without(crc, p[--len]);
    return crc;
}

/* The bytes are added to the lowest ones of the checksum, in their order. */
unsigned rd_crc64_between(uint64_t before, uint64_t after, unsigned most, uint8_t *ret)
{
    choose();
    if (before == after)
        return 0;
    for (unsigned n = 1; n <= most; n++) {
        after = without(after, 0);
        uint64_t bytes = before ^ after;
        if (RD_LIKELY(bytes >> 8 * n != 0))
            continue;
        for (unsigned i = 0; i < n; i++)
            ret[i] = (uint8_t)(bytes >> 8 * i);
        return n;
    }
    return 0;
}

uint64_t rd_crc64_multiply(uint64_t a, uint64_t b)
{
    return multiply(a, b);
}

/* The difference of two checksums is the wrong byte's difference, moved by the bytes after it.
 * Moving is undone byte by byte. */
bool rd_crc64_locate(uint64_t wrong, uint64_t right, uint64_t len, uint64_t *ret_at,
                     uint8_t *ret_xor)
{
    uint64_t diff = wrong ^ right;
    choose();
    for (uint64_t at = len; diff != 0 && at > 0; at--) {
        diff = without(diff, 0);
        if (diff > UINT8_MAX)
            continue;
        *ret_at = at - 1;
        *ret_xor = (uint8_t)diff;
        return true;
    }
    return false;
}

const struct rd_crc64_impl *rd_crc64_impls(void)
{
    choose();
    return impls;
}

const char *rd_crc64_impl_name(void)
{
    update_fn update = choose();
    const struct rd_crc64_impl *impl = impls;
    while (impl->update != update)
        impl++;
    return impl->name;
}
