/* resync.h - finds where commands can be read again.
 *
 * Private to salvage.
 */
#ifndef AOF_RECOVER_RESYNC_H
#define AOF_RECOVER_RESYNC_H

#include "aof/recover/frame.h"

struct aof_recover_way {
    uint64_t from; /* start of the first damaged command: the one that failed or the one before */
    uint64_t to;   /* where to continue; the size of the file: not possible */
    const char *how;
    bool exact;  /* a single wrong byte explains the damage: only the commands at `from` are lost */
    bool before; /* the command before the failed one is lost too */
    uint64_t rest, rest_end; /* where the rest of the lost command lies, after commands that were
                                written into it; both 0: not known */
};

/* Finds where to continue after `f`, which could not be read. `prev` is the entry that ends where
 * `f` begins, or NULL. `in` is at the damage; `probe` (a view of the same file) follows chains.
 * `forms`: of the commands before `f`, and of some after it, which are added here. False: in->err.
 */
bool aof_recover_resync(struct aof_recover_in *in, struct aof_recover_in *probe,
                        struct aof_recover_forms *forms, const struct frame *f,
                        const struct frame *prev, struct aof_recover_way *ret);

/* The first position in (from, to) from which commands lead exactly to `to`; else `to`. The command
 * [from, to) may be torn, and its last argument reached by chance to the end of a later command; or
 * it holds text. */
uint64_t aof_recover_inside(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                            uint64_t to);

/* Finds the first position in [from, size) from which many consecutive commands parse, after the
 * end mark of a snapshot and its checksum. *ret is the size if none is found. */
bool aof_recover_find_tail(struct aof_recover_in *in, struct aof_recover_in *probe, uint64_t from,
                           uint64_t *ret);

#endif
