/* guard.h - bytes that end where memory ends.
 *
 *     uint8_t *bytes = guard_new(input, len);
 *     ... parse bytes[0 .. len - 1]; a look at bytes[len] kills the test ...
 *     guard_free(bytes);
 *
 * With len 0 the pointer itself may not be read.
 */
#ifndef TESTS_SUPPORT_GUARD_H
#define TESTS_SUPPORT_GUARD_H

#include <stddef.h>
#include <stdint.h>

/* A copy of len bytes directly before an inaccessible page. Never NULL: aborts when the system has
 * no memory. */
uint8_t *guard_new(const void *bytes, size_t len);

/* Frees what guard_new() gave. NULL is allowed. */
void guard_free(uint8_t *ptr);

#endif
