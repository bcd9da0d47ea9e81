/* catalogue.h - copies of the manifests of a target in one object, so that listing many sets takes
 * few requests.
 *
 *     TARGET/catalogue/NUMBER.zst
 *
 * archive_repo_list() uses the newest one where the store lists versions of objects (S3: the ETag).
 * It takes a manifest from there only if the store lists one of that set with the same version and
 * size, and reads the manifest itself otherwise. So a catalogue that is old, damaged or lost costs
 * time, and nothing else. It is not sealed: a copy is verified as the manifest is, by its digest
 * and its signature. docs/format/repository.md has its format.
 *
 *     struct archive_sets sets;
 *     if (archive_repo_list(&repo, &sets, &err) && archive_catalogue_update(&repo, &sets, &err))
 *         ...
 *
 * Threads: those of the store. Errors: those of the store. Cost of an update: all copies are
 * written again; memory for one manifest and the codec of zstd.
 */
#ifndef ARCHIVE_CATALOGUE_H
#define ARCHIVE_CATALOGUE_H

#include "archive/repo.h"

enum {
    ARCHIVE_CATALOGUE_FROM = 16,     /* sets, before there is a catalogue */
    ARCHIVE_CATALOGUE_KEEP = 4 << 20 /* bytes of new manifests that are kept in memory for it */
};

/* A copy: false ends the reading. */
typedef bool archive_copy_fn(void *ctx, const char *id, const char *version, struct rd_slice text);
/* Whether a copy of this size is wanted; otherwise its text is passed over. */
typedef bool archive_wanted_fn(void *ctx, const char *id, const char *version, uint64_t size);

struct archive_catalogue_reader {
    archive_wanted_fn *wanted;
    archive_copy_fn *copy;
    void *ctx;
    uint64_t max; /* bytes of the whole: more are RD_ERR_LIMIT */
};

/* Which catalogues the store lists. */
bool archive_catalogue_find(struct archive_repo *repo, struct archive_catalogues *ret,
                            struct rd_err *err);

/* Reads catalogue `number`. RD_ERR_CORRUPT, RD_ERR_TRUNCATED, RD_ERR_UNSUPPORTED: the rest cannot
 * be read. */
bool archive_catalogue_read(struct archive_repo *repo, uint64_t number,
                            const struct archive_catalogue_reader *reader, struct rd_err *err);

/* Writes a new catalogue, under the lock, if the one that was used for this listing lacks enough of
 * the sets, and removes those that are older than the one before it. Also removes what an
 * interrupted upload has left. */
bool archive_catalogue_update(struct archive_repo *repo, const struct archive_sets *sets,
                              struct rd_err *err);

#endif
