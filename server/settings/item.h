/* item.h - one directive: how its value is parsed, printed and checked. Private to
 * server/settings/, main.c and server/surface/cmd/config.c.
 *
 *     const struct settings_item *item = settings_item_find("maxmemory");
 *     struct settings_reading reading = {0};
 *     char *words[] = {"1gb"};
 *     if (!settings_item_set(s, item, 1, words, &reading))
 *         ... reading.why, as 7.0 words it ...
 *
 * Setting a value has no other effect; server/surface/config/apply.c applies it.
 */
#ifndef SERVER_SETTINGS_ITEM_H
#define SERVER_SETTINGS_ITEM_H

#include "server/settings/settings.h"

enum settings_kind {
    SETTINGS_KIND_BOOL,
    SETTINGS_KIND_INT,
    SETTINGS_KIND_SIZE,
    SETTINGS_KIND_STR,
    SETTINGS_KIND_ENUM,
    SETTINGS_KIND_SPECIAL
};

struct settings_word {
    const char *word; /* NULL: the end */
    int value;
};

/* The source of a value, and its error. */
struct settings_reading {
    bool at_start;  /* file and command line: several `save` lines add up */
    bool save_seen; /* the first of them has replaced the default */
    char why[512];
};

struct settings_special {
    bool (*set)(struct settings *s, size_t n, char *const *words, struct settings_reading *reading);
    void (*get)(const struct settings *s, struct rd_buf *ret);
};

struct settings_item {
    const char *name;
    const char *alias; /* NULL: none */
    const char *value; /* the default, as text; for numbers and switches see settings_init() */
    enum settings_kind kind;
    unsigned flags; /* enum settings_flag */
    size_t offset;  /* in struct settings */
    int64_t min;
    uint64_t max;
    const struct settings_word *words;
    const struct settings_special *special;
};

extern const struct settings_item settings_items[];
extern const size_t settings_n_items;

/* By name or alias, case-insensitive; NULL: there is none. O(items) */
const struct settings_item *settings_item_find(const char *name);

/* Returns whether it is a password, whose value is bytes rather than text. */
bool settings_item_is_password(const struct settings_item *item);
void settings_item_set_password(struct settings *s, const struct settings_item *item,
                                struct rd_slice password);

/* All or nothing. */
bool settings_item_set(struct settings *s, const struct settings_item *item, size_t n,
                       char *const *words, struct settings_reading *reading);
void settings_item_get(const struct settings *s, const struct settings_item *item,
                       struct rd_buf *ret);

/* Parses "1gb", case-insensitive; false: not a number. As in Redis 7.0, "" is 0, a number too large
 * for 64 bits is the largest one, and a unit can overflow. */
bool settings_item_memory(const char *text, uint64_t *ret);

/* The check of a text value. */
bool settings_item_sound(const struct settings_item *item, const char *text,
                         struct settings_reading *reading);

/* server/settings/special.c */
#define X(field, name, alias, value, flags) extern const struct settings_special settings_##field;
SETTINGS_SPECIAL(X)
#undef X

#endif
