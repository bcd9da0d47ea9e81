/* repo.h - the sets of one target in a repository.
 *
 *     TARGET/lock              elsewhere than in a folder: TARGET/locks/sets/… (archive/lock.h)
 *     TARGET/sets/ID/OBJECT…
 *     TARGET/sets/ID/manifest.json      written last
 *     TARGET/marks/ID.pinned            the set is kept
 *     TARGET/marks/ID.damaged           verify found that the set is damaged
 *     TARGET/catalogue/NUMBER.zst       copies of manifests (archive/catalogue.h)
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
#include "archive/prefetch.h"
#include "archive/store.h"

struct archive_set;

struct archive_repo {
    struct archive_store *store;     /* borrowed */
    const char *target;              /* archive_name_ok() */
    struct archive_lock *lock;       /* borrowed; NULL: not locked, nothing can be changed */
    const struct rd_seal_ring *ring; /* borrowed; NULL: no keys, no signature can be verified */
    /* chunks_open_src(), which archive_set_open() calls for files that are stored as chunks; NULL:
     * they are not supported. */
    bool (*open_chunks)(struct rd_src **ret, struct archive_repo *repo,
                        const struct archive_set *set, const struct archive_file *file,
                        const struct rd_seal_ring *ring, struct rd_err *err);
    const struct archive_parallel *parallel; /* borrowed; NULL: objects are read one by one */
    bool exact;              /* each manifest is read itself, without the catalogue */
    unsigned catalogue_from; /* the number of sets from which on there is a catalogue, which is
                                written again for a quarter of it; 0: ARCHIVE_CATALOGUE_FROM */
};

#define ARCHIVE_MANIFEST_NAME "manifest.json"

enum archive_mark { ARCHIVE_MARK_PINNED, ARCHIVE_MARK_DAMAGED, ARCHIVE_MARK_COUNT };

struct archive_set {
    char id[ARCHIVE_ID_MAX];
    int64_t time_ms; /* of the id */
    bool marked[ARCHIVE_MARK_COUNT];
    bool incomplete;           /* no manifest: an unfinished or partly removed set */
    bool other_key;            /* keys are given, but not that of the manifest */
    bool refused;              /* it is not sealed, although the repository has a key */
    struct rd_err *err;        /* not NULL: the manifest is damaged, forged, or of another target;
                                  owned, see archive_set_fail() */
    struct archive_manifest m; /* else */
    struct rd_buf text;        /* of the manifest */
    uint64_t manifest_bytes;
    char version[ARCHIVE_VERSION_MAX]; /* of the manifest: see struct archive_listed; "": none */
    bool catalogued;                   /* the manifest is that of the catalogue */
    bool fresh;                        /* `text` is kept for the next catalogue */
    uint64_t missing; /* files of the manifest that are missing or have other sizes */
    char **objects;   /* all objects in the folder of the set, by name */
    uint64_t *sizes;
    size_t n_objects;
    uint64_t bytes; /* their total size, and what the set added to the chunks */
};

/* What there is of archive/catalogue.h. */
enum { ARCHIVE_CATALOGUES_OLD = 8 };

struct archive_catalogues {
    unsigned due;    /* so many new sets, and it is written again; 0: there are too few for one */
    uint64_t newest; /* its number; 0: none */
    uint64_t old[ARCHIVE_CATALOGUES_OLD];
    size_t n_old;
    size_t n_copies;                      /* that it has */
    uint64_t max;                         /* bytes that one can have */
    char leftover[ARCHIVE_FILE_NAME_MAX]; /* of an interrupted upload; "": none */
};

struct archive_sets {
    struct archive_set *sets; /* from old to new */
    size_t n;
    size_t n_gone; /* sets that were removed between the listing and the reading */
    struct archive_catalogues catalogues;
    size_t fresh_bytes; /* of texts that are kept for the next catalogue */
};

/* Reads all manifests and verifies their signatures with repo->ring. A damaged or forged manifest
 * is not an error of this function. */
bool archive_repo_list(struct archive_repo *repo, struct archive_sets *ret, struct rd_err *err);
void archive_sets_done(struct archive_sets *sets);

/* Whether the manifest of a set does not exist any more: `prune` removes it first. False if that
 * cannot be known. */
bool archive_set_gone(struct archive_repo *repo, const struct archive_set *set);

/* Stores a copy of the reason why a set is not good, unless there is one. Without memory, that is
 * the reason. */
void archive_set_fail(struct archive_set *set, const struct rd_err *err);

/* Whether the set is complete, not marked as damaged and not refused. Its signature is valid, or
 * its key is not known. */
bool archive_set_good(const struct archive_set *set);

/* Whether the author of a set is known: it has a valid signature, or needs none. If the key is not
 * known, this reads the header of an object, from which the key can be derived from a passphrase.
 * False: the set is refused (RD_ERR_CHECKSUM), its key is not given (RD_ERR_USAGE,
 * RD_SEAL_REASON_KEY), or this could not be found out. A wrong signature is also stored in
 * set->err, so that the set is not good any more. */
bool archive_set_prove(struct archive_repo *repo, struct archive_set *set, struct rd_err *err);

/* The set with this id. For "latest" and NULL: the newest good set that is not in the future (a
 * clock may have been wrong), or else the newest good one. NULL: none. A prefix of an id is enough
 * if it is unique. */
struct archive_set *archive_sets_find(struct archive_sets *sets, const char *id, int64_t now_ms);

/* The newest good set, as above, whose age says that backups are made: one with a key other than
 * those that are given may be forged, and does not count. */
struct archive_set *archive_sets_newest(struct archive_sets *sets, int64_t now_ms);

/* Whether data of the set may be read: its signature is valid, or it needs none. As
 * archive_set_prove(), but nothing is read. */
bool archive_set_is_proved(const struct archive_set *set, const struct rd_seal_ring *ring,
                           struct rd_err *err);

/* Opens a file of a set for reading, plain (archive_pipe_open_src()) or as it is stored; in both
 * cases the digest is checked. ring and set are borrowed. The plain bytes require that the set is
 * proved: a signature that is missing or not verified is RD_ERR_CHECKSUM or RD_ERR_USAGE. */
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
 * held (RD_ERR_LOCKED), that all objects are there with their sizes (RD_ERR_IO), and that the store
 * shows the manifest afterwards. */
bool archive_repo_commit(struct archive_repo *repo, const struct archive_manifest *m,
                         struct rd_slice text, struct rd_err *err);

/* Removes a set, beginning with the manifest, or the rest of one whose manifest is proved not to
 * exist. */
bool archive_repo_remove(struct archive_repo *repo, const struct archive_set *set,
                         struct rd_err *err);

/* Removes what interrupted backups have left and a listing does not show. The target must be
 * locked. */
void archive_repo_clean(struct archive_repo *repo);

/* Removes the folders of sets that have no object. */
void archive_repo_tidy(struct archive_repo *repo);

/* The word of a mark in the name of its object. */
const char *archive_mark_word(enum archive_mark mark);
bool archive_repo_mark(struct archive_repo *repo, const char *id, enum archive_mark mark, bool on,
                       struct rd_err *err);

/* The name of an object in the repository, which is bound into its seal:
 * "TARGET/sets/ID/OBJECT". RD_ERR_LIMIT. */
bool archive_object_name(char ret[ARCHIVE_NAME_MAX], const char *target, const char *id,
                         const char *object, struct rd_err *err);

#endif
