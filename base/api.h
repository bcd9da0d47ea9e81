/* api.h - the version of libredoubt, symbol visibility and compiler attributes.
 *
 * Example: warns of a library that is too old.
 *
 *     if (redoubt_version() < REDOUBT_VERSION_NUMBER)
 *         puts("the installed library is older than the headers of this program");
 *
 * All code is compiled with hidden visibility. RD_API marks the functions that the shared library
 * exports: exactly those that an installed header declares.
 *
 * Threads: any thread may call everything.
 */
#ifndef BASE_API_H
#define BASE_API_H

#define RD_API               __attribute__((visibility("default")))
#define RD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RD_LIKELY(x)         __builtin_expect(!!(x), 1)
#define RD_UNLIKELY(x)       __builtin_expect(!!(x), 0)

/* The version of these headers: semantic versioning. While the major version is 0, a new minor
 * version may change the interface, and the name of the shared library then changes with it. */
#define REDOUBT_VERSION_MAJOR  0
#define REDOUBT_VERSION_MINOR  1
#define REDOUBT_VERSION_PATCH  0
#define REDOUBT_VERSION_STRING "0.1.0"
#define REDOUBT_VERSION_NUMBER                                                                     \
    (REDOUBT_VERSION_MAJOR * 1000000 + REDOUBT_VERSION_MINOR * 1000 + REDOUBT_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that the program runs with, as REDOUBT_VERSION_NUMBER and as
 * REDOUBT_VERSION_STRING. Any thread may call them. */
RD_API unsigned redoubt_version(void);
RD_API const char *redoubt_version_string(void);

#ifdef __cplusplus
}
#endif

#endif
