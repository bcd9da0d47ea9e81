/* bench_crc64.c - how many bytes a second each implementation of CRC-64 sums.
 *
 *     bench_crc64 [KIB…]      sizes of the buffer; 16 (first-level cache) to 64 MiB otherwise
 *
 * Prints one line for each implementation and size: name, buffer in KiB, bytes per second.
 */
#include "base/crc64.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Best of five runs of about 50 ms each. */
static double measure(const struct rd_crc64_impl *impl, const uint8_t *bytes, size_t len)
{
    static volatile uint64_t keep;
    double best = 0;
    for (int run = 0; run < 5; run++) {
        double begin = now(), spent;
        uint64_t crc = 0;
        size_t n = 0;
        do {
            crc = impl->update(crc, bytes, len);
            n++;
            spent = now() - begin;
        } while (spent < 0.05);
        keep = crc;
        double rate = (double)n * (double)len / spent;
        best = rate > best ? rate : best;
    }
    (void)keep;
    return best;
}

static int bench(size_t kib)
{
    size_t len = kib * 1024;
    uint8_t *bytes = malloc(len);
    if (bytes == NULL) {
        fprintf(stderr, "bench_crc64: out of memory\n");
        return 5;
    }
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((i * 2654435761u) >> 13);
    for (const struct rd_crc64_impl *impl = rd_crc64_impls(); impl->name != NULL; impl++)
        if (impl->usable)
            printf("%-12s %8zu KiB %16.0f bytes/s\n", impl->name, kib, measure(impl, bytes, len));
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    static const size_t usual[] = {16, 256, 65536};
    printf("# rd_crc64() uses %s\n", rd_crc64_impl_name());
    int status = 0;
    if (argc < 2)
        for (size_t i = 0; i < sizeof usual / sizeof *usual && status == 0; i++)
            status = bench(usual[i]);
    for (int i = 1; i < argc && status == 0; i++) {
        unsigned long kib = strtoul(argv[i], NULL, 10);
        if (kib == 0 || kib > 1024 * 1024) {
            fprintf(stderr, "usage: bench_crc64 [KIB…]\n");
            return 2;
        }
        status = bench(kib);
    }
    return status;
}
