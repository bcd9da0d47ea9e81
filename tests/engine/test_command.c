#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "aof/commands.h"
#include "engine/command.h"
#include "engine/command_args.h"

static const struct engine_command *find(const char *name)
{
    return engine_command_find(rd_slice_str(name));
}

/* Words of a line, parted by one blank each. */
static size_t split(const char *line, struct rd_slice argv[32])
{
    size_t n = 0;
    while (n < 32) {
        size_t len = strcspn(line, " ");
        argv[n++] = rd_slice(line, len);
        if (line[len] == '\0')
            break;
        line += len + 1;
    }
    return n;
}

static enum engine_keys_status keys_of(const char *line, struct engine_key keys[8], size_t *ret_n)
{
    struct rd_slice argv[32];
    size_t argc = split(line, argv);
    const struct engine_command *cmd = engine_command_resolve(argv, argc);
    cr_assert_not_null(cmd, "%s", line);
    return engine_command_keys(cmd, argv, argc, keys, 8, ret_n);
}

/* "2 RO|access, 3 RO|access" */
static const char *keys_text(const char *line)
{
    static char text[512];
    struct engine_key keys[8];
    size_t n;
    size_t len = 0;
    text[0] = '\0';
    cr_assert_eq(keys_of(line, keys, &n), ENGINE_KEYS_OK, "%s", line);
    for (size_t i = 0; i < n; i++) {
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%zu", i ? ", " : "", keys[i].index);
        const char *sep = " ";
        for (unsigned bit = 0; bit < 16; bit++)
            if (keys[i].flags >> bit & 1) {
                len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", sep,
                                        engine_key_flag_name(bit));
                sep = "|";
            }
    }
    return text;
}

Test(command, every_command_is_found_by_its_name_in_any_case)
{
    size_t n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL; n++) {
        char name[64];
        for (size_t i = 0; i <= c->name_len; i++)
            name[i] = (char)(i % 2 ? toupper((unsigned char)c->name[i]) : c->name[i]);
        cr_assert_eq(c->id, n);
        cr_assert_eq(strlen(c->name), c->name_len);
        cr_assert_eq(engine_command_find_path(rd_slice_str(name)), c, "%s", name);
        if (c->container == NULL) {
            cr_assert_eq(find(name), c, "%s", name);
            continue;
        }
        cr_assert_eq(find(name), NULL, "%s", name);
        const char *own = name + c->own_name_at;
        cr_assert_eq(engine_command_find_sub(c->container, rd_slice_str(own)), c, "%s", name);
        cr_assert_eq(find(c->container->name), c->container);
    }
    cr_assert_gt(n, 370);
}

/* Only XGROUP has a larger one there, that of its subcommands. */
Test(command, a_log_is_checked_for_the_arguments_that_the_table_requires)
{
    unsigned n = 0, min_args;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        if (c->container != NULL)
            continue;
        cr_assert(aof_command_look_up(rd_slice_str(c->name), &min_args), "%s", c->name);
        unsigned arity = (unsigned)abs(c->arity);
        bool equal = min_args == arity || (strcmp(c->name, "xgroup") == 0 && min_args == 4);
        cr_assert(equal || min_args == 0, "%s: %u, not %u", c->name, min_args, arity);
        n += equal;
    }
    cr_assert_gt(n, 230);
}

Test(command, names_that_are_nearly_right_are_unknown)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        char name[64];
        memcpy(name, c->name, c->name_len + (size_t)1);
        for (size_t i = 0; i < c->name_len; i++)
            for (unsigned bit = 0; bit < 8; bit++) {
                name[i] = (char)(c->name[i] ^ (1 << bit));
                const struct engine_command *other =
                    engine_command_find_path(rd_slice(name, c->name_len));
                bool letter = isalpha((unsigned char)c->name[i]) != 0;
                if (letter && bit == 5)
                    cr_assert_eq(other, c, "%s", name);
                else
                    cr_assert_neq(other, c, "%s", name);
                name[i] = c->name[i];
            }
        const char *own = c->name + c->own_name_at;
        size_t len = (size_t)(c->name_len - c->own_name_at);
        name[c->name_len] = '\0';
        cr_assert_neq(engine_command_find_path(rd_slice(name, c->name_len + (size_t)1)), c);
        cr_assert_neq(engine_command_find(rd_slice(own, len - 1)), c);
    }
}

Test(command, names_of_any_length_do_no_harm)
{
    char name[300];
    memset(name, 'g', sizeof name);
    for (size_t len = 0; len <= sizeof name; len++)
        cr_assert_null(engine_command_find(rd_slice(name, len)));
    cr_assert_null(engine_command_find(rd_slice(NULL, 0)));
    cr_assert_null(engine_command_find_path(rd_slice(NULL, 0)));
    cr_assert_null(engine_command_find_path(rd_slice_str("|")));
    cr_assert_null(engine_command_find_path(rd_slice_str("config|get|x")));
    cr_assert_null(engine_command_find_path(rd_slice_str("get|x")));
    cr_assert_null(engine_command_find_sub(find("get"), rd_slice_str("get")));
    cr_assert_null(engine_command_find_sub(find("object"), rd_slice_str("get")));
}

Test(command, a_command_line_leads_to_its_subcommand)
{
    static const struct {
        const char *line;
        const char *name;
    } cases[] = {
        {"GET k", "get"},
        {"config GET x", "config|get"},
        {"config", "config"},
        {"config nope", NULL},
        {"nope", NULL},
        {"command", "command"},
        {"CLIENT no-evict on", "client|no-evict"},
        {"debug object k", "debug"},
    };
    struct rd_slice argv[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t argc = split(cases[i].line, argv);
        const struct engine_command *cmd = engine_command_resolve(argv, argc);
        if (cases[i].name == NULL)
            cr_assert_null(cmd, "%s", cases[i].line);
        else
            cr_assert_str_eq(cmd->name, cases[i].name);
    }
    cr_assert_null(engine_command_resolve(argv, 0));
}

Test(command, arity_counts_the_name_and_a_negative_one_is_a_minimum)
{
    cr_assert(engine_command_arity_ok(find("get"), 2));
    cr_assert_not(engine_command_arity_ok(find("get"), 1));
    cr_assert_not(engine_command_arity_ok(find("get"), 3));
    cr_assert(engine_command_arity_ok(find("set"), 3));
    cr_assert(engine_command_arity_ok(find("set"), 30));
    cr_assert_not(engine_command_arity_ok(find("set"), 2));
}

Test(command, flags_imply_categories)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        bool fast = (c->flags & ENGINE_CMD_FAST) != 0;
        cr_assert_eq((c->acl & ENGINE_ACL_FAST) != 0, fast, "%s", c->name);
        cr_assert_eq((c->acl & ENGINE_ACL_SLOW) != 0, !fast, "%s", c->name);
        cr_assert_eq((c->acl & ENGINE_ACL_WRITE) != 0, (c->flags & ENGINE_CMD_WRITE) != 0);
        if (c->flags & ENGINE_CMD_ADMIN)
            cr_assert(c->acl & ENGINE_ACL_DANGEROUS, "%s", c->name);
        cr_assert_neq(c->flags & (ENGINE_CMD_WRITE | ENGINE_CMD_READONLY),
                      ENGINE_CMD_WRITE | ENGINE_CMD_READONLY, "%s", c->name);
    }
    cr_assert_eq(engine_acl_find(rd_slice_str("SortedSet")), ENGINE_ACL_ZSET);
    cr_assert_eq(engine_acl_find(rd_slice_str("sorted")), 0);
    cr_assert_eq(engine_acl_find(rd_slice_str("")), 0);
    cr_assert_str_eq(engine_acl_name(0), "keyspace");
    cr_assert_null(engine_acl_name(21));
    cr_assert_null(engine_cmd_flag_name(63));
    cr_assert_null(engine_key_flag_name(11));
    cr_assert_str_eq(engine_group_name(ENGINE_GROUP_ZSET), "sorted-set");
}

Test(command, subcommands_follow_their_container)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        for (size_t i = 0; i < c->n_subcommands; i++) {
            cr_assert_eq(c->subcommands[i].container, c);
            cr_assert_eq(memcmp(c->subcommands[i].name, c->name, c->name_len), 0);
            cr_assert_eq(c->subcommands[i].own_name_at, c->name_len + 1);
        }
        if (c->container != NULL)
            cr_assert_eq(c->n_subcommands, 0);
    }
    cr_assert_eq(find("config")->n_subcommands, 5);
    cr_assert_eq(find("get")->n_subcommands, 0);
}

Test(command, every_entry_is_documented_in_words)
{
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        size_t len = strlen(c->summary);
        cr_assert(len > 10 && len < 80, "%s", c->name);
        cr_assert(isupper((unsigned char)c->summary[0]) && c->summary[len - 1] != '.', "%s",
                  c->name);
        cr_assert(isdigit((unsigned char)c->since[0]), "%s", c->name);
        cr_assert_eq(c->deprecated_since != NULL, c->replaced_by != NULL, "%s", c->name);
    }
}

Test(command, keys_are_found_with_what_is_done_to_them)
{
    static const struct {
        const char *line;
        const char *keys;
    } cases[] = {
        {"get k", "1 RO|access"},
        {"set k v", "1 OW|update"},
        {"set k v EX 1 Get", "1 RW|access|update"},
        {"mset a 1 b 2", "1 OW|update, 3 OW|update"},
        {"bitfield k GET u8 0", "1 RO|access"},
        {"bitfield k GET u8 0 SET u8 0 1", "1 RW|access|update"},
        {"bitfield k GET u8", "1 RW|access|update"},
        {"eval s 2 a b c", "3 RW|access|update, 4 RW|access|update"},
        {"eval s 0 a", ""},
        {"eval s 9 a", ""},
        {"eval s 1x a b", "3"},
        {"zunionstore d 2 a b weights 1 2", "1 OW|update, 3 RO|access, 4 RO|access"},
        {"zunionstore d 2x a b", "3, 4, 1"},
        {"sort k by w* store d", "1 RO|access, 5 OW|update"},
        {"sort k store a store b", "1 RO|access, 5 OW|update"},
        {"sort k limit store b", "1 RO|access"},
        {"sort_ro k store d", "1 RO|access"},
        {"migrate h 1 k 0 10", "3 RW|access|delete"},
        {"migrate h 1  0 10 auth keys keys a b", "9 RW|access|delete, 10 RW|access|delete"},
        {"xread count 2 streams a b 0 0", "4 RO|access, 5 RO|access"},
        {"xreadgroup group streams c streams a 0", "5 RO|access"},
        {"georadius k 0 0 1 m store d", "1 RO|access, 7 OW|update"},
        {"object freq k", "2 RO"},
        {"hexpire k 10 fields 1 f", "1 RW|update"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(keys_text(cases[i].line), cases[i].keys, "%s", cases[i].line);
}

Test(command, lines_without_valid_keys_are_distinguished)
{
    static const struct {
        const char *line;
        enum engine_keys_status status;
    } cases[] = {
        {"ping", ENGINE_KEYS_NONE},
        {"config get x", ENGINE_KEYS_NONE},
        {"spublish a b", ENGINE_KEYS_NONE},
        {"get", ENGINE_KEYS_ARITY},
        {"get a b", ENGINE_KEYS_ARITY},
        {"sintercard 0 a", ENGINE_KEYS_INVALID},
        {"sintercard 2 a", ENGINE_KEYS_INVALID},
        {"sintercard 9223372036854775807 a", ENGINE_KEYS_INVALID},
        {"sintercard -9223372036854775808 a", ENGINE_KEYS_INVALID},
        {"sintercard 99999999999999999999 a", ENGINE_KEYS_INVALID},
        {"xread count 2 a b", ENGINE_KEYS_INVALID},
        {"pfmerge d", ENGINE_KEYS_INVALID},
        {"migrate h 1 k 0 10 keys a", ENGINE_KEYS_INVALID},
    };
    struct engine_key keys[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 77;
        cr_assert_eq(keys_of(cases[i].line, keys, &n), cases[i].status, "%s", cases[i].line);
        cr_assert_eq(n, 0);
    }
}

Test(command, all_keys_are_counted_and_no_more_than_fit_are_written)
{
    struct rd_slice argv[32];
    struct engine_key keys[3] = {{77, 0}, {77, 0}, {77, 0}};
    size_t argc = split("mget a b c d e", argv);
    size_t n;
    cr_assert_eq(engine_command_keys(find("mget"), argv, argc, keys, 2, &n), ENGINE_KEYS_OK);
    cr_assert_eq(n, 5);
    cr_assert_eq(keys[0].index, 1);
    cr_assert_eq(keys[1].index, 2);
    cr_assert_eq(keys[2].index, 77);
    cr_assert_eq(engine_command_keys(find("mget"), argv, argc, NULL, 0, &n), ENGINE_KEYS_OK);
    cr_assert_eq(n, 5);
}

/* ---- arguments ---- */

Test(command_args, what_every_entry_says_of_its_arguments_can_be_read)
{
    struct engine_arg args[ENGINE_ARGS_MAX];
    size_t n;
    size_t with_args = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        if (c->args == NULL)
            continue;
        with_args++;
        cr_assert(engine_args_parse(c->args, args, &n), "%s: %s", c->name, c->args);
        size_t found = 0;
        for (const struct engine_arg *a = args; a != NULL; a = engine_args_next(args, a))
            found++;
        cr_assert_eq(found, n);
        cr_assert(args[0].key_spec < (int)c->n_key_specs, "%s", c->name);
    }
    cr_assert_gt(with_args, 250);
}

Test(command_args, the_parts_of_an_argument_come_out)
{
    struct engine_arg a[ENGINE_ARGS_MAX];
    size_t n;
    cr_assert(engine_args_parse("key@1 [GET pattern:pattern@2...+{6.2.0}] '~'=about "
                                "x(ASC | D=down{until 2.8.12} | at:unix-time) FULL, 'ip:port'",
                                a, &n));
    cr_assert_eq(n, 6);
    cr_assert_eq(a[0].type, ENGINE_ARG_KEY);
    cr_assert_eq(a[0].key_spec, 1);
    cr_assert_eq(a[1].type, ENGINE_ARG_PATTERN);
    cr_assert_eq(a[1].key_spec, 2);
    cr_assert(a[1].optional && a[1].multiple && a[1].multiple_token && a[1].has_token);
    cr_assert(rd_slice_is(a[1].token, "GET") && rd_slice_is(a[1].name, "pattern"));
    cr_assert(rd_slice_is(a[1].since, "6.2.0"));
    cr_assert(rd_slice_is(a[2].token, "~") && rd_slice_is(a[2].name, "about"));
    cr_assert_eq(a[2].type, ENGINE_ARG_PURE_TOKEN);
    cr_assert_not(a[2].lower_name);
    cr_assert_eq(a[3].type, ENGINE_ARG_ONEOF);
    cr_assert_eq(a[3].n_args, 3);
    cr_assert(a[4].lower_name && rd_slice_is(a[4].token, "ASC"));
    cr_assert(rd_slice_is(a[5].deprecated_since, "2.8.12") && a[5].since.len == 0);
    cr_assert_eq(a[6].type, ENGINE_ARG_UNIX_TIME);
    cr_assert_eq(a[6].next, 0);
    cr_assert_eq(a[3].next, 7);
    cr_assert(a[7].type == ENGINE_ARG_PURE_TOKEN && rd_slice_is(a[7].token, "FULL"));
    cr_assert(a[8].type == ENGINE_ARG_STRING && rd_slice_is(a[8].name, "ip:port"));
}

Test(command_args, malformed_text_is_refused)
{
    static const char *const wrong[] = {
        "",       " ",     "a  b", "[a",  "a]",  "a(b",   "a(b | )", "a()",
        "a:nope", "a:key", "a ",   "a,",  "a, ", "a@",    "a@x",     "'a",
        "a{1.0",  "a | b", "A=",   "A=B", "a,b", "a...x", "(a)",     "a(b(c(d(e(f(g(h(i))))))))"};
    struct engine_arg args[ENGINE_ARGS_MAX];
    size_t n;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(engine_args_parse(wrong[i], args, &n), "%s", wrong[i]);
    char many[4 * ENGINE_ARGS_MAX];
    for (size_t i = 0; i <= ENGINE_ARGS_MAX; i++)
        memcpy(many + 2 * i, i == ENGINE_ARGS_MAX ? "a\0" : "a ", 2);
    cr_assert_not(engine_args_parse(many, args, &n));
    many[2 * ENGINE_ARGS_MAX - 1] = '\0';
    cr_assert(engine_args_parse(many, args, &n));
    cr_assert_eq(n, ENGINE_ARGS_MAX);
}
