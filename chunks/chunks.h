/* chunks.h - files of sets that are stored as chunks, which sets share.
 *
 * docs/format/chunks.md has the format and its reasons. A snapshot is cut at the borders of its
 * keys. The next set stores only the records that the earlier one does not have, and where the rest
 * is. Other files, and what is not understood, are cut by their content.
 *
 *     struct chunks_writer *writer;
 *     if (!chunks_writer_open(&writer, &sink, &opts, &err))
 *         ...
 *     ... rd_sink_write(sink, ...) ...
 *     if (rd_sink_close(sink, &err)) {
 *         chunks_writer_stored(writer);      // of the recipe, for the manifest
 *         ... archive_repo_commit() ...
 *         chunks_writer_keep(writer, &err);  // the state for the next set
 *     }
 *     chunks_writer_free(writer);
 */
#ifndef CHUNKS_CHUNKS_H
#define CHUNKS_CHUNKS_H

#include "archive/repo.h"
#include "base/seal.h"
#include "data/filter.h"
#include "data/spool.h"

/* ---- writing ---- */

struct chunks_opts {
    struct archive_repo *repo;       /* locked */
    struct archive_sets *sets;       /* of the repository, among which a parent is; NULL: none */
    const char *id;                  /* of the new set */
    const struct archive_file *file; /* name, object, role */
    unsigned number;                 /* of the file in the set */
    const struct rd_seal_key *key;   /* NULL: not sealed */
    int level;                       /* of zstd; 0: its default */
    const char *state;               /* path of the state that is kept between sets; NULL: none */
    bool (*random)(void *ret, size_t size, struct rd_err *err);
    const char *parent; /* out of chunks_writer_open(): NULL, or the id of the parent */
};

struct chunks_writer;

/* opts and what it points to are borrowed until chunks_writer_free(). Closing the sink writes the
 * packs and the recipe, which is the object of the file. */
bool chunks_writer_open(struct chunks_writer **ret, struct rd_sink **ret_sink,
                        struct chunks_opts *opts, struct rd_err *err);
/* After the sink was closed: size and digests of the recipe. */
const struct archive_sums *chunks_writer_stored(const struct chunks_writer *w);
/* Bytes that were added to the repository in packs. */
uint64_t chunks_writer_added(const struct chunks_writer *w);
/* Keeps the state: the set exists. Not being able to is no failure of the set. */
bool chunks_writer_keep(struct chunks_writer *w, struct rd_err *err);
void chunks_writer_free(struct chunks_writer *w);

/* ---- reading ---- */

/* The bytes of a file of a set that is proved (archive_set_prove()). At its end it fails unless
 * they are those of the manifest. set and ring are borrowed. */
bool chunks_open_src(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                     const struct archive_file *file, const struct rd_seal_ring *ring,
                     struct rd_err *err);

/* What was left out of a snapshot. */
struct chunks_lost {
    uint64_t n_records; /* of keys, and of what is between keys */
};

/* What is left of a snapshot if chunks of it are damaged or missing: all records whose chunks can
 * be read, as a snapshot with a checksum of its own. lost is counted while it is read, and
 * borrowed. RD_ERR_UNSUPPORTED: records of this file cannot be left out. Fails if the order of the
 * file cannot be read. */
bool chunks_open_rest(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      struct chunks_lost *lost, struct rd_err *err);

/* What a lookup read. */
struct chunks_cost {
    uint64_t n_requests, n_bytes;
    uint64_t set_bytes; /* that reading the whole file would take */
};

/* A snapshot of the keys of a file that may match a filter, for which only the chunks are read that
 * may have them: by their names, by what they begin with, and by their slots. Other filters make no
 * difference. *ret NULL: read all of the file, because the filter does not name keys, most chunks
 * may have them, or they cannot be found in this file. */
bool chunks_open_keys(struct rd_src **ret, struct archive_repo *repo, const struct archive_set *set,
                      const struct archive_file *file, const struct rd_seal_ring *ring,
                      const struct filter *filter, struct chunks_cost *cost, struct rd_err *err);

/* What was taken of an older version of a file, and what was read; known when the source is closed.
 */
struct chunks_over {
    char id[ARCHIVE_ID_MAX]; /* the set that the older version is of */
    uint64_t kept;           /* bytes */
    uint64_t n_requests, n_bytes;
};

/* As chunks_open_src(), with a file that is the same file of another one of these sets, as its
 * digest shows: what it has is taken from it, and only the chunks with other items are read. *ret
 * NULL: it is of no set, or of no use. At its end the source fails unless all bytes are those of
 * the manifest, for example because the older file was changed. old, sets and counts are
 * borrowed. */
bool chunks_open_over(struct rd_src **ret, struct archive_repo *repo, struct archive_sets *sets,
                      const struct archive_set *set, const struct archive_file *file,
                      const struct rd_seal_ring *ring, const struct spool *old,
                      struct chunks_over *counts, struct rd_err *err);

#endif
