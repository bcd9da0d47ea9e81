/* system.h - what jobs of backups ask the operating system for. No other file of this folder reads
 * a clock, draws random numbers or starts processes.
 */
#ifndef BACKUP_SYSTEM_H
#define BACKUP_SYSTEM_H

#include <time.h>

#include "backup/config.h"
#include "base/buf.h"

/* A variable of the environment, or NULL. */
const char *backup_env(const char *name);
/* Unix milliseconds. */
int64_t backup_now_ms(void);
/* A clock that also runs while the machine is suspended. */
uint64_t backup_boot_ms(void);
void backup_wait_ms(uint64_t ms);
/* The time in ms from now by CLOCK_MONOTONIC, for pthread_cond_timedwait(). */
struct timespec backup_after_ms(uint64_t ms);
bool backup_random(void *ret, size_t size, struct rd_err *err);
void backup_host(char ret[ARCHIVE_TEXT_MAX]);

/* The folder for what is not in a repository yet: created where only its last component is missing.
 */
bool backup_spool(const struct backup_target *target, char ret[BACKUP_PATH_MAX],
                  struct rd_err *err);
/* RD_ERR_USAGE if the stream that waits in the spool is that of another target. */
bool backup_spool_is_ours(const struct backup_target *target, const char *spool,
                          struct rd_err *err);
/* The same, and from now on it is the spool of this target. */
bool backup_spool_claim(const struct backup_target *target, const char *spool, struct rd_err *err);

/* Runs a command with /bin/sh. ret: what it prints, at most max bytes; NULL: to stderr. env is
 * pairs of names and values up to NULL, or NULL. Fails where its status is not 0. The error has the
 * name as its origin, because the command may contain a secret. */
bool backup_run(const char *name, const char *command, const char *const *env, size_t max,
                struct rd_buf *ret, struct rd_err *err);

/* A whole small file, appended to *ret; RD_ERR_LIMIT beyond max bytes. */
bool backup_read_file(const char *path, size_t max, struct rd_buf *ret, struct rd_err *err);

#endif
