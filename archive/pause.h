/* pause.h - whether backups of a target are paused in a repository.
 *
 *     TARGET/marks/paused      exists while they are
 *
 * The object says since when, from which host and why. It needs no lock, and it is not signed:
 * whoever can write to the repository can pause its target, which every tool shows.
 */
#ifndef ARCHIVE_PAUSE_H
#define ARCHIVE_PAUSE_H

#include "archive/repo.h"

struct archive_pause {
    bool paused;
    int64_t since_ms; /* 0: not known */
    char host[ARCHIVE_TEXT_MAX];
    char reason[ARCHIVE_TEXT_MAX]; /* "": none */
};

/* One request. What cannot be understood is a pause without a time. */
bool archive_pause_read(struct archive_repo *repo, struct archive_pause *ret, struct rd_err *err);
/* Pauses, unless it is: *ret is the pause that is there, and *ret_new whether it is this one. */
bool archive_pause_set(struct archive_repo *repo, const struct archive_pause *pause,
                       struct archive_pause *ret, bool *ret_new, struct rd_err *err);
/* That there is none is no failure. */
bool archive_pause_clear(struct archive_repo *repo, struct rd_err *err);

#endif
