/* sim_fs.h - a file system in memory that fails, crashes, and forgets what was not made durable.
 *
 *     struct sim_fs *sim = sim_fs_new();
 *     struct rd_fs fs = sim_fs_calls(sim);
 *     sim->crash_at = 17;                        // the 17th call does not happen, nor any after it
 *     ... write a log through fs ...
 *     struct sim_fs *left = sim_fs_after_crash(sim, SIM_ALL, SIM_NONE);
 *
 * What a power failure leaves: of the contents of a file that were not fsynced the first part, of
 * any length; of the names that were created, renamed and removed since the last fsync of the
 * folder any selection. A write that is cut by the crash has happened in half.
 *
 * An fsync that fails drops what it should have written, and the next one succeeds without it, as
 * Linux does it; where later bytes do reach the disk there are zeros in between.
 */
#ifndef TESTS_SUPPORT_SIM_FS_H
#define TESTS_SUPPORT_SIM_FS_H

#include "base/fs.h"
#include "base/slice.h"

enum sim_call {
    SIM_ANY,
    SIM_OPEN,
    SIM_CLOSE,
    SIM_READ, /* read_at, too */
    SIM_WRITE,
    SIM_TRUNCATE,
    SIM_SYNC,
    SIM_SIZE,
    SIM_RENAME,
    SIM_UNLINK,
    SIM_SYNC_FOLDER,
    SIM_LIST,
    SIM_LOCK,
    SIM_CALLS
};

/* The n-th call of a kind (from 1; 0: none) fails with errno `sys`, and `times` in all. */
struct sim_fault {
    enum sim_call call;
    unsigned n;
    unsigned times;
    int sys;
    size_t bytes; /* of a write: the first one takes so many bytes, if it has more, and the next
                     ones fail */
};

enum { SIM_NAME = 80, SIM_NAMES = 96, SIM_INODES = 512, SIM_FDS = 16, SIM_FAULTS = 2 };

struct sim_inode;

struct sim_names {
    char name[SIM_NAMES][SIM_NAME];
    int inode[SIM_NAMES];
    unsigned n;
};

/* to is given to the inode (or taken from it: from is it, to is empty), from is removed. */
struct sim_change {
    char from[SIM_NAME];
    char to[SIM_NAME];
    int inode;
};

struct sim_fs {
    unsigned crash_at; /* 0: never */
    struct sim_fault faults[SIM_FAULTS];
    size_t chunk; /* the most that a write takes; 0: all */

    bool crashed;
    unsigned n_calls; /* so far */
    unsigned n_of[SIM_CALLS];
    unsigned n_open;

    struct sim_names names, durable_names;
    struct sim_change changes[SIM_NAMES];
    unsigned n_changes; /* of names, not durable */
    struct sim_inode *inodes[SIM_INODES];
    int n_inodes;
    int fds[SIM_FDS]; /* inode + 1, or 0 */
    size_t read_at[SIM_FDS];
    bool locks[SIM_FDS]; /* the descriptor locks its file */
};

struct sim_fs *sim_fs_new(void);
void sim_fs_free(struct sim_fs *sim);
struct rd_fs sim_fs_calls(struct sim_fs *sim);

/* Names outside of the folder begin with "../". NULL bytes: no such file. The file is durable. */
void sim_fs_put(struct sim_fs *sim, const char *name, struct rd_slice bytes);
bool sim_fs_get(const struct sim_fs *sim, const char *name, struct rd_slice *ret);

/* How much of the contents that are not durable is left; others: some length of each file, drawn
 * from the number. */
enum { SIM_NONE, SIM_ALL, SIM_HALF, SIM_SEEDED };

/* names: bit n stands for the n-th change of names that is not durable (SIM_ALL_NAMES: all). */
#define SIM_ALL_NAMES UINT32_MAX
struct sim_fs *sim_fs_after_crash(const struct sim_fs *sim, unsigned contents, uint32_t names);

/* The process is gone, the system lives: nothing is lost; no faults are left. */
void sim_fs_after_kill(struct sim_fs *sim);

#endif
