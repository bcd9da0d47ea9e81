/* transfer.h - undoes what a transfer did to a snapshot.
 *
 * A snapshot that was taken from a connection begins with the replies of the master, and the output
 * of a program may have been written into the same file. A terminal, an editor or a conversion
 * changes line ends, or takes bytes for characters and writes them as UTF-8. All of this can be
 * undone exactly, and the checksum then proves the snapshot.
 */
#ifndef RDB_RECOVER_TRANSFER_H
#define RDB_RECOVER_TRANSFER_H

#include "base/src.h"
#include "rdb/salvage.h"

struct rdb_transfer {
    bool found;
    unsigned text;          /* enum rdb_text_change. `at`, `len` and `after` are without it */
    enum rdb_before before; /* what precedes the snapshot */
    uint64_t at;            /* where the snapshot begins */
    uint64_t len;           /* of the snapshot, with bytes after it that were not recognised */
    uint64_t after;         /* bytes after the snapshot that were */
};

/* `text`: the changes that are considered, as bits of enum rdb_text_change.
 *
 * Reads as much of the source as is needed to exclude changes of the text: of a snapshot without
 * them a small part. */
bool rdb_recover_find_transfer(struct rd_src *src, unsigned text, struct rdb_transfer *ret,
                               struct rd_err *err);

/* A whole snapshot that ends with the source and begins in it, after the beginning of another one:
 * its checksum matches. ret->found is false if there is none. */
bool rdb_recover_find_last(struct rd_src *src, struct rdb_transfer *ret, struct rd_err *err);

/* A source over `inner` that returns the bytes of the snapshot. The caller keeps `inner`, which
 * must outlive it. */
bool rdb_recover_open_restored(struct rd_src **ret, struct rd_src *inner,
                               const struct rdb_transfer *transfer, struct rd_err *err);

#endif
