/* set.h - a set that is being written to all repositories of a target.
 *
 *     struct backup_set set = {.open = &open};
 *     if (backup_set_begin(&set, now_ms, &err) &&
 *         backup_set_file_begin(&set, "dump.rdb", ARCHIVE_ROLE_RDB, &err)) {
 *         bool good = backup_set_copy(&set, src, &err);
 *         ok = backup_set_file_end(&set, good, &err) && backup_set_commit(&set, &err);
 *     }
 *     if (!ok)
 *         backup_set_abandon(&set);
 *     backup_set_done(&set);
 *
 * A repository that fails has its error in open->errs and gets nothing more; the others continue.
 */
#ifndef BACKUP_SET_H
#define BACKUP_SET_H

#include "archive/pipe.h"
#include "backup/open.h"

struct backup_chunked;
struct client_target;
struct rd_fs;

/* Where a set comes from, instead of the source of its target. */
struct backup_from {
    const struct client_target *server; /* NULL: */
    const char *snapshot;               /* this file, with the position below */
    const struct rd_fs *spool;          /* the folder in which it has this name; NULL: a path */
    const char *name;
    const char *source; /* the description of the source in the manifest */
    const char *replid;
    uint64_t offset;
};

struct backup_set {
    struct backup_open *open;
    const struct backup_from *from; /* NULL: the source of the target */
    const atomic_bool *cancel;      /* true: stop; may be NULL. backup_take() sets it */
    const struct rd_seal_key *key;  /* NULL: not sealed */
    enum archive_compression compression;
    int level;
    const struct archive_tag *tags; /* of the user; borrowed */
    size_t n_tags;
    bool chunks; /* data is stored as chunks (backup/chunked.h), */
    int chunks_level;
    struct archive_sets sets[BACKUP_STORES]; /* which other sets of the repository have, too */
    struct backup_chunked *chunked;
    struct archive_manifest m;
    struct archive_tee tee;
    size_t place[ARCHIVE_TEE_MAX]; /* the repository of a sink of the tee */
    struct archive_file file;
    struct rd_sink *sink;
    bool in_doubt[BACKUP_STORES]; /* the repository may have the manifest, or may still get it */
    bool asked_server;            /* for a snapshot: it has forked, probably */
    bool refused;                 /* the server that was asked did not send the first byte */
    bool locked_out;              /* nothing was begun, because another run has the lock */
    struct rd_err not_kept; /* what the next set would have used was not written to the spool */
};

/* Chooses an id; the caller fills in the rest of set->m. */
bool backup_set_begin(struct backup_set *set, int64_t now_ms, struct rd_err *err);
/* A new file, whose bytes go to set->sink. */
bool backup_set_file_begin(struct backup_set *set, const char *name, enum archive_role role,
                           struct rd_err *err);
/* Ends the file. Without `good`, or if all repositories fail, it is removed. */
bool backup_set_file_end(struct backup_set *set, bool good, struct rd_err *err);
/* Writes the manifests. A repository that fails has open->errs. */
bool backup_set_commit(struct backup_set *set, struct rd_err *err);
/* Removes the objects of an abandoned set, as far as possible. Where the put of the manifest may
 * still take effect, they stay: the set is then complete, or the next run removes them. */
void backup_set_abandon(struct backup_set *set);
void backup_set_done(struct backup_set *set);

/* Writes all bytes of src to set->sink. */
bool backup_set_copy(struct backup_set *set, struct rd_src *src, struct rd_err *err);
/* A source that passes on the bytes of another, which it does not own, and gives them to the sink
 * of the set. It fails when the set is cancelled. */
bool backup_set_tap(struct rd_src **ret, struct rd_src *inner, struct backup_set *set,
                    struct rd_err *err);

#endif
