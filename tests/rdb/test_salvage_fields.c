/* Hashes with field expiries: a field without one is stored like a string key. After damage, no
 * field becomes a key, and all keys around the hash are saved. */
#include "tests/rdb/key_list.h"
#include "tests/rdb/made_file.h"
#include "tests/support/alloc_fault.h"

enum { BEFORE = 5, FIELDS = 90, AFTER = 12 };

enum after { STRINGS, LISTS, STRINGS_LIKE_FIELDS, AFTER_KINDS };

static void add_field(struct rd_buf *file, unsigned i)
{
    char name[32], value[32];
    snprintf(name, sizeof name, "field:%u", i * 7919 % 1000);
    snprintf(value, sizeof value, "held by %u", i % 5 == 0 ? i * i * i : i);
    cr_assert(rd_buf_add_byte(file, i == 0 ? 1 : 0));
    if (i % 7 == 3) { /* a distance of two bytes from the least expiry */
        file->ptr[file->len - 1] = 0x52;
        cr_assert(rd_buf_add_byte(file, (uint8_t)i));
    }
    made_text(file, name);
    made_text(file, value);
}

/* Without a checksum. *from, *to: the fields. */
static void make(struct rd_buf *file, enum after after, size_t *from, size_t *to)
{
    char name[32];
    *file = (struct rd_buf){0};
    made_add(file, "REDIS0012\xfe\0\xfb", 12);
    made_add(file, (uint8_t[]){BEFORE + 1 + AFTER, 0}, 2);
    made_keys(file, "key", BEFORE);
    made_add(file, "\x18\4hash\0\0\x7b\x14\xd5\1\0\0\x40\x5a", 16); /* 90 fields */
    *from = file->len;
    for (unsigned i = 0; i < FIELDS; i++)
        add_field(file, i);
    *to = file->len;
    for (int i = 0; i < AFTER; i++) {
        snprintf(name, sizeof name, after == STRINGS_LIKE_FIELDS ? "fields%d" : "key:after%d", i);
        cr_assert(rd_buf_add_byte(file, after == LISTS));
        made_text(file, name);
        if (after == LISTS)
            cr_assert(rd_buf_add_byte(file, 1));
        made_text(file, "value");
    }
    made_end(file);
}

static struct rd_buf with(const struct rd_buf *file, size_t at, size_t cut, size_t put,
                          uint64_t random)
{
    struct rd_buf damaged = {0};
    made_add(&damaged, file->ptr, at);
    for (size_t i = 0; i < put; i++)
        cr_assert(rd_buf_add_byte(&damaged, (uint8_t)chance_next(&random)));
    made_add(&damaged, file->ptr + at + cut, file->len - at - cut);
    return damaged;
}

struct sum {
    uint64_t files, fields, lost, marked;
};

static unsigned count(const struct rd_buf *file, const char *name)
{
    unsigned n = 0;
    for (size_t i = 0; i + strlen(name) <= file->len; i++)
        n += memcmp(file->ptr + i, name, strlen(name)) == 0;
    return n;
}

/* The hash itself is saved where the damage is in values only. */
static void judge(struct sum *sum, const struct rd_buf *damaged, const char *what)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    cr_assert(made_salvage(rd_buf_slice(damaged), NULL, &out, &res, NULL), "%s", what);
    bool hash = count(&out, "\x18\4hash") > 0;
    bool fields = !hash && count(&out, "field:") > 0;
    uint64_t keys = res.keys - hash;
    sum->files++;
    sum->fields += fields;
    sum->marked += res.keys_doubted;
    sum->lost += keys < BEFORE + AFTER ? BEFORE + AFTER - keys : 0;
    if (fields)
        printf("# fields: %s\n", what);
    rd_buf_done(&out);
}

static struct sum damage_everywhere(enum after after)
{
    static const struct {
        size_t cut, put;
    } damages[] = {{1, 0}, {16, 0}, {39, 0}, {16, 16}, {0, 5}, {0, 33}};
    struct sum sum = {0};
    struct rd_buf file;
    size_t from, to;
    make(&file, after, &from, &to);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        for (size_t at = from; at + damages[i].cut <= to; at += 29) {
            char what[64];
            snprintf(what, sizeof what, "case %d, damage %zu at %zu", after, i, at);
            struct rd_buf damaged = with(&file, at, damages[i].cut, damages[i].put, at);
            judge(&sum, &damaged, what);
            rd_buf_done(&damaged);
        }
    rd_buf_done(&file);
    return sum;
}

Test(salvage_fields, the_number_of_fields_says_which_strings_are_fields)
{
    static const double most[AFTER_KINDS] = {[STRINGS] = 0.05, [STRINGS_LIKE_FIELDS] = 3};
    for (int after = 0; after < AFTER_KINDS; after++) {
        struct sum sum = damage_everywhere((enum after)after);
        cr_expect_gt(sum.files, 400);
        cr_expect_eq(sum.fields, 0);
        /* Of keys that are named like the fields, some are taken for fields. A hash whose damaged
         * lengths take in the next strings is sound. */
        cr_expect_leq((double)sum.lost, most[after] * (double)sum.files);
        cr_expect_leq(sum.marked, after == STRINGS_LIKE_FIELDS ? 6 * sum.files : 2 * sum.files);
    }
}

/* The strict output holds the keys: none of them is doubtful where lists follow the
 * hash. */
Test(salvage_fields, keys_after_a_damaged_hash_are_not_doubtful)
{
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.strict = true);
    struct rd_buf file;
    size_t from, to;
    make(&file, LISTS, &from, &to);
    for (size_t at = from + 20; at + 60 < to; at += 61) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf out = {0};
        struct rd_buf damaged = with(&file, at, 17, 0, at);
        cr_assert(made_salvage(rd_buf_slice(&damaged), &opts, &out, &res, NULL), "%zu", at);
        cr_expect_eq(count(&out, "key:after"), AFTER, "%zu", at);
        cr_expect_eq(count(&out, "field:"), 0, "%zu", at);
        rd_buf_done(&out);
        rd_buf_done(&damaged);
    }
    rd_buf_done(&file);
}

/* Every allocation fails once. */
Test(salvage_fields, memory_that_is_short_is_an_error)
{
    struct rd_buf file;
    size_t from, to, n = 1;
    make(&file, LISTS, &from, &to);
    struct rd_buf damaged = with(&file, from + 300, 17, 0, 1);
    for (bool failed = true; failed; n++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_err err = {0};
        struct rd_src *src;
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&damaged), NULL, NULL));
        alloc_fault_begin(n);
        bool ok = rdb_salvage(src, NULL, NULL, &RDB_SALVAGE_OPTS(), &res, &err);
        failed = alloc_fault_end().failed;
        cr_expect(ok ? res.keys == BEFORE + AFTER : err.code == RD_ERR_MEMORY, "%zu", n);
        rd_src_close(src);
    }
    cr_expect_gt(n, 4);
    rd_buf_done(&damaged);
    rd_buf_done(&file);
}
