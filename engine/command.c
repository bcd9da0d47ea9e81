#include "engine/command.h"

#include <stdatomic.h>
#include <strings.h>

#include "base/api.h"
#include "engine/cmd/cmd.h"

/* ---- the table's vocabulary ---- */

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

/* A number for each entry. END takes the number after the last subcommand. */
enum {
#define CMD(id, ...)      ID_##id,
#define SUB(box, id, ...) ID_##box##_##id,
#define END(id)           ID_END_##id, ID_BACK_##id = ID_END_##id - 1,
    ENGINE_COMMANDS(CMD, CMD, SUB, END) N_COMMANDS
#undef CMD
#undef SUB
#undef END
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

/* The function of an entry, by owner. */
#define RUN_ENGINE(id)     engine_cmd_##id
#define RUN_ENGINE_BOX(id) NULL
#define RUN_SERVER(id)     NULL
#define RUN_LATER(id)      NULL

enum {
    OWNER_ENGINE = ENGINE_OWNER_ENGINE,
    OWNER_ENGINE_BOX = ENGINE_OWNER_ENGINE,
    OWNER_SERVER = ENGINE_OWNER_SERVER,
    OWNER_LATER = ENGINE_OWNER_LATER
};

/* ---- the table ---- */

static const struct engine_command commands[N_COMMANDS];

/* `more` is text with commas: passed on unchanged. */
#define ENTRY(number, fn, text, in, own, n_args, bits, cats, ver, doc, cost, ...)                  \
    .run = fn, .name = (text), .name_len = sizeof(text) - 1, .flags = (bits),                      \
    .acl = CATEGORIES(bits, cats), .arity = (n_args), .id = (number), .group = ENGINE_GROUP_##in,  \
    .owner = OWNER_##own, .since = (ver), .summary = (doc), .complexity = (cost), __VA_ARGS__

#define CMD(id, text, in, own, n_args, bits, cats, ver, doc, cost, more)                           \
    {ENTRY(ID_##id, RUN_##own(id), text, in, own, n_args, bits, cats, ver, doc, cost, more)},

#define BOX(id, text, in, own, n_args, bits, cats, ver, doc, cost, more)                           \
    {ENTRY(ID_##id, RUN_##own(id), text, in, own, n_args, bits, cats, ver, doc, cost, more)        \
         .subcommands = &commands[ID_##id + 1],                                                    \
     .n_subcommands = ID_END_##id - ID_##id - 1},

#define SUB(box, id, text, in, own, n_args, bits, cats, ver, doc, cost, more)                      \
    {ENTRY(ID_##box##_##id, RUN_##own(box##_##id), text, in, own, n_args, bits, cats, ver, doc,    \
           cost, more)                                                                             \
         .container = &commands[ID_##box],                                                         \
     .own_name_at = sizeof(#box)},

#define END(id)

static const struct engine_command commands[N_COMMANDS] = {ENGINE_COMMANDS(CMD, BOX, SUB, END)};

const struct engine_command *engine_command_next(const struct engine_command *cmd)
{
    size_t next = cmd == NULL ? 0 : (size_t)cmd->id + 1;
    return next < N_COMMANDS ? &commands[next] : NULL;
}

size_t engine_command_count(void)
{
    return N_COMMANDS;
}

/* Of the commands of a cluster, only RESET and those that write can change keys. 2.6 and 2.8 log
 * SAVE. */
bool engine_command_has_no_data(const struct engine_command *cmd)
{
    return cmd->group == ENGINE_GROUP_PUBSUB || (cmd->flags & ENGINE_CMD_NO_DATA) != 0 ||
           (cmd->group == ENGINE_GROUP_CLUSTER && (cmd->flags & ENGINE_CMD_WRITE) == 0 &&
            strcmp(cmd->name, "cluster|reset") != 0);
}

/* ---- look-up ----
 *
 * A name becomes a key of four words: its letters, folded to lower case eight at a time, and its
 * length with its container. A small hash table maps it to the number of an entry and its key,
 * without reading the entry. Both are built at the first lookup, by every thread that comes before
 * they are ready: all write the same values. */

enum { NAME_MAX_LEN = 24, SLOTS_LOG2 = 10, SLOTS = 1 << SLOTS_LOG2 };

_Static_assert(2 * N_COMMANDS < SLOTS, "the hash table stays sparse");

struct key {
    uint64_t head;
    uint64_t tail;
    uint64_t middle;
    uint64_t rest;
};

struct shared_key {
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    _Atomic uint64_t middle;
    _Atomic uint64_t rest;
};

static _Atomic uint16_t slots[SLOTS]; /* id + 1; 0: free */
static struct shared_key keys[N_COMMANDS];
static atomic_bool slots_ready;

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t half_at(const uint8_t *at)
{
    uint32_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

static inline uint64_t fold(uint64_t word)
{
    const uint64_t each = 0x0101010101010101;
    uint64_t low = word & (each * 0x7f);
    uint64_t from_a = low + each * (0x80 - 'A');
    uint64_t past_z = low + each * (0x7f - 'Z');
    return word | ((from_a ^ past_z) & ~word & (each * 0x80)) >> 2;
}

/* The loads overlap for lengths between two sizes. box: 0, or the container's id + 1. */
static inline struct key key_of(const uint8_t *name, size_t len, size_t box)
{
    struct key key = {.rest = len | (uint64_t)box << 8};
    if (len >= 8) {
        key.head = fold(word_at(name));
        key.tail = fold(word_at(name + len - 8));
        if (len > 16)
            key.middle = fold(word_at(name + 8));
    } else if (len >= 4) {
        key.head = fold(half_at(name) | half_at(name + len - 4) << 32);
    } else if (len > 0) {
        key.head = fold(name[0] | (uint64_t)name[len / 2] << 8 | (uint64_t)name[len - 1] << 16);
    }
    return key;
}

static inline size_t slot_of(const struct key *key)
{
    uint64_t h = (key->head + key->rest) * 0x9e3779b97f4a7c15;
    h ^= (h >> 32) ^ key->tail ^ key->middle << 1;
    return (size_t)((h * 0xd6e8feb86659fd93) >> (64 - SLOTS_LOG2));
}

static void share_key(struct shared_key *dst, const struct key *key)
{
    atomic_store_explicit(&dst->head, key->head, memory_order_relaxed);
    atomic_store_explicit(&dst->tail, key->tail, memory_order_relaxed);
    atomic_store_explicit(&dst->middle, key->middle, memory_order_relaxed);
    atomic_store_explicit(&dst->rest, key->rest, memory_order_relaxed);
}

static inline bool same_key(struct shared_key *shared, const struct key *key)
{
    return ((atomic_load_explicit(&shared->head, memory_order_relaxed) ^ key->head) |
            (atomic_load_explicit(&shared->tail, memory_order_relaxed) ^ key->tail) |
            (atomic_load_explicit(&shared->middle, memory_order_relaxed) ^ key->middle) |
            (atomic_load_explicit(&shared->rest, memory_order_relaxed) ^ key->rest)) == 0;
}

static void make_slots(void)
{
    uint16_t made[SLOTS] = {0};
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct engine_command *cmd = &commands[i];
        size_t box = cmd->container == NULL ? 0 : (size_t)cmd->container->id + 1;
        struct key key = key_of((const uint8_t *)cmd->name + cmd->own_name_at,
                                (size_t)(cmd->name_len - cmd->own_name_at), box);
        size_t at = slot_of(&key);
        while (made[at] != 0)
            at = (at + 1) % SLOTS;
        made[at] = (uint16_t)(i + 1);
        share_key(&keys[i], &key);
    }
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store_explicit(&slots[i], made[i], memory_order_relaxed);
    atomic_store_explicit(&slots_ready, true, memory_order_release);
}

static inline const struct engine_command *find(struct rd_slice name, size_t box)
{
    if (RD_UNLIKELY(name.len - 1 >= NAME_MAX_LEN))
        return NULL;
    if (RD_UNLIKELY(!atomic_load_explicit(&slots_ready, memory_order_acquire)))
        make_slots();
    struct key key = key_of(name.ptr, name.len, box);
    for (size_t at = slot_of(&key);; at = (at + 1) % SLOTS) {
        size_t id = atomic_load_explicit(&slots[at], memory_order_relaxed);
        if (id == 0)
            return NULL;
        if (RD_LIKELY(same_key(&keys[id - 1], &key)))
            return &commands[id - 1];
    }
}

const struct engine_command *engine_command_find(struct rd_slice name)
{
    return find(name, 0);
}

const struct engine_command *engine_command_find_sub(const struct engine_command *container,
                                                     struct rd_slice name)
{
    return container->n_subcommands == 0 ? NULL : find(name, (size_t)container->id + 1);
}

const struct engine_command *engine_command_find_path(struct rd_slice path)
{
    const uint8_t *bar = path.len == 0 ? NULL : memchr(path.ptr, '|', path.len);
    if (bar == NULL)
        return engine_command_find(path);
    size_t len = (size_t)(bar - path.ptr);
    const struct engine_command *box = engine_command_find(rd_slice(path.ptr, len));
    if (box == NULL)
        return NULL;
    return engine_command_find_sub(box, rd_slice(bar + 1, path.len - len - 1));
}

const struct engine_command *engine_command_resolve(const struct rd_slice *argv, size_t argc)
{
    if (argc == 0)
        return NULL;
    const struct engine_command *cmd = engine_command_find(argv[0]);
    if (cmd == NULL || cmd->n_subcommands == 0 || argc == 1)
        return cmd;
    return engine_command_find_sub(cmd, argv[1]);
}

/* ---- words ---- */

static const char *word_of(const char *const *words, size_t n, size_t i)
{
    return i < n ? words[i] : NULL;
}

const char *engine_cmd_flag_name(unsigned bit)
{
    static const char *const words[] = {
#define X(name, bit, word) [bit] = word,
        ENGINE_CMD_FLAGS(X)
#undef X
    };
    return word_of(words, sizeof words / sizeof *words, bit);
}

static const char *const acl_words[] = {
#define X(name, bit, word) [bit] = word,
    ENGINE_ACL_CATEGORIES(X)
#undef X
};

enum { N_ACL_WORDS = sizeof acl_words / sizeof *acl_words };

const char *engine_acl_name(unsigned bit)
{
    return word_of(acl_words, N_ACL_WORDS, bit);
}

uint32_t engine_acl_find(struct rd_slice name)
{
    for (unsigned bit = 0; bit < N_ACL_WORDS; bit++)
        if (name.len == strlen(acl_words[bit]) &&
            strncasecmp((const char *)name.ptr, acl_words[bit], name.len) == 0)
            return (uint32_t)1 << bit;
    return 0;
}

const char *engine_key_flag_name(unsigned bit)
{
    static const char *const words[] = {
#define X(name, bit, word) [bit] = word,
        ENGINE_KEY_FLAGS(X)
#undef X
    };
    return word_of(words, sizeof words / sizeof *words, bit);
}

const char *engine_group_name(enum engine_group group)
{
    static const char *const words[] = {
#define X(name, word) word,
        ENGINE_GROUPS(X)
#undef X
    };
    return word_of(words, sizeof words / sizeof *words, group);
}
