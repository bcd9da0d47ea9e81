/* memory_test.h - redoubt-server --test-memory MEGABYTES: patterns in memory, pass after pass.
 */
#ifndef SERVER_CORE_MEMORY_TEST_H
#define SERVER_CORE_MEMORY_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes patterns into n words, `passes` times, and reads them back. False: a word was not what was
 * written; *ret_at is where. */
bool memory_test(volatile uint64_t *words, size_t n, unsigned passes, size_t *ret_at);

/* The command line; its exit status: 0 sound, 1 wrong words or memory that is damaged or missing.
 */
int memory_test_main(int argc, char **argv);

#endif
