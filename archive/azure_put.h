/* azure_put.h - new objects of a store in Azure; private to archive/.
 */
#ifndef ARCHIVE_AZURE_PUT_H
#define ARCHIVE_AZURE_PUT_H

#include "archive/store.h"

/* See struct archive_store_ops. */
bool archive_azure_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *err);

#endif
