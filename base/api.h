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
 * Structs of options, and structs that a function fills for the caller, begin with their size. So a
 * program also works with an older or a newer shared library than the one it was compiled for. Each
 * of these structs has a macro of its name, which sets the size, the given fields, and zeros.
 *
 * Example: sets options.
 *
 *     #include <base/src.h>
 *     struct rd_src_opts opts = RD_SRC_OPTS(.window = 65536, .origin = "input");
 *     printf("%zu bytes\n", opts.size);
 *
 * In C++ the macros take no fields: set them afterwards. Other languages set all bytes to 0, and
 * then the first member to the size of the struct.
 *
 * New versions add fields at the end only, and 0 is always the default. A field that is set and
 * that the library does not have is RD_ERR_UNSUPPORTED; a size that is not set is RD_ERR_USAGE.
 *
 * All other structs that callers allocate are marked "Open", with the reason, and never change.
 * Structs that only the library allocates, such as those that callbacks receive, may get fields at
 * the end.
 *
 * Threads: any thread may call everything.
 */
#ifndef BASE_API_H
#define BASE_API_H

#define RD_API               __attribute__((visibility("default")))
#define RD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RD_LIKELY(x)         __builtin_expect(!!(x), 1)
#define RD_UNLIKELY(x)       __builtin_expect(!!(x), 0)

/* A struct with its size; see above. Users call the macro of the struct, such as RD_SRC_OPTS(). */
#ifdef __cplusplus
template <typename type> inline type rd_sized()
{
    type made{};
    made.size = sizeof made;
    return made;
}
#define RD_SIZED(type, ...) rd_sized<struct type>(__VA_ARGS__)
#else
#define RD_SIZED(type, ...) ((struct type){.size = sizeof(struct type), __VA_ARGS__})
#endif

/* The version of these headers: semantic versioning. While the major version is 0, a new minor
 * version may change the interface, and the name of the shared library then changes with it. */
#define REDOUBT_VERSION_MAJOR  0
#define REDOUBT_VERSION_MINOR  2
#define REDOUBT_VERSION_PATCH  0
#define REDOUBT_VERSION_STRING "0.2.0"
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
