/* repo.h - the sets of one target in a repository.
 *
 *     TARGET/lock              elsewhere than in a folder: TARGET/locks/sets/… (archive/lock.h)
 *     TARGET/sets/ID/OBJECT…
 *     TARGET/sets/ID/manifest.json      written last
 *     TARGET/marks/ID.pinned            the set is kept
 *     TARGET/marks/ID.damaged           verify found that the set is damaged
 *
 *     struct archive_repo repo = {.store = store, .target = "nightly"};
 *     struct archive_sets sets;
 *     if (!archive_repo_list(&repo, &sets, &err))
 *         ...
 *     archive_sets_done(&sets);
 *
 * An id begins with the second (UTC) in which the set was begun: 20261123T013445Z-1f2e3d4c. All
 * changes require the lock.
 */
#ifndef ARCHIVE_REPO_H
#define ARCHIVE_REPO_H

#include "archive/lock.h"
#include "archive/manifest.h"
#include "archive/store.h"

struct archive_repo {
    struct archive_store *store; /* borrowed */
    const char *target;          /* archive_name_ok() */
    struct archive_lock *lock;   /* borrowed; NULL: not locked, nothing can be changed */
};

#define ARCHIVE_MANIFEST_NAME "manifest.json"

enum archive_mark { ARCHIVE_MARK_PINNED, ARCHIVE_MARK_DAMAGED, ARCHIVE_MARK_COUNT };

struct archive_set {
    char id[ARCHIVE_ID_MAX];
    int64_t time_ms; /* of the id */
    bool marked[ARCHIVE_MARK_COUNT];
    bool incomplete;           /* no manifest: an unfinished or partly removed set */
    struct rd_err err;         /* set: the manifest could not be read */
    struct archive_manifest m; /* else */
    struct rd_buf text;        /* of the manifest */
    uint64_t missing;          /* files of the manifest that are missing or have other sizes */
    char **objects;            /* all objects in the folder of the set, by name */
    uint64_t *sizes;
    size_t n_objects;
    uint64_t bytes; /* their total size */
};

struct archive_sets {
    struct archive_set *sets; /* from old to new */
    size_t n;
    size_t n_gone; /* sets that were removed between the listing and the reading */
};

/* Reads all manifests. A damaged manifest is not an error of this function. */
bool archive_repo_list(struct archive_repo *repo, struct archive_sets *ret, struct rd_err *err);
void archive_sets_done(struct archive_sets *sets);

/* Whether the manifest of a set does not exist any more: `prune` removes it first. False if that
 * cannot be known. */
bool archive_set_gone(struct archive_repo *repo, const struct archive_set *set);

/* Whether the set is complete and not marked as damaged. */
bool archive_set_good(const struct archive_set *set);

/* The set with this id. For "latest" and NULL: the newest good set that is not in the future (a
 * clock may have been wrong), or else the newest good one. NULL: none. A prefix of an id is enough
 * if it is unique. */
struct archive_set *archive_sets_find(struct archive_sets *sets, const char *id, int64_t now_ms);

/* Opens a file of a set for reading, plain (archive_pipe_open_src()) or as it is stored; in both
 * cases the digest is checked. ring and set are borrowed. */
bool archive_set_open(struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      struct rd_src **ret, struct rd_err *err);
bool archive_set_open_stored(struct archive_repo *repo, const struct archive_set *set,
                             const struct archive_file *file, struct rd_src **ret,
                             struct rd_err *err);

/* ---- changes, under the lock ---- */

/* Fails unless the lock is held; see archive_lock_check(). The functions that remove call it. */
bool archive_repo_check_lock(struct archive_repo *repo, struct rd_err *err);

/* A new id. */
void archive_make_id(char ret[ARCHIVE_ID_MAX], int64_t time_ms, uint32_t chance);
bool archive_id_time(const char *id, int64_t *ret_ms);

/* A new object of a set that does not have a manifest yet. */
bool archive_repo_put(struct archive_repo *repo, const char *id, const char *object,
                      struct rd_sink **ret, struct rd_err *err);
/* Writes the manifest `text` of m: from now on the set exists. That requires that the lock is still
 * held (RD_ERR_LOCKED) and that all objects are there with their sizes (RD_ERR_IO). */
bool archive_repo_commit(struct archive_repo *repo, const struct archive_manifest *m,
                         struct rd_slice text, struct rd_err *err);

/* Removes a set, or the rest of one, beginning with the manifest. */
bool archive_repo_remove(struct archive_repo *repo, const struct archive_set *set,
                         struct rd_err *err);

/* Removes what interrupted backups have left and a listing does not show. The target must be
 * locked. */
void archive_repo_clean(struct archive_repo *repo);

/* Removes the folders of sets that have no object. */
void archive_repo_tidy(struct archive_repo *repo);

bool archive_repo_mark(struct archive_repo *repo, const char *id, enum archive_mark mark, bool on,
                       struct rd_err *err);

/* The name that is bound into the seal of an object: "ID/OBJECT". */
void archive_object_name(char ret[ARCHIVE_NAME_MAX], const char *id, const char *object);

#endif
