/* What salvage marks as doubtful, and what it need not mark: databases, and values read as keys. */
#include "tests/rdb/made_file.h"

/* Strings look like fields of a hash with field expiries. With an access frequency they do not: ten
 * of them prove that they are records, between a damaged set and other damage. */
Test(salvage_doubts, strings_with_an_access_frequency_are_not_fields)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0};
    made_add(&file, "REDIS0012\xfe\0", 11);
    made_keys(&file, "key", 3);
    made_add(&file, "\x0b\1s\3abc", 7); /* no intset */
    for (char i = '0'; i <= '9'; i++) {
        const char name[] = {'m', 'i', 'd', ':', i, '\0'};
        made_add(&file, "\xf9\5", 2);
        made_key(&file, name);
    }
    made_add(&file, "\xc9\xc9", 2);
    made_keys(&file, "last", 3);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, NULL, &res, NULL));
    cr_expect_eq(res.keys, 16);
    cr_expect_eq(res.ranges, 2);
    rd_buf_done(&file);
}

static void count_inner(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    *(unsigned *)ctx += doubt->key_len == sizeof "key:inner:10" - 1;
}

/* A value ends too early, and the records of the snapshot in it are read. Its end mark is followed
 * by the header of the next such snapshot: all records before that mark may be parts of a value. */
Test(salvage_doubts, records_before_the_end_mark_of_a_snapshot_in_a_value_are_doubtful)
{
    enum { INNER = 30 };
    unsigned doubted = 0;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_inner, .ctx = &doubted);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0};
    made_add(&file, "REDIS0010\xfe\0\xfb\x32\0", 14);
    made_keys(&file, "key:outer", 9);
    for (int i = 0; i < 2; i++) {
        made_add(&file, i == 0 ? "\0\4copy\x0e" : "\x44\0", i == 0 ? 7 : 2);
        made_add(&file, "REDIS0010\xfe\0\xfb\x1e\0", 14);
        for (int j = 10; j < 10 + INNER; j++) {
            char name[32];
            snprintf(name, sizeof name, "key:%s:%d", i == 0 ? "inner" : "other", j);
            made_key(&file, name);
        }
        made_add(&file, "\xff-2345678", 9);
    }
    made_keys(&file, "last", 3);
    made_add(&file, "\xff-2345678", 9);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, NULL, &res, NULL));
    cr_expect_eq(doubted, 2 * INNER);
    rd_buf_done(&file);
}

/* ---- selectors ---- */

static void count_db_doubts(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    *(unsigned *)ctx += (doubt->doubts & RDB_DOUBT_DB) != 0 && doubt->key.ptr[0] == 'l';
}

/* Ten of twelve keys, and the selector after them, are lost: the ten keys of the next database
 * would fit, but not with so many expiries. */
Test(salvage_doubts, keys_whose_expiries_do_not_fit_may_be_of_another_database)
{
    for (unsigned expires = 0; expires < 2; expires++) {
        unsigned doubted = 0;
        struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_db_doubts, .ctx = &doubted);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0}, out = {0};
        made_add(&file, "REDIS0011\xfe\3\xfb\x0c", 13);
        made_add(&file, expires != 0 ? "\6" : "\0", 1);
        made_keys(&file, "key", 2);
        made_add(&file, "\xc9\xc9", 2);
        made_keys(&file, "last", 10);
        made_end(&file);
        cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
        cr_expect_eq(res.keys, 12);
        cr_expect_eq(doubted, expires != 0 ? 10 : 0, "%u: %u", expires, doubted);
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}

/* The opcode of one of two expiries is damaged: all keys fit, and the expiries but that one. */
Test(salvage_doubts, a_lost_expiry_does_not_make_the_database_doubtful)
{
    unsigned doubted = 0;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_db_doubts, .ctx = &doubted);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, out = {0};
    made_add(&file, "REDIS0011\xfe\3\xfb\x0d\2", 14);
    made_keys(&file, "key", 2);
    made_add(&file, "\x7c\0\0\0\0\0\1\0\0", 9);
    made_keys(&file, "last", 10);
    made_add(&file, "\xfc\0\0\0\0\0\1\0\0", 9);
    made_key(&file, "last");
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, 13);
    cr_expect_eq(doubted, 0);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* Before version 7 no size speaks for it. */
Test(salvage_doubts, a_selector_directly_after_damage_is_doubtful)
{
    unsigned doubts = 0;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_db_doubts, .ctx = &doubts);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, out = {0};
    made_add(&file, "REDIS0006\xfe\x0f", 11);
    made_keys(&file, "key", 12);
    made_add(&file, "\xfe\x10", 2);
    made_keys(&file, "next", 12);
    made_add(&file, "\x7a\1\x93\x42\x16\x1b\x6a\x08\xcf\xee\x8f\x28\xfe\x33", 14);
    made_keys(&file, "lost", 12);
    made_add(&file, "\xfe\x3f", 2);
    made_keys(&file, "more", 3);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, 39);
    cr_expect_eq(doubts, 12, "%u", doubts);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* A bit of the field before the first selector is wrong, so that it looks like a selector; or the
 * number of the first selector is. It has no size, unlike the others: it decides nothing. */
Test(salvage_doubts, a_selector_without_a_size_does_not_exclude_the_databases_after_it)
{
    for (unsigned field = 0; field < 2; field++) {
        unsigned doubted = 0;
        struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_db_doubts, .ctx = &doubted);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0}, out = {0};
        made_add(&file, "REDIS0010\xfa\x0aredis-bits\xc0\x40", 23);
        if (field)
            made_add(&file,
                     "\xfe\x08used-mem\xc0\x09\xfa\x08"
                     "aof-base\xc0\0",
                     24);
        else
            made_add(&file, "\xfe\x48\xc9\xc9\xc9", 5);
        if (field)
            made_add(&file, "\xfe\0\xfb\4\0", 5);
        made_keys(&file, "last", 4);
        made_add(&file, "\xfe\1\xfb\4\0", 5);
        made_keys(&file, "key", 4);
        made_end(&file);
        cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
        cr_expect_eq(res.keys, 8, "%u", field);
        cr_expect_eq(doubted, field ? 0 : 4, "%u: %u", field, doubted);
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}

/* ---- values that were read as keys ---- */

static void add_doubtful(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    struct rd_buf *names = ctx;
    cr_assert(rd_buf_add(names, doubt->key.ptr, doubt->key.len) && rd_buf_add_byte(names, ' '));
}

/* Salvages the file and returns the names of the doubtful keys, each with a space after it. */
static struct rd_buf doubtful_of(const struct rd_buf *file, struct rdb_salvage_result *res)
{
    struct rd_buf names = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = add_doubtful, .ctx = &names);
    cr_assert(made_salvage(rd_buf_slice(file), &opts, NULL, res, NULL));
    cr_assert(rd_buf_add_byte(&names, '\0'));
    return names;
}

/* The size does not say which of them are too many. */
Test(salvage_doubts, all_keys_of_a_database_with_more_than_it_announces_are_doubtful)
{
    for (int lost = 0; lost < 2; lost++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0};
        made_add(&file, "REDIS0009\xfe\0\xfb\x14\0", 14);
        made_keys(&file, "many", 50);
        made_add(&file, "\xfe\1\xfb\x32\0", 5);
        made_keys(&file, "manyfit", 50);
        if (lost)
            made_add(&file, "\xc9\xc9", 2);
        made_add(&file, "\xfe\2\xfb\x0a\0", 5);
        made_keys(&file, "next", 10);
        made_end(&file);
        struct rd_buf names = doubtful_of(&file, &res);
        cr_expect_eq(res.keys, 110);
        cr_expect_eq(has_name(&names, "many:0 many:1 "), lost);
        cr_expect_eq(has_name(&names, "many:48 many:49 "), lost);
        cr_expect_not(has_name(&names, "manyfit:0 ") || has_name(&names, "next:0 "));
        cr_expect_eq(res.keys_doubted, lost ? 51 : 0, "the last key before a break is doubtful");
        rd_buf_done(&names);
        rd_buf_done(&file);
    }
}

/* A list ends too early, in its last element, a snapshot without an end: what follows reads as the
 * rest of the file, with several databases in order. Without a snapshot in a value, a size that is
 * too small says nothing about the databases after it. */
Test(salvage_doubts, databases_after_a_surplus_may_be_those_of_a_snapshot_in_a_value)
{
    for (int nested = 0; nested < 2; nested++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0};
        made_add(&file, "REDIS0010\xfe\0\xfb\4\0", 14);
        made_keys(&file, "name0", 3);
        made_add(&file, "\1\4list\1\x0e", 8);
        made_add(&file, nested ? "REDIS0010\xfe\0\xfb\x14\0" : "-an-element-14", 14);
        made_keys(&file, "name1", 20);
        made_add(&file, "\xfe\3\xfb\x14\0", 5);
        made_keys(&file, "name3", 20);
        made_add(&file, "\xfe\5\xfb\x17\0", 5);
        made_keys(&file, "name5", 20);
        made_add(&file, "\xc9\xc9", 2);
        made_keys(&file, "name6", 3);
        made_end(&file);
        struct rd_buf names = doubtful_of(&file, &res);
        cr_expect(has_name(&names, "name1:0 ") && has_name(&names, "name1:19 "));
        cr_expect_eq(has_name(&names, "name3:0 "), nested);
        cr_expect_eq(has_name(&names, "name5:0 "), nested, "%s", (const char *)names.ptr);
        rd_buf_done(&names);
        rd_buf_done(&file);
    }
}

/* The end of a value and the expiry after it are damaged, and read as a function library. Libraries
 * precede the keys, and servers would refuse this one. */
Test(salvage_doubts, a_refused_library_between_keys_is_damage_of_both)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0};
    made_add(&file, "REDIS0010\xfe\0\xfb\x09\1", 14);
    made_keys(&file, "key", 4);
    made_add(&file, "\xf5\7abcdefg", 9);
    made_keys(&file, "key:a", 5);
    made_end(&file);
    struct rd_buf names = doubtful_of(&file, &res);
    cr_expect_eq(res.keys, 9);
    cr_expect(has_name(&names, "key:3 key:a:0 "), "%s", (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&file);
}

/* Keys between two damages: their database lacks as many, or it does not. */
Test(salvage_doubts, a_size_that_lacks_the_keys_of_a_run_keeps_them_as_doubtful)
{
    for (int lacks = 0; lacks < 2; lacks++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0};
        made_add(&file, lacks ? "REDIS0011\xfe\0\xfb\x3c\0" : "REDIS0011\xfe\0\xfb\x28\0", 14);
        made_keys(&file, "first", 20);
        made_add(&file, "\xc9\xc9", 2);
        made_keys(&file, "other", 20);
        made_add(&file, "\xc9\xc9", 2);
        made_keys(&file, "last", 20);
        made_end(&file);
        struct rd_buf names = doubtful_of(&file, &res);
        cr_expect_eq(res.keys, lacks ? 60 : 40);
        cr_expect(has_name(&names, "other:0 other:1 ") && has_name(&names, "other:18 other:19 "));
        rd_buf_done(&names);
        rd_buf_done(&file);
    }
}

/* What follows the damage reads as a list with the rest of the database and the next selector. */
Test(salvage_doubts, a_collection_after_damage_may_have_taken_in_a_selector)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0};
    made_add(&file, "REDIS0011\xfe\0\xfb\x28\0", 14);
    made_keys(&file, "name", 3);
    made_add(&file, "\xc9\xc9", 2);
    made_keys(&file, "name:x", 2);
    made_add(&file, "\1\0\x14", 3);
    for (int i = 0; i < 20; i++)
        made_text(&file, "twenty elements of a list of records and selectors");
    made_keys(&file, "name:a", 34);
    made_end(&file);
    struct rd_buf names = doubtful_of(&file, &res);
    cr_expect_eq(res.keys, 40);
    cr_expect(has_name(&names, "name:a:0 ") && has_name(&names, "name:a:33 "), "%s",
              (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&file);
}

/* The mark that ends the value and 8 bytes after it look like the end of the file. */
Test(salvage_doubts, no_records_are_read_inside_a_sound_packed_value_before_a_cut)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, pack = {0};
    uint8_t head[13] = {0};
    made_add(&pack, head, sizeof head);
    made_keys(&pack, "fake", 9);
    made_add(&pack, "\xff", 1);
    rd_put_le32(pack.ptr, (uint32_t)pack.len);
    rd_put_le32(pack.ptr + 4, 10);
    rd_put_le16(pack.ptr + 8, 1);
    pack.ptr[11] = 0x40;
    pack.ptr[12] = (uint8_t)(pack.len - sizeof head - 1);
    made_add(&file, "REDIS0009\xfe\0", 11);
    made_keys(&file, "front", 10);
    made_add(&file, "\x0a\4pack", 6);
    made_len32(&file, pack.len);
    made_add(&file, pack.ptr, pack.len);
    made_add(&file, "\0\x0cname:1", 8);
    struct rd_buf names = doubtful_of(&file, &res);
    cr_expect_eq(res.keys, 11);
    cr_expect_eq(res.keys_left_out, 0);
    cr_expect_eq(res.keys_doubted, 0, "%s", (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&pack);
    rd_buf_done(&file);
}

/* Fields of a hash whose head was swallowed by the first key. Many names of one kind are usual in
 * the file, a few are not. */
Test(salvage_doubts, a_few_new_names_before_a_break_do_not_prove_each_other)
{
    for (int many = 0; many < 2; many++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0};
        made_add(&file, "REDIS0012\xfe\0", 11);
        made_key(&file, "name:x");
        made_keys(&file, "field", many ? 50 : 3);
        made_add(&file, "\x5b\x51", 2);
        made_keys(&file, "name", 40);
        made_end(&file);
        struct rd_buf names = doubtful_of(&file, &res);
        cr_expect_eq(has_name(&names, "name:x field:0 field:1 field:2 "), !many, "%s",
                     (const char *)names.ptr);
        cr_expect_not(many && has_name(&names, "field:1 "));
        rd_buf_done(&names);
        rd_buf_done(&file);
    }
}

/* A string whose length is damaged, what is read of the next value, and a selector in that. */
Test(salvage_doubts, records_unlike_those_of_the_file_are_doubtful_before_a_proved_head)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0};
    made_add(&file, "REDIS0006\xfe\0", 11);
    made_keys(&file, "key", 12);
    made_add(&file, "\0\5key:\xbf\3abc", 11);
    made_add(&file, "\0\0\2xy\xfe\x0f\3\1x\xff\0", 12);
    made_keys(&file, "key:a", 12);
    made_end(&file);
    struct rd_buf names = doubtful_of(&file, &res);
    cr_expect(has_name(&names, "key:\xbf  "), "%s", (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&file);
}
