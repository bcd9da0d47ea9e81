/* place_webdav.h - a repository on a WebDAV server, with the login that the configuration names.
 */
#ifndef BACKUP_PLACE_WEBDAV_H
#define BACKUP_PLACE_WEBDAV_H

#include <stdatomic.h>

#include "archive/store.h"
#include "backup/config.h"

bool backup_is_webdav(const char *where);
/* See backup_open_again() for cancel, which may be NULL. rate: bytes a second; 0: no limit. */
bool backup_open_webdav(struct archive_store **ret, const struct backup_target *target,
                        const char *where, uint64_t rate, const atomic_bool *cancel,
                        struct rd_err *err);

#endif
