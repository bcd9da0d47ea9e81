#include "tools/migrate/position.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

size_t migrate_position_put(char dst[MIGRATE_POSITION_MAX], const struct migrate_position *at)
{
    return (size_t)snprintf(dst, MIGRATE_POSITION_MAX, "%s %llu %llu", at->replid.hex,
                            (unsigned long long)at->offset, (unsigned long long)at->db);
}

bool migrate_position_get(struct rd_slice text, struct migrate_position *ret)
{
    struct migrate_position at;
    if (text.len <= REPL_REPLID_LEN || text.ptr[REPL_REPLID_LEN] != ' ' ||
        !repl_replid_get(rd_slice(text.ptr, REPL_REPLID_LEN), &at.replid))
        return false;
    struct rd_slice rest = rd_slice(text.ptr + REPL_REPLID_LEN + 1, text.len - REPL_REPLID_LEN - 1);
    const uint8_t *blank = rest.len > 0 ? memchr(rest.ptr, ' ', rest.len) : NULL;
    if (blank == NULL)
        return false;
    size_t len = (size_t)(blank - rest.ptr);
    if (!rd_num_get_u64(rd_slice(rest.ptr, len), &at.offset) ||
        !rd_num_get_u64(rd_slice(blank + 1, rest.len - len - 1), &at.db))
        return false;
    *ret = at;
    return true;
}

void migrate_tags_init(struct migrate_tags *tags)
{
    char text[MIGRATE_TAG_MAX];
    unsigned n = 0;
    memset(tags, 0, sizeof *tags);
    for (unsigned i = 0; n < RD_HASH_SLOTS; i++) {
        int len = snprintf(text, sizeof text, "%x", i);
        unsigned slot = rd_hash_slot(rd_slice(text, (size_t)len));
        if (tags->text[slot][0] != '\0')
            continue;
        memcpy(tags->text[slot], text, sizeof text);
        n++;
    }
}

struct rd_slice migrate_key(char dst[MIGRATE_KEY_MAX], const char *name, const char *tag)
{
    int len = tag == NULL ? snprintf(dst, MIGRATE_KEY_MAX, MIGRATE_PREFIX "%s", name)
                          : snprintf(dst, MIGRATE_KEY_MAX, MIGRATE_PREFIX "{%s}:%s", tag, name);
    return rd_slice(dst, (size_t)len);
}

bool migrate_key_is(struct rd_slice key)
{
    size_t len = sizeof MIGRATE_PREFIX - 1;
    return key.len > len && memcmp(key.ptr, MIGRATE_PREFIX, len) == 0;
}

bool migrate_name_is(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strspn(text, allowed);
    return len > 0 && len < MIGRATE_NAME_MAX && text[len] == '\0';
}
