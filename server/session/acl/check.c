/* Whether a selector allows a command line. */
#include "server/session/acl/user_impl.h"

#include <strings.h>

#include "engine/glob.h"

/* An empty name matches an empty pattern only, as in redis-server. */
static bool matches(struct rd_slice pattern, struct rd_slice name)
{
    return name.len == 0 ? pattern.len == 0 : engine_glob_match(pattern, name, false);
}

/* ---- commands ---- */

static bool command_allowed(const struct acl_selector *s, const struct acl_line *line)
{
    const struct engine_command *command = line->command;
    if (s->all_commands || (command->flags & ENGINE_CMD_NO_AUTH) != 0 ||
        acl_selector_has(s, command->id))
        return true;
    for (size_t i = 0; i < s->first_args.n && line->argc >= 2; i++) {
        const struct acl_item *item = &s->first_args.items[i];
        struct rd_slice arg = line->argv[1];
        if (item->bits == command->id && item->text.len == arg.len &&
            strncasecmp((const char *)item->text.ptr, (const char *)arg.ptr, arg.len) == 0)
            return true;
    }
    return false;
}

/* ---- keys ---- */

static unsigned uses_of(unsigned key_flags)
{
    unsigned writes = ENGINE_KEY_INSERT | ENGINE_KEY_DELETE | ENGINE_KEY_UPDATE;
    return ((key_flags & ENGINE_KEY_ACCESS) != 0 ? ACL_READS : 0u) |
           ((key_flags & writes) != 0 ? ACL_WRITES : 0u);
}

static bool key_allowed(const struct acl_selector *s, struct rd_slice key, unsigned uses)
{
    for (size_t i = 0; i < s->keys.n; i++)
        if ((s->keys.items[i].bits & uses) == uses && matches(s->keys.items[i].text, key))
            return true;
    return false;
}

static bool keys_allowed(const struct acl_selector *s, struct acl_line *line, size_t *ret_at)
{
    if (s->all_keys || line->command->n_key_specs == 0)
        return true;
    if (!line->has_keys) {
        /* Invalid arguments have no keys: the command will fail. */
        engine_command_keys(line->command, line->argv, line->argc, line->keys, line->argc,
                            &line->n_keys);
        line->has_keys = true;
    }
    for (size_t i = 0; i < line->n_keys; i++) {
        const struct engine_key *key = &line->keys[i];
        if (key_allowed(s, line->argv[key->index], uses_of(key->flags)))
            continue;
        *ret_at = key->index;
        return false;
    }
    return true;
}

/* ---- channels ---- */

enum channel_use { CHANNELS_NONE, CHANNELS_NAMES, CHANNELS_PATTERNS, CHANNELS_FIRST };

/* Unsubscribing is always allowed. */
static enum channel_use channel_use(const struct engine_command *command)
{
    static const struct {
        const char *name;
        enum channel_use use;
    } rows[] = {
        {"subscribe", CHANNELS_NAMES},     {"ssubscribe", CHANNELS_NAMES},
        {"psubscribe", CHANNELS_PATTERNS}, {"publish", CHANNELS_FIRST},
        {"spublish", CHANNELS_FIRST},
    };
    if (command->group != ENGINE_GROUP_PUBSUB)
        return CHANNELS_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(command->name, rows[i].name) == 0)
            return rows[i].use;
    return CHANNELS_NONE;
}

bool acl_channel_allowed(const struct acl_list *channels, struct rd_slice name, bool is_pattern)
{
    for (size_t i = 0; i < channels->n; i++) {
        struct rd_slice pattern = channels->items[i].text;
        if (is_pattern ? rd_slice_eq(pattern, name) : matches(pattern, name))
            return true;
    }
    return false;
}

static bool channels_allowed(const struct acl_selector *s, const struct acl_line *line,
                             size_t *ret_at)
{
    enum channel_use use = s->all_channels ? CHANNELS_NONE : channel_use(line->command);
    size_t end = use == CHANNELS_NONE ? 1 : use == CHANNELS_FIRST ? 2 : line->argc;
    for (size_t i = 1; i < end && i < line->argc; i++) {
        if (acl_channel_allowed(&s->channels, line->argv[i], use == CHANNELS_PATTERNS))
            continue;
        *ret_at = i;
        return false;
    }
    return true;
}

enum acl_verdict acl_selector_check(const struct acl_selector *s, struct acl_line *line,
                                    size_t *ret_at)
{
    if (!command_allowed(s, line))
        return ACL_DENIED_COMMAND;
    if (!keys_allowed(s, line, ret_at))
        return ACL_DENIED_KEY;
    return channels_allowed(s, line, ret_at) ? ACL_OK : ACL_DENIED_CHANNEL;
}
