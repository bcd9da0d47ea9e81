/* webdav_put.h - new objects of a store on a WebDAV server; private to archive/.
 */
#ifndef ARCHIVE_WEBDAV_PUT_H
#define ARCHIVE_WEBDAV_PUT_H

#include "archive/store.h"

/* See struct archive_store_ops. */
bool archive_webdav_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                        struct rd_err *err);

#endif
