/* key_index.h - the indexes of keys of the segments of a stream, in a repository.
 *
 *     TARGET/keys/RUN/CHAPTER/NUMBER-START-END-FIRST-LATEST-SINCE-UNTIL.keys[.sealed]
 *
 * The index of a segment has its name, with ".keys" instead of ".seg" and the compression. It is
 * sealed if the segment is. If not, it ends with a digest of its name and bytes. So an index that
 * was damaged, cut, or put in the place of another one is not opened. Segments are complete without
 * their indexes: one may be missing, or be left when its segment is removed.
 *
 *     struct archive_key_indexes list;
 *     if (!archive_key_index_list(&repo, &list, &err))
 *         ...
 *     const struct archive_segment *index = archive_key_index_find(&list, segment);
 *     if (index != NULL && archive_key_index_name(name, &repo, index, &err) &&
 *         store->ops->get(store, name, &src, &err) &&
 *         archive_key_index_open_src(&src, src, name, index, ring, &info, &err))
 *         ...
 *     archive_key_indexes_done(&list);
 *
 * What an index contains is defined by its user (backup/key_index.h).
 */
#ifndef ARCHIVE_KEY_INDEX_H
#define ARCHIVE_KEY_INDEX_H

#include "archive/stream.h"

/* Indexes by the run and number of their segments. `bytes` is the size of the object of the index,
 * and the compression is none. */
struct archive_key_indexes {
    struct archive_segment *list;
    size_t n;
};

bool archive_key_index_list(struct archive_repo *repo, struct archive_key_indexes *ret,
                            struct rd_err *err);
void archive_key_indexes_done(struct archive_key_indexes *indexes);
/* The index of a segment, sealed like it; NULL: there is none. */
const struct archive_segment *archive_key_index_find(const struct archive_key_indexes *indexes,
                                                     const struct archive_segment *segment);

/* The name of the object in the repository, which is also bound into it. RD_ERR_LIMIT. */
bool archive_key_index_name(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo,
                            const struct archive_segment *segment, struct rd_err *err);

/* ---- the bytes of the object, in the repository or elsewhere ---- */

/* Reads an index, which is proved when its end was read without an error, and writes one. Both own
 * `inner`, also if they fail. `info` is that of the seal. */
bool archive_key_index_open_src(struct rd_src **ret, struct rd_src *inner, const char *name,
                                const struct archive_segment *index,
                                const struct rd_seal_ring *ring, struct rd_seal_info *info,
                                struct rd_err *err);
/* key: NULL: it is not sealed. */
bool archive_key_index_open_sink(struct rd_sink **ret, struct rd_sink *inner, const char *name,
                                 const struct rd_seal_key *key,
                                 const uint8_t random[RD_SEAL_RANDOM], struct rd_err *err);

/* ---- changes ---- */

/* A new object, under the lock of the stream. */
bool archive_key_index_put(struct archive_repo *repo, const struct archive_segment *segment,
                           const struct rd_seal_key *key, const uint8_t random[RD_SEAL_RANDOM],
                           struct rd_sink **ret, struct rd_err *err);
/* Whether the repository has it. */
bool archive_key_index_stat(struct archive_repo *repo, const struct archive_segment *segment,
                            bool *ret_there, struct rd_err *err);
/* Under any lock. */
bool archive_key_index_remove(struct archive_repo *repo, const struct archive_segment *index,
                              struct rd_err *err);
/* What interrupted uploads have left, under the lock of the stream; and empty folders. */
void archive_key_index_clean(struct archive_repo *repo);
void archive_key_index_tidy(struct archive_repo *repo);

#endif
