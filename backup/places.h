/* places.h - a repository by what the configuration calls it.
 */
#ifndef BACKUP_PLACES_H
#define BACKUP_PLACES_H

#include <stdatomic.h>

#include "archive/store.h"
#include "backup/open.h"

bool backup_open_store(struct archive_store **ret, const struct backup_target *target,
                       const char *where, enum backup_mode mode, struct rd_err *err);

/* The same store once more, for another thread. Requests are tried once, and end when *cancel
 * becomes true. */
bool backup_open_again(struct archive_store **ret, const struct backup_target *target,
                       const char *where, const atomic_bool *cancel, struct rd_err *err);

#endif
