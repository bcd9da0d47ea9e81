/* seeds.h - the program of a simulation: runs seeds and prints TAP.
 *
 *     static const char *run(void *ctx, uint64_t seed) { ... }
 *     static bool is_enough(const void *ctx) { ... }
 *     static void print(const void *ctx) { ... seeds_print(sums, n) ... }
 *
 *     enum { SEEDS = 1000, A_LINE = 100 };
 *     SEEDS_MAIN(struct sums, .enough = "cuts")
 *
 *     PROGRAM              all seeds, as TAP
 *     PROGRAM FIRST N      N seeds from FIRST on
 *     PROGRAM -v SEED      one seed, with what happened, where there is trace()
 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seeds {
    uint64_t n;       /* from 0 on */
    uint64_t in_line; /* of one line of TAP */
    void *ctx;        /* what the seeds add up to */
    /* Runs one seed. NULL: it passed; or what failed. */
    const char *(*run)(void *ctx, uint64_t seed);
    /* The same, printing what happens. NULL: there is none. */
    const char *(*trace)(void *ctx, uint64_t seed);
    /* Prints lines of TAP of its own and counts them; false: one failed. NULL: there are none. */
    bool (*more)(void *ctx, unsigned *n_lines);
    /* Whether all seeds together had enough of what makes them worth running. */
    bool (*is_enough)(const void *ctx);
    const char *enough; /* "there were enough …" */
    void (*print)(const void *ctx);
};

/* The status of the process. */
int seeds_main(const struct seeds *seeds, int argc, char **argv);

/* main() of a file with run(), is_enough(), print() and the constants SEEDS and A_LINE; further
 * fields follow the type of the sums. */
#define SEEDS_MAIN(type, ...)                                                                      \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static type sums;                                                                          \
        const struct seeds seeds = {.n = SEEDS,                                                    \
                                    .in_line = A_LINE,                                             \
                                    .ctx = &sums,                                                  \
                                    .run = run,                                                    \
                                    .is_enough = is_enough,                                        \
                                    .print = print,                                                \
                                    __VA_ARGS__};                                                  \
        return seeds_main(&seeds, argc, argv);                                                     \
    }

struct seeds_sum {
    const char *what;
    uint64_t n;
};

/* For print(): a comment for each sum. */
void seeds_print(const struct seeds_sum *sums, size_t n);

#endif
