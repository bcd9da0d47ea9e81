#include "server/loop/memory_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PASSES = 50, MEGABYTES_MAX = 64 * 1024 * 1024 };

static uint64_t pattern_of(unsigned kind, unsigned pass, size_t i)
{
    static const uint64_t fixed[] = {0, UINT64_MAX, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa};
    if (kind < sizeof fixed / sizeof *fixed)
        return fixed[kind];
    return ((uint64_t)i + pass) * 0x9e3779b97f4a7c15; /* a different word at each address finds
                                                       * addressing errors */
}

bool memory_test(volatile uint64_t *words, size_t n, unsigned passes, size_t *ret_at)
{
    enum { KINDS = 5 };
    for (unsigned pass = 0; pass < passes; pass++) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
            for (size_t i = 0; i < n; i++)
                words[i] = pattern_of(kind, pass, i);
            for (size_t i = 0; i < n; i++) {
                if (words[i] == pattern_of(kind, pass, i))
                    continue;
                *ret_at = i;
                return false;
            }
        }
    }
    return true;
}

static int run(size_t len)
{
    size_t at, n = len / sizeof(uint64_t);
    volatile uint64_t *words =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) {
        fprintf(stderr, "Unable to allocate %zu megabytes.\n", len >> 20);
        return 1;
    }
    for (unsigned pass = 1; pass <= PASSES; pass++) {
        printf("pass %u of %u\n", pass, (unsigned)PASSES);
        fflush(stdout);
        if (memory_test(words, n, 1, &at))
            continue;
        printf("\n*** MEMORY ERROR DETECTED: the word at %p is wrong ***\n",
               (void *)(uintptr_t)&words[at]);
        return 1;
    }
    printf("\nYour memory passed this test. For a test of all memory, use memtest86+ at boot, or "
           "memtester.\n");
    return 0;
}

int memory_test_main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long long megabytes = argc == 3 ? strtoull(argv[2], &end, 10) : 0;
    if (megabytes == 0 || *end != '\0' || argv[2][0] == '-' || megabytes > MEGABYTES_MAX) {
        fputs("Please specify the amount of memory to test in megabytes.\n"
              "Example: redoubt-server --test-memory 4096\n\n",
              stderr);
        return 1;
    }
    return run((size_t)megabytes << 20);
}
