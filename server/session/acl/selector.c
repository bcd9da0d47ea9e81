/* The commands that a selector allows: a bit for each entry of the command table. */
#include "server/session/acl/user_impl.h"

const struct engine_command *acl_command(struct rd_slice path, enum engine_level level)
{
    const struct engine_command *command = engine_command_find_path(path);
    return command != NULL && engine_command_at_level(command, level) ? command : NULL;
}

static void set_bit(struct acl_selector *s, unsigned id, bool on)
{
    uint64_t bit = (uint64_t)1 << id % 64;
    if (on) {
        s->commands[id / 64] |= bit;
    } else {
        s->commands[id / 64] &= ~bit;
        s->all_commands = false;
    }
}

static void forget_first_args(struct acl_selector *s, unsigned id)
{
    for (size_t i = s->first_args.n; i-- > 0;)
        if (s->first_args.items[i].bits == id)
            acl_list_remove(&s->first_args, i);
}

void acl_selector_command(struct acl_selector *s, const struct engine_command *command, bool on)
{
    set_bit(s, command->id, on);
    forget_first_args(s, command->id);
    for (unsigned i = 0; i < command->n_subcommands; i++)
        set_bit(s, command->subcommands[i].id, on);
}

void acl_selector_category(struct acl_selector *s, uint32_t category, bool on)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        if ((c->acl & category) != 0 && engine_command_at_level(c, s->level))
            acl_selector_command(s, c, on);
}

void acl_selector_everything(struct acl_selector *s, bool on)
{
    memset(s->commands, on ? 0xff : 0, sizeof s->commands);
    s->all_commands = on;
    acl_list_clear(&s->first_args);
}

void acl_categories(enum engine_level level, struct acl_categories *ret)
{
    *ret = (struct acl_categories){0};
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;)
        for (unsigned i = 0; i < ACL_CATEGORIES; i++)
            if ((c->acl >> i & 1) != 0 && engine_command_at_level(c, level))
                ret->commands[i][c->id / 64] |= (uint64_t)1 << c->id % 64;
}
