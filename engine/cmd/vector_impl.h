/* vector_impl.h - what the commands about vector sets share. Private to engine/cmd/. */
#ifndef ENGINE_CMD_VECTOR_IMPL_H
#define ENGINE_CMD_VECTOR_IMPL_H

#include "engine/call.h"
#include "engine/value/vectors.h"

/* The key of a command that reads, decoded. *ret: NULL if it does not exist. False: it has no
 * vector set; an error was replied. */
bool engine_vector_find(struct engine_call *call, struct engine_entry **ret);

/* A vector in the arguments: FP32 blob, or VALUES n number… */
struct engine_vector_arg {
    float *floats; /* scratch */
    uint32_t n;
    size_t end; /* the index after it; it may be argc */
};

/* False: an error was replied. ret->floats is to be freed in any case. */
bool engine_vector_arg(struct engine_call *call, size_t at, struct engine_vector_arg *ret);

/* 1 for the same direction, 0 for the opposite one. */
static inline double engine_vector_score(float distance)
{
    return 1.0 - (double)distance / 2.0;
}

#endif
