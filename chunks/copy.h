/* copy.h - files of sets that are stored as chunks, from one repository to another.
 *
 * The copy has the same chunks under the same names, and the same recipe; only the places differ.
 * What the sets of the destination have is not sent again, and neither is what an interrupted copy
 * has sent: packs that are whole are found by their directories. Everything that is sent is proved
 * by its name before it is sealed for the destination, and once more when it is read back.
 *
 *     struct chunks_copier *copier;
 *     if (!chunks_copier_open(&copier, &opts, &sets, &err))
 *         ...
 *     for each set, and each of its files in chunks:
 *         chunks_copier_file(copier, set, file, number, &copy, &err);
 *         ... archive_repo_commit() ...
 *     chunks_copier_close(copier);
 */
#ifndef CHUNKS_COPY_H
#define CHUNKS_COPY_H

#include "archive/repo.h"

struct chunks_copier_opts {
    struct archive_repo *from;
    struct archive_repo *to;       /* locked */
    const struct rd_seal_key *key; /* of the destination; NULL: not sealed */
    bool (*random)(void *ret, size_t size, struct rd_err *err);
};

struct chunks_copier_counts {
    uint64_t n_chunks, n_sent;       /* chunks of the files; of these, those that were sent */
    uint64_t bytes_sent, bytes_read; /* of packs; of the source, without recipes */
    uint64_t n_found;                /* that an interrupted copy had sent */
};

struct chunks_copier;

/* `sets` of the destination: what they have is not sent. opts are copied, what they point to is
 * borrowed. */
bool chunks_copier_open(struct chunks_copier **ret, const struct chunks_copier_opts *opts,
                        struct archive_sets *sets, struct rd_err *err);
/* Copies file `number` of a set that is proved. *ret_file has the object, the sums and what was
 * added in the destination; name, role and plain sums are those of the source. */
bool chunks_copier_file(struct chunks_copier *c, const struct archive_set *set,
                        const struct archive_file *file, unsigned number,
                        struct archive_file *ret_file, struct rd_err *err);
const struct chunks_copier_counts *chunks_copier_counts(const struct chunks_copier *c);
/* NULL is allowed. */
void chunks_copier_close(struct chunks_copier *c);

#endif
