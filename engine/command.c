#include "engine/command.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "base/api.h"
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/command_row.h"

/* ---- the table ---- */

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

/* The function of an entry, by owner. */
#define RUN_ENGINE(id)     engine_cmd_##id
#define RUN_ENGINE_BOX(id) NULL
#define RUN_SERVER(id)     NULL
#define RUN_LATER(id)      NULL

static const struct engine_command commands[N_COMMANDS];

#define ENTRY(number, fn, ...) .id = (number), ENGINE_ROW(fn, __VA_ARGS__)

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

/* ---- what was added ----
 *
 * An entry is never freed, and its number always belongs to one name: a queue of MULTI, a rule of
 * a user or a counter may have it. */

enum {
    NAME_MAX_LEN = 24, /* of a command, and of a subcommand */
    N_ADDED = ENGINE_COMMAND_IDS - N_COMMANDS
};

_Static_assert(N_ADDED >= 256, "modules have hundreds of commands");

static struct engine_command added[N_ADDED];
static char added_names[N_ADDED][2 * NAME_MAX_LEN + 2];
static atomic_uint added_uses[N_ADDED]; /* 0: it was removed */
static _Atomic size_t n_added;

static bool is_used(size_t i)
{
    return atomic_load_explicit(&added_uses[i], memory_order_acquire) > 0;
}

const struct engine_command *engine_command_next(const struct engine_command *cmd)
{
    size_t next = cmd == NULL ? 0 : (size_t)cmd->id + 1;
    if (next < N_COMMANDS)
        return &commands[next];
    for (size_t i = next - N_COMMANDS; i < n_added; i++)
        if (is_used(i))
            return &added[i];
    return NULL;
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
 * they are ready: all write the same values, and only those of the table. */

enum { SLOTS_LOG2 = 11, SLOTS = 1 << SLOTS_LOG2 };

_Static_assert(2 * ENGINE_COMMAND_IDS < SLOTS, "the hash table stays sparse");

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
static struct shared_key keys[ENGINE_COMMAND_IDS];
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

static struct key key_of_command(const struct engine_command *cmd)
{
    size_t box = cmd->container == NULL ? 0 : (size_t)cmd->container->id + 1;
    return key_of((const uint8_t *)cmd->name + cmd->own_name_at,
                  (size_t)(cmd->name_len - cmd->own_name_at), box);
}

static void make_slots(void)
{
    uint16_t made[SLOTS] = {0};
    for (size_t i = 0; i < N_COMMANDS; i++) {
        struct key key = key_of_command(&commands[i]);
        size_t at = slot_of(&key);
        while (made[at] != 0)
            at = (at + 1) % SLOTS;
        made[at] = (uint16_t)(i + 1);
        share_key(&keys[i], &key);
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (made[i] != 0)
            atomic_store_explicit(&slots[i], made[i], memory_order_release);
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
        size_t id = atomic_load_explicit(&slots[at], memory_order_acquire);
        if (id == 0)
            return NULL;
        if (RD_UNLIKELY(!same_key(&keys[id - 1], &key)))
            continue;
        if (RD_LIKELY(id <= N_COMMANDS))
            return &commands[id - 1];
        if (is_used(id - 1 - N_COMMANDS))
            return &added[id - 1 - N_COMMANDS];
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

/* ---- adding and removing ---- */

static bool is_name(const char *name, size_t len)
{
    if (len == 0 || len > NAME_MAX_LEN)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '|' || (name[i] >= 'A' && name[i] <= 'Z'))
            return false;
    return true;
}

/* Where the own name of row i begins; 0 for the first. False: it is not a name of this family. */
static bool own_name_of(const struct engine_command *rows, size_t i, size_t *ret_at)
{
    const char *name = rows[i].name, *box = rows[0].name;
    size_t box_len = strlen(box);
    *ret_at = i == 0 ? 0 : box_len + 1;
    if (i > 0 && (strncmp(name, box, box_len) != 0 || name[box_len] != '|'))
        return false;
    for (size_t k = 1; k < i; k++)
        if (strcmp(rows[k].name, name) == 0)
            return false;
    return is_name(name + *ret_at, strlen(name + *ret_at));
}

static bool check_rows(const struct engine_command *rows, size_t n, struct rd_err *err)
{
    size_t at;
    for (size_t i = 0; i < n; i++)
        if (!own_name_of(rows, i, &at))
            return rd_err_set(err, RD_ERR_USAGE, 0, "'%.60s' cannot be the name of a command",
                              rows[i].name);
    if (n == 0 || n - 1 > UINT8_MAX)
        return rd_err_set(err, RD_ERR_USAGE, 0, "a command has at most 255 subcommands");
    return true;
}

/* Where the family with these names begins that was added before; N_ADDED: there is none. */
static size_t added_before(const struct engine_command *rows, size_t n)
{
    for (size_t first = 0; first < n_added; first += (size_t)added[first].n_subcommands + 1) {
        size_t same = 0;
        while (same < n && strcmp(added_names[first + same], rows[same].name) == 0)
            same++;
        if (same == n && added[first].n_subcommands == n - 1)
            return first;
    }
    return N_ADDED;
}

static void fill(size_t first, size_t i, const struct engine_command *row, size_t n)
{
    struct engine_command *cmd = &added[first + i];
    char *name = added_names[first + i];
    snprintf(name, sizeof added_names[0], "%s", row->name);
    *cmd = *row;
    cmd->name = name;
    cmd->name_len = (uint8_t)strlen(name);
    cmd->own_name_at = (uint8_t)(i == 0 ? 0 : strlen(added_names[first]) + 1);
    cmd->id = (uint16_t)(N_COMMANDS + first + i);
    cmd->container = i == 0 ? NULL : &added[first];
    cmd->subcommands = i == 0 && n > 1 ? &added[first + 1] : NULL;
    cmd->n_subcommands = (uint8_t)(i == 0 ? n - 1 : 0);
}

/* It can be found from here on. */
static void publish(const struct engine_command *cmd)
{
    struct key key = key_of_command(cmd);
    size_t at = slot_of(&key);
    while (atomic_load_explicit(&slots[at], memory_order_relaxed) != 0)
        at = (at + 1) % SLOTS;
    share_key(&keys[cmd->id], &key);
    atomic_store_explicit(&slots[at], (uint16_t)(cmd->id + 1), memory_order_release);
}

static const struct engine_command *add_again(size_t first, const struct engine_command *rows,
                                              size_t n)
{
    bool used = is_used(first);
    for (size_t i = 0; i < n; i++) {
        if (!used)
            fill(first, i, &rows[i], n);
        atomic_fetch_add_explicit(&added_uses[first + i], 1, memory_order_release);
    }
    return &added[first];
}

static const struct engine_command *add_new(const struct engine_command *rows, size_t n)
{
    size_t first = n_added;
    for (size_t i = 0; i < n; i++) {
        fill(first, i, &rows[i], n);
        publish(&added[first + i]);
        atomic_store_explicit(&added_uses[first + i], 1, memory_order_release);
    }
    n_added = first + n;
    return &added[first];
}

const struct engine_command *engine_command_add(const struct engine_command *rows, size_t n,
                                                struct rd_err *err)
{
    if (!check_rows(rows, n, err))
        return NULL;
    const struct engine_command *found = engine_command_find(rd_slice_str(rows[0].name));
    size_t first = added_before(rows, n);
    if (found != NULL && (first == N_ADDED || found != &added[first])) {
        rd_err_set(err, RD_ERR_USAGE, 0, "the command '%s' exists", rows[0].name);
        return NULL;
    }
    if (first != N_ADDED)
        return add_again(first, rows, n);
    if (n > N_ADDED - n_added) {
        rd_err_set(err, RD_ERR_LIMIT, 0, "no more than %d commands can be added", (int)N_ADDED);
        return NULL;
    }
    return add_new(rows, n);
}

/* Runs what a queue still has. */
static void run_removed(struct engine_call *call)
{
    engine_reply_errorf(call->reply, "ERR unknown command '%s'", call->command->name);
}

/* What a row borrowed is not needed any more. */
static void forget(struct engine_command *cmd)
{
    const struct engine_command kept = *cmd;
    *cmd = (struct engine_command){.run = kept.run != NULL ? run_removed : NULL,
                                   .name = kept.name,
                                   .flags = kept.flags,
                                   .acl = kept.acl,
                                   .arity = kept.arity,
                                   .id = kept.id,
                                   .name_len = kept.name_len,
                                   .own_name_at = kept.own_name_at,
                                   .group = kept.group,
                                   .owner = kept.owner,
                                   .levels = kept.levels,
                                   .n_subcommands = kept.n_subcommands,
                                   .container = kept.container,
                                   .subcommands = kept.subcommands,
                                   .since = "",
                                   .summary = ""};
}

void engine_command_remove(const struct engine_command *command)
{
    size_t first = (size_t)command->id - N_COMMANDS;
    for (size_t i = (size_t)command->n_subcommands + 1; i-- > 0;)
        if (atomic_fetch_sub_explicit(&added_uses[first + i], 1, memory_order_acq_rel) == 1)
            forget(&added[first + i]);
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
