/* names.h - classifies the commands of a log by their names, and counts unknown names.
 *
 * Most commands of a log have one of a few names, always in the same spelling. Each is looked up
 * once and then recognized by its bytes in a few instructions.
 */
#ifndef AOF_CHECK_NAMES_H
#define AOF_CHECK_NAMES_H

#include "base/api.h"
#include "base/endian.h"
#include "base/slice.h"

enum {
    AOF_NAME_WORDS = 3, /* a name of up to 24 bytes is compared as so many words */
    AOF_NAME_SLOTS = 64,
    AOF_UNKNOWN_NAMES = 32, /* unknown names; further ones are counted together */
    AOF_UNKNOWN_NAME_MAX = 64
};

enum aof_name_kind {
    AOF_NAME_PLAIN,
    AOF_NAME_MULTI,
    AOF_NAME_EXEC,
    AOF_NAME_DISCARD,
    AOF_NAME_SHORT, /* with too few arguments */
    AOF_NAME_UNKNOWN
};

struct aof_unknown_name {
    char name[AOF_UNKNOWN_NAME_MAX]; /* its first bytes */
    size_t len;
    uint64_t n;
    /* Set by the caller: the first occurrence. */
    struct aof_check_file *of;
    uint64_t offset, line, command;
};

/* A name that was seen before, in its spelling, and its kind. */
struct aof_name_slot {
    uint64_t words[AOF_NAME_WORDS];
    size_t len; /* 0: free */
    enum aof_name_kind kind;
    unsigned min_args; /* 0: unknown */
};

/* A zeroed struct is ready. */
struct aof_names {
    struct aof_name_slot slots[AOF_NAME_SLOTS];
    struct aof_unknown_name unknown[AOF_UNKNOWN_NAMES];
    size_t n_unknown;
    uint64_t n_more; /* commands with other unknown names, which did not fit */
};

/* Fills in a slot, or (NULL) looks up a name that does not fit one. */
enum aof_name_kind aof_names_look_up_slow(struct aof_names *names, struct aof_name_slot *slot,
                                          const uint64_t *words, struct rd_slice name, size_t argc,
                                          struct aof_unknown_name **ret_new);

/* A name of 1 to 24 bytes as words; together with its length they identify it. Uses overlapping
 * loads to registers: loading a word from bytes that were just stored one by one would stall. */
static inline void aof_name_words(struct rd_slice name, uint64_t words[AOF_NAME_WORDS])
{
    const uint8_t *p = name.ptr;
    const size_t len = name.len;
    words[1] = words[2] = 0;
    if (len < 4) {
        words[0] = (uint64_t)p[0] | (uint64_t)p[len / 2] << 8 | (uint64_t)p[len - 1] << 16;
    } else if (len <= 8) {
        words[0] = (uint64_t)rd_get_le32(p) | (uint64_t)rd_get_le32(p + len - 4) << 32;
    } else {
        words[0] = rd_get_le64(p);
        words[1] = rd_get_le64(p + len - 8);
        if (len > 16)
            words[2] = rd_get_le64(p + 8);
    }
}

/* argc counts the name too. *ret_new is set if the name is unknown and seen for the first time. */
static inline enum aof_name_kind aof_names_look_up(struct aof_names *names, struct rd_slice name,
                                                   size_t argc, struct aof_unknown_name **ret_new)
{
    uint64_t words[AOF_NAME_WORDS] = {0};
    if (RD_UNLIKELY(name.len == 0 || name.len > sizeof words))
        return aof_names_look_up_slow(names, NULL, words, name, argc, ret_new);
    aof_name_words(name, words);
    const uint64_t mixed = words[0] ^ words[1] << 1 ^ words[2] << 2;
    struct aof_name_slot *slot = &names->slots[mixed * UINT64_C(0x9e3779b97f4a7c15) >> 58];
    const uint64_t differ = (slot->words[0] ^ words[0]) | (slot->words[1] ^ words[1]) |
                            (slot->words[2] ^ words[2]) | (slot->len ^ name.len);
    if (RD_UNLIKELY(differ != 0 || slot->kind == AOF_NAME_UNKNOWN))
        return aof_names_look_up_slow(names, slot, words, name, argc, ret_new);
    return RD_LIKELY(argc >= slot->min_args) ? slot->kind : AOF_NAME_SHORT;
}

#endif
