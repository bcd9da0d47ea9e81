/* fuzz_config.c - the reader of the configuration of backups takes any bytes.
 *
 * What it accepts has targets with good names, each with a repository, and texts that options could
 * have given as well. The rules of `keep` are read, too.
 */
#include "archive/retain.h"
#include "tools/vault/vault.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_config: %s\n", what);
    abort();
}

static void check_target(const struct backup_target *target)
{
    struct archive_retention rules;
    struct rd_err err = {0};
    bool flag;
    check(archive_name_ok(target->name), "the name of a target");
    check(backup_get(target, BACKUP_KEY_REPOSITORY) != NULL, "a target without a repository");
    for (size_t i = 0; i < BACKUP_KEY_COUNT; i++) {
        const char *value = backup_get(target, (enum backup_key)i);
        check(value == NULL || value[0] != '\0', "an empty value");
    }
    const char *keep = backup_get(target, BACKUP_KEY_KEEP);
    if (keep != NULL && !archive_retention_parse(&rules, rd_slice_str(keep), &err))
        check(err.code == RD_ERR_USAGE, "rules that fail without an error");
    if (!backup_get_bool(target, BACKUP_KEY_SCAN, &flag, &err))
        check(err.code == RD_ERR_USAGE, "a word that fails without an error");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cli cli;
    struct vault vault;
    struct rd_err err = {0};
    char path[40];
    int fd = memfd_create("fuzz_config", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    vault_init(&vault, &cli);
    vault.config.path = path;
    if (vault_load(&vault, NULL, 0, &err)) {
        check(vault.config.n_targets > 0 && memchr(data, '\0', size) == NULL,
              "no target, or a zero byte");
        for (size_t i = 0; i < vault.config.n_targets; i++)
            check_target(&vault.config.targets[i]);
    } else {
        check(err.code != RD_ERR_OK && err.text[0] != '\0', "a failure without an error");
    }
    vault_done(&vault);
    close(fd);
    return 0;
}
