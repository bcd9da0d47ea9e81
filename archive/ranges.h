/* ranges.h - a source over an object of a remote store, read in ranges; private to archive/.
 *
 * Each range is a separate request. The store repeats it if the network fails, so that a disconnect
 * costs one range and not the whole object.
 */
#ifndef ARCHIVE_RANGES_H
#define ARCHIVE_RANGES_H

#include "archive/store.h"
#include "base/buf.h"

enum { ARCHIVE_RANGE = 4 * 1024 * 1024 };

/* Appends exactly the bytes from `offset` to `offset + len` of the object to *ret. */
typedef bool (*archive_range_fn)(struct archive_store *store, const char *name, uint64_t offset,
                                 size_t len, struct rd_buf *ret, struct rd_err *err);

/* size is the size of the whole object; the store must outlive the source. */
bool archive_ranges_open(struct rd_src **ret, struct archive_store *store, const char *name,
                         uint64_t size, archive_range_fn get, struct rd_err *err);

#endif
