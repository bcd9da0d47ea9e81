/* compat.h - included before every file: what the C library of emscripten declares otherwise. */
#ifndef WEB_WASM_COMPAT_H
#define WEB_WASM_COMPAT_H

#include <stddef.h>
#include <string.h>

static inline char *web_strerror(int sys, char *buf, size_t size)
{
    return (strerror_r)(sys, buf, size) == 0 ? buf : (char *)"unknown error";
}
#define strerror_r(sys, buf, size) web_strerror(sys, buf, size)

void qsort_r(void *base, size_t n, size_t size, int (*compare)(const void *, const void *, void *),
             void *ctx);

#endif
