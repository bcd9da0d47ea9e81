/* s3_put.h - new objects of a store in S3; private to archive/.
 */
#ifndef ARCHIVE_S3_PUT_H
#define ARCHIVE_S3_PUT_H

#include "archive/store.h"

/* See struct archive_store_ops. */
bool archive_s3_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                    struct rd_err *err);
void archive_s3_clean(struct archive_store *store, const char *folder);

#endif
