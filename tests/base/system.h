/* system.h - calls of the C library that a test makes fail.
 *
 *     system_fsync = (struct system_fault){.left = 2, .sys = EIO};    // the second call from now
 *     system_processors = 1;                                          // the machine is a small one
 *
 * The program's own definitions override those of the C library. Each test is a separate process,
 * so nothing has to be restored.
 */
#ifndef TESTS_BASE_SYSTEM_H
#define TESTS_BASE_SYSTEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The call that counts `left` down to 0 fails with errno `sys`; 0: none. */
struct system_fault {
    int left;
    int sys;
};

extern struct system_fault system_fsync;
extern struct system_fault system_fchmod;
extern bool system_no_tmpfile; /* the file system has no files without a name */
extern struct system_fault system_fdopendir;
extern int system_renameat2;   /* errno of each call with flags, which old file systems refuse */
extern long system_processors; /* how many there are; 0: the truth */

/* Counts the bytes that madvise(MADV_POPULATE_WRITE) was called for, successful or not. */
extern atomic_size_t system_populated;

#endif
