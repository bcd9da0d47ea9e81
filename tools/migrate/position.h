/* position.h - how far the target has come, and where the target keeps it.
 *
 *     struct migrate_position at;
 *     char text[MIGRATE_POSITION_MAX];
 *     if (!migrate_position_get(rd_slice_str("8371… 1500 0"), &at))
 *         ...
 *     size_t len = migrate_position_put(text, &at);
 *
 * A target has groups of keys that a transaction can change together: a single server has one, a
 * cluster one for each slot. Each group has a hash, the position key, in which a field for each
 * source master holds the end of the last command that was applied to the group. It is set in the
 * transaction that applies the commands. The name of the key has a hash tag, so that it is in the
 * slot of the group:
 *
 *     redoubt:migrate:{TAG}:NAME      of a slot
 *     redoubt:migrate:NAME            of a single server
 *
 * Keys of these names are never copied from a source.
 *
 * Threads: any. Nothing is allocated.
 */
#ifndef TOOLS_MIGRATE_POSITION_H
#define TOOLS_MIGRATE_POSITION_H

#include "base/crc16.h"
#include "repl/replid.h"

#define MIGRATE_PREFIX "redoubt:migrate:"

enum {
    MIGRATE_NAME_MAX = 64, /* bytes of the name of a migration */
    MIGRATE_TAG_MAX = 8,
    MIGRATE_KEY_MAX = MIGRATE_NAME_MAX + MIGRATE_TAG_MAX + 24,
    MIGRATE_POSITION_MAX = REPL_REPLID_LEN + 2 * 20 + 4
};

/* The end of a command that is not inside a transaction. */
struct migrate_position {
    struct repl_replid replid;
    uint64_t offset;
    uint64_t db; /* selected there */
};

/* "REPLID OFFSET DB". */
size_t migrate_position_put(char dst[MIGRATE_POSITION_MAX], const struct migrate_position *at);
bool migrate_position_get(struct rd_slice text, struct migrate_position *ret);

/* A short text for each slot whose slot it is. */
struct migrate_tags {
    char text[RD_HASH_SLOTS][MIGRATE_TAG_MAX];
};
void migrate_tags_init(struct migrate_tags *tags);

/* The name of a position key; tag is NULL for a single server. */
struct rd_slice migrate_key(char dst[MIGRATE_KEY_MAX], const char *name, const char *tag);
/* Whether a key is a position key of any migration. */
bool migrate_key_is(struct rd_slice key);

/* Whether a text is the name of a migration: letters, digits, '-', '_' and '.'. */
bool migrate_name_is(const char *text);

#endif
