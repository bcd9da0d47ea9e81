/* place_azure.h - a repository in Azure Blob Storage by what the configuration calls it; private to
 * backup/places.c.
 */
#ifndef BACKUP_PLACE_AZURE_H
#define BACKUP_PLACE_AZURE_H

#include "backup/places.h"

/* where: azure://ACCOUNT/CONTAINER[/PREFIX]. cancel: see backup_open_again(); NULL: none. */
bool backup_open_azure(struct archive_store **ret, const struct backup_target *target,
                       const char *where, uint64_t rate, const atomic_bool *cancel,
                       struct rd_err *err);

#endif
