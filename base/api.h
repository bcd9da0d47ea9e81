/* api.h - symbol visibility and compiler attributes of libredoubt.
 *
 * All code is compiled with hidden visibility. RD_API marks the functions that users of the shared
 * library may call. A function without it is private to the project, even if its header is
 * installed.
 */
#ifndef BASE_API_H
#define BASE_API_H

#define RD_API               __attribute__((visibility("default")))
#define RD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RD_LIKELY(x)         __builtin_expect(!!(x), 1)
#define RD_UNLIKELY(x)       __builtin_expect(!!(x), 0)

#endif
