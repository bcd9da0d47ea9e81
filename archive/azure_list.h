/* azure_list.h - reads the lists of Azure Blob Storage; private to archive/.
 *
 * Source: "List Blobs" in the documentation of Azure Storage.
 */
#ifndef ARCHIVE_AZURE_LIST_H
#define ARCHIVE_AZURE_LIST_H

#include "archive/page.h"

/* A page of a list: each(arg, object) is called for every object; its name is that of the blob
 * after `skip` bytes, which are at most those of prefix. *ret_marker: where the list continues, or
 * "". RD_ERR_PROTOCOL if the document is not a whole list, does not say whether it continues, or
 * has a blob whose name does not begin with prefix; then nothing is called. */
bool archive_azure_page(struct rd_slice xml, const char *prefix, size_t skip, archive_each_fn *each,
                        void *arg, char ret_marker[ARCHIVE_POSITION_MAX], struct rd_err *err);

#endif
