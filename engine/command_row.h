/* command_row.h - the words of a row of the command table; engine/commands/table.h has their
 * meaning.
 *
 *     #include "engine/command_row.h"     // the last one: its words are short
 *
 *     static const struct engine_command row = {
 *         ENGINE_ROW(run_near, "near", GENERIC, ENGINE, 2, READONLY | FAST, A_KEYSPACE, "1.0.0",
 *                    "Returns the keys that are near", "O(N)", KEY(1, RO | ACCESS) ARGS("key@0"))};
 *
 * For engine/command.c, which has the table, and for sources with rows that are added to it at run
 * time (engine_command_add()).
 */
#ifndef ENGINE_COMMAND_ROW_H
#define ENGINE_COMMAND_ROW_H

#include "engine/command.h"

#undef NO_DATA /* of netdb.h */

enum {
#define X(name, bit, word) name = 1 << (bit),
    ENGINE_CMD_FLAGS(X)
#undef X
};

enum {
#define X(name, bit, word) A_##name = 1 << (bit),
    ENGINE_ACL_CATEGORIES(X)
#undef X
};

enum {
#define X(name, bit, word) name = 1 << (bit),
    ENGINE_KEY_FLAGS(X)
#undef X
};

enum {
    REDIS_8_0 = ENGINE_LEVEL_REDIS_8_0,
    REDIS_8_6 = ENGINE_LEVEL_REDIS_8_6,
    VALKEY_9_1 = ENGINE_LEVEL_VALKEY_9_1,
    SENTINEL = ENGINE_LEVEL_SENTINEL
};

#define INDEX(at)           .begin = ENGINE_BEGIN_INDEX, .pos = (at)
#define KEYWORD(word, from) .begin = ENGINE_BEGIN_KEYWORD, .keyword = (word), .pos = (from)
#define RANGE(to, by, half) .find = ENGINE_FIND_RANGE, .last = (to), .step = (by), .limit = (half)
#define KEYNUM(num, from, by)                                                                      \
    .find = ENGINE_FIND_KEYNUM, .key_num = (num), .first = (from), .step = (by)

#define SPEC(begin, find, bits)        {begin, find, .flags = (bits)},
#define NOTED(begin, find, bits, text) {begin, find, .flags = (bits), .note = (text)},
#define UNKNOWN(bits, text)                                                                        \
    {.begin = ENGINE_BEGIN_UNKNOWN, .find = ENGINE_FIND_UNKNOWN, .flags = (bits), .note = (text)},

#define KEYS(from, to, by, specs)                                                                  \
    .first_key = (from), .last_key = (to), .key_step = (by),                                       \
    .key_specs = (const struct engine_key_spec[]){specs},                                          \
    .n_key_specs =                                                                                 \
        sizeof((const struct engine_key_spec[]){specs}) / sizeof(struct engine_key_spec),
#define KEY(at, bits)             KEYS(at, at, 1, SPEC(INDEX(at), RANGE(0, 1, 0), bits))
#define KEY_NOTED(at, bits, text) KEYS(at, at, 1, NOTED(INDEX(at), RANGE(0, 1, 0), bits, text))
#define KEYS_FROM(at, bits)       KEYS(at, -1, 1, SPEC(INDEX(at), RANGE(-1, 1, 0), bits))

#define TIPS(text)            .tips = (text),
#define SYSCMD                .syscmd = true,
#define DEPRECATED(ver, text) .deprecated_since = (ver), .replaced_by = (text),
#define HISTORY(text)         .history = (text),
#define ARGS(text)            .args = (text),
#define LEVELS(bits)          .levels = (bits),

/* Categories implied by flags. */
#define CATEGORIES(bits, own)                                                                      \
    ((own) | (((bits)&WRITE) ? A_WRITE : 0) |                                                      \
     (((bits)&READONLY) && !((own)&A_SCRIPTING) ? A_READ : 0) |                                    \
     (((bits)&ADMIN) ? A_ADMIN | A_DANGEROUS : 0) | (((bits)&PUBSUB) ? A_PUBSUB : 0) |             \
     (((bits)&FAST) ? A_FAST : A_SLOW) | (((bits)&BLOCKING) ? A_BLOCKING : 0))

enum {
    OWNER_ENGINE = ENGINE_OWNER_ENGINE,
    OWNER_ENGINE_BOX = ENGINE_OWNER_ENGINE,
    OWNER_SERVER = ENGINE_OWNER_SERVER,
    OWNER_LATER = ENGINE_OWNER_LATER
};

/* One row: the function that runs it (or NULL), its name and the rest. `more` is text with commas:
 * passed on unchanged. */
#define ENGINE_ROW(fn, text, in, own, n_args, bits, cats, ver, doc, cost, ...)                     \
    .run = fn, .name = (text), .name_len = sizeof(text) - 1, .flags = (bits),                      \
    .acl = CATEGORIES(bits, cats), .arity = (n_args), .group = ENGINE_GROUP_##in,                  \
    .owner = OWNER_##own, .since = (ver), .summary = (doc), .complexity = (cost), __VA_ARGS__

#endif
