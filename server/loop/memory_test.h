/* memory_test.h - redoubt-server --test-memory MEGABYTES: patterns in memory, pass after pass.
 */
#ifndef SERVER_LOOP_MEMORY_TEST_H
#define SERVER_LOOP_MEMORY_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes patterns to n words, `passes` times, and reads them back. False: a word differed; *ret_at
 * points to it. */
bool memory_test(volatile uint64_t *words, size_t n, unsigned passes, size_t *ret_at);

/* Runs the command line option and returns its exit status: 0 for intact memory, 1 if a word is
 * wrong or there is not enough memory.
 */
int memory_test_main(int argc, char **argv);

#endif
