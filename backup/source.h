/* source.h - where the data of a set come from: a server, a cluster, a snapshot or a log.
 *
 *     const struct backup_source from = {.watch = watch, .tool = "backup"};
 *     struct backup_set set = {.open = &open};
 *     if (!backup_source_take(&from, &set, &err))
 *         ...
 *     backup_set_done(&set);
 */
#ifndef BACKUP_SOURCE_H
#define BACKUP_SOURCE_H

#include <signal.h>

#include "backup/take.h"
#include "client/target.h"

/* A program that is ended by signals, while data of the job are in the spool: signals set the flag
 * from begin() to end(), which repeats the one that came. */
struct backup_signals {
    const volatile sig_atomic_t *(*begin)(sigset_t *ret_waiting);
    void (*end)(const sigset_t *waiting);
};

struct backup_source {
    const struct rd_watch *watch;
    const char *tool;                     /* named in the lock */
    const struct backup_signals *signals; /* NULL: signals end the program */
};

/* backup_take() of what the target, or set->from, says. */
bool backup_source_take(const struct backup_source *source, struct backup_set *set,
                        struct rd_err *err);

/* RD_ERR_USAGE if the settings of the source contradict each other. */
bool backup_source_check(const struct backup_target *target, struct rd_err *err);

/* What a path of a source means: a snapshot, or the folder of a log. In the folder of a server, its
 * log if it has one, because that is what the server would load, or dump.rdb, which may be missing.
 */
bool backup_source_find(const char *source, char ret[BACKUP_PATH_MAX], bool *ret_is_log,
                        struct rd_err *err);

#endif
