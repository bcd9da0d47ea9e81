#include "tests/rdb/commands_bench.h"

Test(commands, a_head_is_put_right_when_the_number_of_elements_was_not_known)
{
    const uint64_t counts[] = {3, RDB_UNKNOWN, 1, 100};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct commands_bench out;
        cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_LIST, counts[i]));
        cr_assert(commands_put_elem(&out, RDB_ROLE_ELEMENT, "a", 9) &&
                  commands_put_elem(&out, RDB_ROLE_ELEMENT, "", 9) &&
                  commands_put_elem(&out, RDB_ROLE_ELEMENT, "ccc", 9) && commands_put_end(&out));
        commands_expect(&out, SELECT_0
                        "*5\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$1\r\na\r\n$0\r\n\r\n$3\r\nccc\r\n");
        commands_end(&out);
    }
}

Test(commands, a_string_in_pieces_has_a_command_of_its_own)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_SET, 2));
    cr_assert(commands_put_elem(&out, RDB_ROLE_MEMBER, "a", 9) &&
              commands_put_elem(&out, RDB_ROLE_MEMBER, "long", 3) && commands_put_end(&out));
    commands_expect(&out, SELECT_0 "*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\na\r\n"
                                   "*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$4\r\nlong\r\n");
    commands_end(&out);
}

/* Field and value of "a":"1", then of "field":"value" in pieces. */
static void check_pairs(size_t field_piece, size_t value_piece, const char *want)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_HASH, 2));
    cr_assert(commands_put_elem(&out, RDB_ROLE_FIELD, "a", 9) &&
              commands_put_elem(&out, RDB_ROLE_VALUE, "1", 9) &&
              commands_put_elem(&out, RDB_ROLE_FIELD, "field", field_piece) &&
              commands_put_elem(&out, RDB_ROLE_VALUE, "value", value_piece) &&
              commands_put_end(&out));
    commands_expect(&out, want);
    commands_end(&out);
}

Test(commands, a_pair_stays_together_whichever_part_of_it_is_long)
{
    static const char apart[] = SELECT_0 "*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n1\r\n"
                                         "*4\r\n$4\r\nHSET\r\n$1\r\nk\r\n"
                                         "$5\r\nfield\r\n$5\r\nvalue\r\n";
    static const char whole[] = SELECT_0 "*6\r\n$4\r\nHSET\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n1\r\n"
                                         "$5\r\nfield\r\n$5\r\nvalue\r\n";
    check_pairs(9, 9, whole);
    for (size_t n = 1; n < 5; n++) {
        check_pairs(n, 9, apart);
        check_pairs(9, n, apart);
        check_pairs(n, n, apart);
    }
}

Test(commands, a_member_in_pieces_follows_its_score)
{
    for (size_t n = 1; n < 6; n++) {
        struct commands_bench out;
        cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_ZSET_2, 1));
        cr_assert(commands_put_elem(&out, RDB_ROLE_MEMBER, "mem", n) && commands_put_end(&out));
        commands_expect(&out, SELECT_0 "*4\r\n$4\r\nZADD\r\n$1\r\nk\r\n$3\r\n1.5\r\n$3\r\nmem\r\n");
        commands_end(&out);
    }
}

Test(commands, what_no_reader_gives_is_a_misuse_that_sticks)
{
    struct commands_bench out;
    struct rd_sink *to;
    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(commands_put_elem(&out, RDB_ROLE_MEMBER, "m", 9));
    cr_assert_eq(out.err.code, RD_ERR_USAGE);
    cr_assert_not(commands_put_key(&out, RDB_TYPE_SET, 1));
    cr_assert_not(rdb_commands_restore_begin(out.commands, 1, &to, &out.err));
    cr_assert_not(rdb_commands_end(out.commands, &out.err));
    commands_end(&out);
}

Test(commands, what_no_command_makes_is_refused_or_left_out)
{
    const struct rdb_commands_opts lossy = RDB_COMMANDS_OPTS(.lossy = true);
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(commands_put_key(&out, RDB_TYPE_MODULE_2, 0));
    cr_assert_eq(out.err.code, RD_ERR_UNSUPPORTED);
    cr_assert_str_eq(out.err.doing[0], "module \"k\" in db 0");
    commands_end(&out);
    cr_assert(commands_begin(&out, &lossy) && commands_put_key(&out, RDB_TYPE_MODULE_2, 0) &&
              commands_put_end(&out));
    cr_assert_eq(rdb_commands_loss(out.commands)->keys, 1);
    commands_expect(&out, "");
    commands_end(&out);
}

Test(commands, a_payload_is_as_long_as_was_said)
{
    struct rdb_event key = {.kind = RDB_KEY};
    struct rd_sink *to;
    struct commands_bench out;
    key.key.name = rd_slice_str("k");
    key.key.type = rdb_type_get(RDB_TYPE_STRING);
    key.key.expire_ms = 5;
    key.key.idle_s = RDB_UNKNOWN;
    key.key.freq = 7;
    cr_assert(commands_begin(&out, NULL) && rdb_commands_put(out.commands, &key, &out.err) &&
              rdb_commands_restore_begin(out.commands, 3, &to, &out.err));
    cr_assert(rd_sink_write(to, "abc", 3) && rdb_commands_restore_end(out.commands, &out.err));
    commands_expect(&out, SELECT_0 "*7\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n5\r\n$3\r\nabc\r\n"
                                   "$6\r\nABSTTL\r\n$4\r\nFREQ\r\n$1\r\n7\r\n");
    cr_assert(rdb_commands_put(out.commands, &key, &out.err) &&
              rdb_commands_restore_begin(out.commands, 3, &to, &out.err));
    cr_assert(rd_sink_write(to, "ab", 2));
    cr_assert_not(rdb_commands_restore_end(out.commands, &out.err));
    cr_assert_eq(out.err.code, RD_ERR_USAGE);
    commands_end(&out);
}

static bool put_hash(struct commands_bench *out)
{
    return commands_begin(out, NULL) &&
           commands_put_key(out, RDB_TYPE_HASH_METADATA, RDB_UNKNOWN) &&
           commands_put_elem(out, RDB_ROLE_FIELD, "a", 9) &&
           commands_put_elem(out, RDB_ROLE_VALUE, "1", 9) &&
           commands_put_elem(out, RDB_ROLE_FIELD, "field", 2) &&
           commands_put_elem(out, RDB_ROLE_VALUE, "value", 2) && commands_put_end(out);
}

Test(commands, memory_that_is_short_is_an_error_and_nothing_leaks)
{
    cr_assert_gt(commands_fail_allocations(put_hash), 4);
}
