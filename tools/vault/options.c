/* options.c - the keys of the configuration as options. */
#include "tools/vault/vault.h"

/* What may hold a password is taken off the command line, which other users can see. */
static bool on_option(void *ctx, const char *value, struct rd_err *err)
{
    struct vault_option *option = ctx;
    if (!backup_config_set(&option->vault->config, option->key, value, err))
        return false;
    bool heartbeat =
        option->key == BACKUP_KEY_HEARTBEAT_URL || option->key == BACKUP_KEY_HEARTBEAT_FAILED_URL;
    if (heartbeat || (option->key == BACKUP_KEY_SOURCE && strchr(value, '@') != NULL)) {
        union {
            const char *in;
            char *out;
        } argument = {.in = value};
        explicit_bzero(argument.out, strlen(value));
    }
    return true;
}

void vault_init(struct vault *vault, struct cli *cli)
{
    *vault = (struct vault){.cli = cli, .watch = cli_watch(cli)};
}

size_t vault_options(struct vault *vault, struct cli_opt opts[VAULT_OPTS], unsigned mask)
{
    size_t n = 0;
    opts[n++] = (struct cli_opt){.name = "config",
                                 .kind = CLI_STRING,
                                 .arg = "FILE",
                                 .help = "default: " BACKUP_CONFIG,
                                 .string = &vault->config.path};
    for (size_t i = 0; i < BACKUP_KEY_COUNT; i++) {
        const struct backup_key_row *row = backup_key_row((enum backup_key)i);
        if ((row->mask & mask) == 0)
            continue;
        vault->options[i] = (struct vault_option){vault, (enum backup_key)i};
        opts[n++] = (struct cli_opt){.name = row->name,
                                     .kind = CLI_EACH,
                                     .arg = row->arg,
                                     .help = row->help,
                                     .brief = true,
                                     .each = on_option,
                                     .ctx = &vault->options[i]};
    }
    if ((mask & BACKUP_FOR_READING) != 0)
        opts[n++] = (struct cli_opt){.name = "allow-unsealed",
                                     .kind = CLI_FLAG,
                                     .flag = &vault->config.allow_unsealed,
                                     .brief = true,
                                     .help = "although there is a key, also what is not sealed"};
    return n;
}

bool vault_load(struct vault *vault, char **names, size_t n_names, struct rd_err *err)
{
    return backup_config_load(&vault->config, &vault->watch, names, n_names, err);
}

void vault_done(struct vault *vault)
{
    backup_config_done(&vault->config);
}

void vault_put_tags(struct json_write *json, const struct archive_tag *tags, size_t n)
{
    json_key(json, "tags");
    json_obj(json);
    for (size_t i = 0; i < n; i++)
        json_put_str(json, tags[i].name, tags[i].value);
    json_end(json);
}
