/* num_impl.h - private to num*.c. */
#ifndef BASE_NUM_IMPL_H
#define BASE_NUM_IMPL_H

#include <stdbool.h>
#include <stdint.h>

/* digits * 10^exponent; digits may end in zeros. */
struct rd_decimal {
    uint64_t digits;
    int exponent;
};

/* The shortest decimal that reads back as v, of several the nearest to it. v is finite, positive
 * and not zero. */
struct rd_decimal rd_num_shortest(double v);

#endif
