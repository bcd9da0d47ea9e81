#include "aof/check/names.h"

#include "aof/commands.h"

static bool is_name(struct rd_slice name, const char *lower)
{
    size_t len = strlen(lower);
    if (name.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((name.ptr[i] | 0x20) != (uint8_t)lower[i])
            return false;
    return true;
}

static enum aof_name_kind kind_of(struct rd_slice name, unsigned *ret_min_args)
{
    bool known = aof_command_look_up(name, ret_min_args);
    if (is_name(name, "multi"))
        return AOF_NAME_MULTI;
    if (is_name(name, "exec"))
        return AOF_NAME_EXEC;
    if (is_name(name, "discard"))
        return AOF_NAME_DISCARD;
    return known ? AOF_NAME_PLAIN : AOF_NAME_UNKNOWN;
}

static void count(struct aof_names *names, struct rd_slice name, struct aof_unknown_name **ret_new)
{
    size_t keep = name.len < AOF_UNKNOWN_NAME_MAX ? name.len : AOF_UNKNOWN_NAME_MAX;
    for (size_t i = 0; i < names->n_unknown; i++) {
        struct aof_unknown_name *s = &names->unknown[i];
        if (rd_slice_eq(rd_slice(s->name, s->len), rd_slice(name.ptr, keep))) {
            s->n++;
            return;
        }
    }
    if (names->n_unknown == AOF_UNKNOWN_NAMES) {
        names->n_more++;
        return;
    }
    struct aof_unknown_name *s = &names->unknown[names->n_unknown++];
    *s = (struct aof_unknown_name){.len = keep, .n = 1};
    if (keep > 0)
        memcpy(s->name, name.ptr, keep);
    *ret_new = s;
}

enum aof_name_kind aof_names_look_up_slow(struct aof_names *names, struct aof_name_slot *slot,
                                          const uint64_t *words, struct rd_slice name, size_t argc,
                                          struct aof_unknown_name **ret_new)
{
    unsigned min_args;
    enum aof_name_kind kind = kind_of(name, &min_args);
    if (slot != NULL) {
        memcpy(slot->words, words, sizeof slot->words);
        slot->len = name.len;
        slot->kind = kind;
        slot->min_args = min_args;
    }
    if (kind == AOF_NAME_UNKNOWN)
        count(names, name, ret_new);
    return argc >= min_args ? kind : AOF_NAME_SHORT;
}
