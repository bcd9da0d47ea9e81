/* Names that have the same hash without being the same. The seed of the tests is 0, so that its key
 * is known and such names can be made: where eight bytes of a block are a word of the key, the rest
 * of the block does not count. */
#include "rdb/check.h"
#include "rdb/salvage.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/endian.h"
#include "base/src_impl.h"
#include "rdb/hash.h"

enum { NAME = 20 };

/* The nth of many names that have one hash. */
static void name_of(unsigned n, uint8_t out[NAME])
{
    const uint64_t seed[2] = {0, 0};
    const struct rdb_hash_key key = rdb_hash_key(seed);
    snprintf((char *)out, NAME, "%08u", n);
    rd_put_le64(out + 8, key.k[2]);
    memcpy(out + 16, "tail", 4);
}

static void add(struct rd_buf *b, const char *bytes, size_t len)
{
    cr_assert(rd_buf_add(b, bytes, len));
}

static void add_name(struct rd_buf *b, unsigned n)
{
    uint8_t name[NAME];
    name_of(n, name);
    add(b, "\x14", 1);
    add(b, (const char *)name, NAME);
}

static void begin(struct rd_buf *b)
{
    add(b, "REDIS0011\xfe\x00", 11);
}

static void end(struct rd_buf *b)
{
    add(b, "\xff\0\0\0\0\0\0\0\0", 9);
}

static void add_key(struct rd_buf *b, unsigned n)
{
    add(b, "\x00", 1);
    add_name(b, n);
    add(b, "\x01v", 2);
}

/* A set of two members, as a table or as a listpack. */
static void add_set(struct rd_buf *b, unsigned a, unsigned c, bool packed)
{
    if (!packed) {
        add(b, "\x02\x01s\x02", 4);
        add_name(b, a);
        add_name(b, c);
        return;
    }
    uint8_t name[NAME];
    add(b, "\x14\x01s\x33\x33\0\0\0\x02\0", 10);
    for (int i = 0; i < 2; i++) {
        name_of(i == 0 ? a : c, name);
        add(b, "\x94", 1);
        add(b, (const char *)name, NAME);
        add(b, "\x15", 1);
    }
    add(b, "\xff", 1);
}

struct reported {
    unsigned n;
    char id[32];
    char text[120];
};

static void note_finding(void *ctx, const struct rdb_finding *f)
{
    struct reported *reported = ctx;
    if (f->severity != RDB_SEVERITY_ERROR)
        return;
    reported->n++;
    snprintf(reported->id, sizeof reported->id, "%s", f->word);
    snprintf(reported->text, sizeof reported->text, "%s", f->text);
}

enum input { MEMORY, ONCE };

static struct reported check(struct rd_buf *b, enum input input)
{
    struct reported reported = {0};
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.finding = note_finding, .ctx = &reported);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(b), NULL, NULL));
    if (input == ONCE)
        cr_assert(rd_src_open_trickle(&src, src, 4096, NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, &err), "%s", err.text);
    cr_expect_not(res.damaged);
    rd_src_close(src);
    return reported;
}

Test(name_match, names_of_one_hash_are_made_here)
{
    const struct rdb_hash_key key = rdb_hash_key((const uint64_t[2]){0, 0});
    const struct rdb_hash_key other = rdb_hash_key((const uint64_t[2]){1, 0});
    uint8_t a[NAME];
    uint8_t b[NAME];
    name_of(1, a);
    name_of(2, b);
    cr_expect_eq(rdb_hash_bytes(&key, a, NAME), rdb_hash_bytes(&key, b, NAME));
    cr_expect_neq(rdb_hash_bytes(&other, a, NAME), rdb_hash_bytes(&other, b, NAME));
}

Test(name_match, keys_of_one_hash_are_sound)
{
    struct rd_buf b = {0};
    begin(&b);
    for (unsigned n = 0; n < 3; n++)
        add_key(&b, n);
    end(&b);
    cr_expect_eq(check(&b, MEMORY).n, 0);
    rd_buf_done(&b);
}

Test(name_match, a_key_that_is_there_twice_is_found_among_others_of_its_hash)
{
    struct rd_buf b = {0};
    begin(&b);
    for (unsigned n = 0; n < 3; n++)
        add_key(&b, n);
    add_key(&b, 1);
    end(&b);
    struct reported reported = check(&b, MEMORY);
    cr_expect_eq(reported.n, 1);
    cr_expect_str_eq(reported.id, "duplicate-key");
    rd_buf_done(&b);
}

Test(name_match, an_input_that_is_read_once_is_judged_by_the_hash_and_says_so)
{
    struct rd_buf b = {0};
    begin(&b);
    add_key(&b, 1);
    add_key(&b, 1);
    end(&b);
    struct reported reported = check(&b, ONCE);
    cr_expect_eq(reported.n, 1);
    cr_expect_str_eq(reported.id, "duplicate-key");
    cr_expect_not_null(strstr(reported.text, "cannot be read twice"));
    rd_buf_done(&b);
}

Test(name_match, members_are_compared_by_their_bytes)
{
    for (unsigned second = 1; second <= 2; second++)
        for (int packed = 0; packed < 2; packed++) {
            struct rd_buf b = {0};
            begin(&b);
            add_set(&b, 1, second, packed);
            end(&b);
            struct reported reported = check(&b, MEMORY);
            cr_expect_eq(reported.n, second == 1, "packed %d, second %u: %u", packed, second,
                         reported.n);
            if (second == 1)
                cr_expect_str_eq(reported.id, "duplicate-member");
            rd_buf_done(&b);
        }
}

Test(name_match, salvage_drops_no_key_because_of_its_hash)
{
    struct rd_buf b = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS();
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_src *src;
    struct rd_err err = {0};
    begin(&b);
    for (unsigned n = 0; n < 3; n++)
        add_key(&b, n);
    add_key(&b, 2);
    add_set(&b, 1, 2, false);
    end(&b);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&b), NULL, NULL));
    cr_assert(rdb_salvage(src, NULL, NULL, &opts, &res, &err), "%s", err.text);
    cr_expect_eq(res.keys, 4, "%llu kept", (unsigned long long)res.keys);
    cr_expect_eq(res.keys_dropped, 1);
    rd_src_close(src);
    rd_buf_done(&b);
}
