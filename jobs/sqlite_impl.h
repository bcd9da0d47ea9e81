/* sqlite_impl.h - private to jobs/: the file in which SQLite makes a database.
 *
 * SQLite writes pages at any position. If the output is a file that appears when it is complete,
 * they go there; for a pipe or a compressed output they go to a spool, which is copied at the end.
 *
 *     struct sqlite_file file = {.out = sink};
 *     if (!sqlite_file_begin(&file, &db, &err))
 *         ...
 *     ... statements; file.err says why one failed ...
 *     sqlite3_close(db);
 *     ok = sqlite_file_commit(&file, &err);    // closes the sink
 *     sqlite_file_end(&file);                  // also after a failure
 */
#ifndef JOBS_SQLITE_IMPL_H
#define JOBS_SQLITE_IMPL_H

#include "base/sink.h"
#include "data/spool.h"

#include <sqlite3.h>

struct sqlite_file {
    struct rd_sink *out;
    struct spool spool;
    int fd;        /* of out; -1: the spool is used */
    uint64_t size; /* of the database */
    struct rd_err err;
    sqlite3_vfs vfs;
    char name[32]; /* of the VFS */
};

/* The caller owns *ret, and the sink unless this or sqlite_file_commit() was successful. */
bool sqlite_file_begin(struct sqlite_file *file, sqlite3 **ret, struct rd_err *err);
bool sqlite_file_commit(struct sqlite_file *file, struct rd_err *err);
void sqlite_file_end(struct sqlite_file *file);

#endif
