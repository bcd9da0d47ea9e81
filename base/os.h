/* Services that not every kernel and C library has: glibc 2.31 lacks some of them, musl others.
 *
 * Each function uses the service if it exists and a portable replacement if not. meson.build finds
 * out what the C library declares; what the kernel supports is known only when it is called.
 */
#ifndef BASE_OS_H
#define BASE_OS_H

#include <stdbool.h>
#include <stddef.h>

/* Renames a file and fails with EEXIST if the new name exists. EINVAL or ENOSYS: the file system or
 * the kernel cannot do this in one step. The result and errno are those of rename(2). */
int rd_rename_new(int from_dir, const char *from, int to_dir, const char *to);

/* Closes the descriptors from `low` to `high`, both included. Without close_range(2), the first
 * 65,536 descriptors are closed one by one. Safe in the child of a process with threads. */
void rd_close_range(unsigned low, unsigned high);

/* The heap of the C library, in bytes. All zero if the C library has no figures. */
struct rd_heap {
    size_t used, free, trimmable;
    size_t mapped, n_mapped; /* blocks that have a mapping of their own */
};
struct rd_heap rd_heap(void);

/* Returns unused memory at the end of the heap to the system, except for `keep` bytes. */
void rd_heap_trim(size_t keep);

/* Asks for huge pages for memory that is accessed at random. Only pages that lie in it completely
 * and were not touched yet are concerned. No effect where the system has no such pages. */
void rd_prefer_huge_pages(void *ptr, size_t len);

/* Makes the heap grow by this many bytes at a time. False: the C library has no such setting. */
bool rd_heap_set_growth(size_t bytes);

/* The return addresses on the stack, the innermost first. 0: not known. The first call
 * may load a library and allocate memory; the others do not. */
int rd_stack(void **frames, int max);

/* Writes the symbols of the addresses to the descriptor, a line each, without allocating memory. */
void rd_stack_write(void *const *frames, int n, int fd);

/* The first call of main(). A static program with glibc finds the names of hosts and users in /etc
 * and with DNS only: other sources are libraries of the system, made for another C library. */
void rd_os_begin(void);

#endif
