/* hook.h - the commands of a target that run before and after a backup.
 */
#ifndef BACKUP_HOOK_H
#define BACKUP_HOOK_H

#include "archive/manifest.h"
#include "backup/config.h"

enum backup_hook { BACKUP_HOOK_PRE, BACKUP_HOOK_POST, BACKUP_HOOK_FAILED };

bool backup_hook(const struct backup_target *target, enum backup_hook hook,
                 const struct archive_manifest *m, const struct rd_err *failed, struct rd_err *err);

#endif
