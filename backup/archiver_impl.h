/* archiver_impl.h - private to backup/: what archiver.c, ship.c, base.c, merger.c and
 * tail.c share.
 */
#ifndef BACKUP_ARCHIVER_IMPL_H
#define BACKUP_ARCHIVER_IMPL_H

#include "backup/archiver.h"

enum {
    BACKUP_ARCHIVER_RETRY_MS = 1000, /* before the first repetition, then doubled */
    BACKUP_ARCHIVER_RETRY_MAX_MS = 60000
};

/* ---- the threads; their argument is the struct backup_archiver ---- */

void *backup_ship_run(void *archiver);
void *backup_base_run(void *archiver);
void *backup_merger_run(void *archiver);

/* What they do in one turn, without waiting. _new() of ship.c opens the repositories; an error that
 * cannot pass is a->fatal, and then _turn() must not be called. NULL: no memory. */
struct backup_ship;
struct backup_base;

struct backup_ship *backup_ship_new(struct backup_archiver *a);
void backup_ship_turn(struct backup_ship *ship);
void backup_ship_free(struct backup_ship *ship);

struct backup_base *backup_base_new(struct backup_archiver *a);
void backup_base_turn(struct backup_base *base);
void backup_base_free(struct backup_base *base);
/* After the end of the threads: a run that was short has not found out whether a set is a base. */
void backup_base_look(struct backup_archiver *a);

/* Archives an append-only folder until it is stopped. */
bool backup_tail_run(struct backup_archiver *a, struct rd_err *err);

/* ---- from any thread ---- */

void backup_archiver_say(struct backup_archiver *a, const char *event, bool trouble,
                         const char *fmt, ...) RD_PRINTF(4, 5);
/* Ends the service. */
void backup_archiver_give_up(struct backup_archiver *a, const struct rd_err *err);

/* Waits until something changes, or for at most ms. The mutex is held. */
void backup_archiver_wait(struct backup_archiver *a, uint64_t ms);

/* Waits for the next turn of a thread, without the mutex. False: the run is over. */
bool backup_archiver_next(struct backup_archiver *a);

/* The wait before the next try, and the one after it. */
uint64_t backup_archiver_backoff(uint64_t *ms, uint64_t min_ms, uint64_t max_ms);

/* The stream begins again: no set is a base for its end. */
void backup_archiver_uncover(struct backup_archiver *a);

/* The path of a file of the spool. */
bool backup_archiver_path(char ret[BACKUP_PATH_MAX], const struct backup_archiver *a,
                          const char *name, struct rd_err *err);

/* ---- from the main thread ---- */

/* Whether the caller asks for the end. */
bool backup_archiver_stopped(const struct backup_archiver *a);
/* Called in every turn: closes a segment if that is due, and reports. */
bool backup_archiver_tick(struct backup_archiver *a, uint64_t now_ms, uint64_t *ret_wait_ms,
                          struct rd_err *err);
/* Closes the last segment, so that it can be shipped, and the writer, of tail.c. */
void backup_archiver_close_writer(struct backup_archiver *a);

#endif
