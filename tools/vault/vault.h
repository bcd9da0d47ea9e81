/* vault.h - the configuration of backups as options of a command line, and the loop over all
 * repositories.
 *
 *     struct vault vault;
 *     struct cli_opt opts[VAULT_OPTS];
 *     vault_init(&vault, cli);
 *     size_t n = vault_options(&vault, opts, BACKUP_FOR_REPOSITORY);
 *     opts[n++] = (struct cli_opt){.name = …};
 *     ... cli_parse() ...
 *     if (!vault_load(&vault, cli->args, cli->n_args, &err))
 *         ...
 *     ... vault.config.targets ...
 *     vault_done(&vault);
 *
 * Every key of the configuration is an option of the command line, which wins.
 */
#ifndef TOOLS_VAULT_VAULT_H
#define TOOLS_VAULT_VAULT_H

#include "backup/open.h"
#include "backup/places.h"
#include "backup/system.h"
#include "tools/cli/cli.h"
#include "tools/cli/watch.h"

enum { VAULT_OPTS = BACKUP_KEY_COUNT + 32 };

struct vault_option {
    struct vault *vault;
    enum backup_key key;
};

struct vault {
    struct cli *cli;
    struct rd_watch watch; /* that of cli */
    struct backup_config config;
    struct vault_option options[BACKUP_KEY_COUNT];
};

void vault_init(struct vault *vault, struct cli *cli);
void vault_done(struct vault *vault);

/* Fills opts with --config and the keys of these tools; returns how many. The last entry that the
 * caller does not use must be zero. */
/* "tags": an object, which may be empty. */
void vault_put_tags(struct json_write *json, const struct archive_tag *tags, size_t n);

size_t vault_options(struct vault *vault, struct cli_opt opts[VAULT_OPTS], unsigned mask);

/* backup_config_load() */
bool vault_load(struct vault *vault, char **names, size_t n_names, struct rd_err *err);

/* ---- each.c: all repositories of all targets; one that fails does not keep others from their
 * turn ---- */

struct vault_each {
    struct cli *cli;
    const struct vault *vault;
    enum backup_mode mode;
    struct rd_err *errs; /* BACKUP_STORES of each target: of the repositories that failed */
    int status;          /* CLI_OK, or the exit status of the first of them */
};

typedef bool vault_each_fn(void *ctx, struct backup_open *open, size_t i, struct rd_err *err);

/* vault must be loaded. vault_each_done() is needed in any case. */
bool vault_each_init(struct vault_each *ret, struct cli *cli, const struct vault *vault,
                     enum backup_mode mode, struct rd_err *err);

/* Calls work for each repository that has not failed yet, and reports those that fail. */
void vault_each(struct vault_each *each, vault_each_fn *work, void *ctx);

/* The same; with --json, work writes into an array of this name, and "errors" follows it. */
void vault_each_list(struct vault_each *each, const char *name, vault_each_fn *work, void *ctx);

/* Puts "errors" into the open object. */
void vault_each_put_errors(const struct vault_each *each, struct json_write *json);
void vault_each_done(struct vault_each *each);

#endif
