#include "server/settings/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static struct names_entry *renamed(const struct names *names, const struct engine_command *command)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->list[i].command == command)
            return &names->list[i];
    return NULL;
}

const struct engine_command *names_find(const struct names *names, struct rd_slice name)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->list[i].name[0] != 0 && strlen(names->list[i].name) == name.len &&
            strncasecmp(names->list[i].name, (const char *)name.ptr, name.len) == 0)
            return names->list[i].command;
    const struct engine_command *command = engine_command_find(name);
    return command != NULL && renamed(names, command) != NULL ? NULL : command;
}

bool names_rename(struct names *names, struct rd_slice from, struct rd_slice to)
{
    const struct engine_command *command = names_find(names, from);
    char *name = rd_alloc(to.len + 1);
    struct names_entry *grown = rd_realloc(names->list, (names->n + 1) * sizeof *names->list);
    if (name == NULL || grown == NULL)
        abort(); /* it cannot continue without a configuration */
    names->list = grown;
    if (command == NULL || (to.len > 0 && names_find(names, to) != NULL)) {
        rd_free(name);
        return false;
    }
    memcpy(name, to.ptr, to.len);
    name[to.len] = 0;
    struct names_entry *before = renamed(names, command);
    if (before != NULL) {
        rd_free(before->name);
        before->name = name;
    } else {
        names->list[names->n++] = (struct names_entry){.command = command, .name = name};
    }
    return true;
}

bool names_is_callable(const struct names *names, const struct engine_command *command)
{
    const struct names_entry *entry =
        renamed(names, command->container != NULL ? command->container : command);
    return entry == NULL || entry->name[0] != 0;
}

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        rd_free(names->list[i].name);
    rd_free(names->list);
    *names = (struct names){0};
}
