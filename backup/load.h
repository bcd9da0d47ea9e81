/* load.h - whether a server loads a set.
 *
 *     struct backup_load load = {.watch = watch, .repo = repo, .set = set, .ring = ring,
 *                                .program = program};
 *     if (!backup_load(&load, &err))
 *         ... load.refused: the server does not load it, or has other keys; else it is unknown ...
 *     ... load.server, load.keys ...
 *
 * The set is restored into a private temporary folder. The server there has no TCP port. It runs as
 * a replica without a master, so that it keeps keys that have expired, and their number can be
 * compared.
 */
#ifndef BACKUP_LOAD_H
#define BACKUP_LOAD_H

#include "backup/stored_log.h"

struct backup_load {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    const struct archive_set *set; /* proved */
    const struct rd_seal_ring *ring;
    const char *program; /* NULL: the redoubt-server beside this program, or of $PATH */
    int64_t now_ms;      /* see struct backup_stored_log */
    /* Set by this library. */
    char server[80]; /* "redis 7.0.15"; empty: not known */
    uint64_t keys;   /* that it has */
    bool refused;
    struct rebuild_counts counts; /* of a log, which is run to count its keys */
    bool counted;                 /* these are set */
};

bool backup_load(struct backup_load *load, struct rd_err *err);

#endif
