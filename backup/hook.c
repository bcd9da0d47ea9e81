#include "backup/hook.h"

#include "backup/system.h"

#include <inttypes.h>
#include <stdio.h>

bool backup_hook(const struct backup_target *target, enum backup_hook hook,
                 const struct archive_manifest *m, const struct rd_err *failed, struct rd_err *err)
{
    static const enum backup_key keys[] = {BACKUP_KEY_HOOK_PRE, BACKUP_KEY_HOOK_POST,
                                           BACKUP_KEY_HOOK_FAILED};
    const char *command = backup_get(target, keys[hook]);
    char text[1024] = "", bytes[32];
    uint64_t stored = 0;
    if (command == NULL)
        return true;
    if (failed != NULL)
        rd_err_render(failed, text, sizeof text);
    for (size_t i = 0; i < m->n_files; i++)
        stored += archive_file_bytes(&m->files[i]);
    snprintf(bytes, sizeof bytes, "%" PRIu64, stored);
    const char *const env[] = {"REDOUBT_TARGET",
                               target->name,
                               "REDOUBT_SET",
                               hook == BACKUP_HOOK_POST ? m->id : "",
                               "REDOUBT_BYTES",
                               bytes,
                               "REDOUBT_REPOSITORY",
                               backup_get(target, BACKUP_KEY_REPOSITORY),
                               "REDOUBT_ERROR",
                               text,
                               NULL};
    return backup_run(backup_key_name(keys[hook]), command, env, 0, NULL, err);
}
