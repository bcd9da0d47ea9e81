/* seeds.h - the program of a simulation: runs seeds and prints TAP.
 *
 *     static const char *run(void *ctx, uint64_t seed) { ... }
 *     const struct seeds seeds = {.n = 1000, .in_line = 100, .run = run, .ctx = &sums};
 *     if (argc == 3)
 *         ok = seeds_some(&seeds, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
 *     else
 *         ok = seeds_all(&seeds, &n_lines);
 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct seeds {
    uint64_t n;       /* from 0 on */
    uint64_t in_line; /* of one line of TAP */
    /* Runs one seed. NULL: it passed; or what failed. */
    const char *(*run)(void *ctx, uint64_t seed);
    void *ctx;
};

/* False: failed; each failure was printed. */
bool seeds_some(const struct seeds *seeds, uint64_t first, uint64_t n);
/* All of them, with the lines of TAP. *ret_lines is their number. */
bool seeds_all(const struct seeds *seeds, unsigned *ret_lines);

#endif
