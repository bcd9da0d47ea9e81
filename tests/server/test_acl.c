/* Rules of users, without a server: what they change, and that their description makes the same
 * user. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "server/session/acl/user_impl.h"

static struct acl_user *make(const char *const *rules)
{
    struct acl_user *user = acl_user_new(rd_slice_str("u"), false, ENGINE_LEVEL_7_0);
    for (size_t i = 0; rules[i] != NULL; i++) {
        enum acl_fault fault = acl_user_rule(user, rd_slice_str(rules[i]), false);
        cr_assert_eq(fault, ACL_FAULT_NONE, "%s: %s", rules[i], acl_fault_text(fault));
    }
    return user;
}

static void expect_text(const struct acl_user *user, const char *want)
{
    struct rd_buf text = {0};
    acl_user_describe(user, &text);
    cr_expect(rd_slice_is(rd_buf_slice(&text), want), "%.*s, not %s", (int)text.len,
              (const char *)text.ptr, want);
    rd_buf_done(&text);
}

Test(acl, a_user_is_described_by_the_rules_that_make_it)
{
    static const struct {
        const char *rules[8], *text;
    } rows[] = {
        {{NULL}, "off resetchannels -@all"},
        {{"on", "nopass", "+@all", "~*", "&*", NULL}, "on nopass ~* &* +@all"},
        {{"ON", "+GET", "+config|get", NULL}, "on resetchannels -@all +get +config|get"},
        {{"+@all", "-get", NULL}, "off resetchannels +@all -get"},
        {{"+config", "-config|set", NULL}, "off resetchannels -@all +config -config|set"},
        {{"~a", "%R~b", "%W~c", "%RW~d", "%w~b", NULL}, "off ~a ~b %W~c ~d resetchannels -@all"},
        {{"%RW~*", NULL}, "off ~* resetchannels -@all"},
        {{"%RW~*", "~a", NULL}, "off %RW~* ~a resetchannels -@all"},
        {{"~a", "%R~*", "%W~*", NULL}, "off ~a %RW~* resetchannels -@all"},
        {{"&a", "&b", "&a", NULL}, "off resetchannels &a &b -@all"},
        {{"+select|0", "+select|1", "+SELECT|0", NULL},
         "off resetchannels -@all +select|0 +select|1"},
        {{"+select|0", "-select", NULL}, "off resetchannels -@all"},
        {{"(+get ~a*)", "(%R~b &c +@all)", NULL},
         "off resetchannels -@all (~a* resetchannels -@all +get) (%R~b resetchannels &c +@all)"},
        {{"(+get)", "clearselectors", NULL}, "off resetchannels -@all"},
        {{"on", "~a", "+get", "(+get)", ">x", "reset", NULL},
         "off sanitize-payload resetchannels -@all"},
        {{"skip-sanitize-payload", "allkeys", "resetkeys", NULL},
         "off skip-sanitize-payload resetchannels -@all"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct acl_user *user = make(rows[i].rules);
        expect_text(user, rows[i].text);
        acl_user_free(user);
    }
}

Test(acl, a_rule_that_is_wrong_changes_nothing)
{
    static const struct {
        const char *rule;
        enum acl_fault fault;
    } rows[] = {
        {"nope", ACL_FAULT_SYNTAX},
        {"+nope", ACL_FAULT_UNKNOWN},
        {"+", ACL_FAULT_UNKNOWN},
        {"-@nope", ACL_FAULT_UNKNOWN},
        {"-select|0", ACL_FAULT_UNKNOWN},
        {"+hexpire", ACL_FAULT_UNKNOWN}, /* of a later version */
        {"+select|", ACL_FAULT_SYNTAX},
        {"+config|nope", ACL_FAULT_UNKNOWN},
        {"+config|get|x", ACL_FAULT_FIRST_ARG},
        {"~more", ACL_FAULT_KEYS},
        {"&more", ACL_FAULT_CHANNELS},
        {"(~a b", ACL_FAULT_SYNTAX},
        {"(~a >x)", ACL_FAULT_SYNTAX},
        {"(on)", ACL_FAULT_SYNTAX},
        {"#00", ACL_FAULT_DIGEST},
        {"!00", ACL_FAULT_DIGEST},
        {"<absent", ACL_FAULT_PASSWORD},
        {"(%~a)", ACL_FAULT_SYNTAX}, /* no use at all: redis-server accepts it, and ends */
        {"(%RX~a)", ACL_FAULT_SYNTAX},
        {"(%RR~a)", ACL_FAULT_SYNTAX},
    };
    static const char *const rules[] = {"on", "~*", "&*", "+get", NULL};
    struct acl_user *user = make(rules);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum acl_fault fault = acl_user_rule(user, rd_slice_str(rows[i].rule), false);
        cr_expect_eq(fault, rows[i].fault, "%s", rows[i].rule);
        expect_text(user, "on ~* &* -@all +get");
    }
    acl_user_free(user);
}

Test(acl, passwords_are_any_bytes)
{
    static const char *const rules[] = {"on", NULL};
    struct acl_user *user = make(rules);
    struct rd_slice rule = rd_slice(">a\0b", 4);
    cr_expect_eq(acl_user_rule(user, rule, false), ACL_FAULT_NONE);
    cr_expect_eq(acl_user_rule(user, rule, false), ACL_FAULT_NONE);
    cr_expect_eq(user->passwords.n, 1);
    cr_expect(acl_user_has_password(user, rd_slice("a\0b", 3)));
    cr_expect(!acl_user_has_password(user, rd_slice("a\0c", 3)));
    cr_expect(!acl_user_has_password(user, rd_slice("a", 1)));
    cr_expect(!acl_user_has_password(user, rd_slice("", 0)));
    cr_expect_eq(acl_user_rule(user, rd_slice("<a\0b", 4), false), ACL_FAULT_NONE);
    cr_expect(!acl_user_has_password(user, rd_slice("a\0b", 3)));
    acl_user_free(user);
}

static enum acl_verdict verdict(const struct acl_user *user, const char *line, size_t *ret_at)
{
    struct rd_slice argv[16];
    size_t argc = 0;
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        argv[argc++] = rd_slice(line, len);
        line += len + (line[len] == ' ');
    }
    *ret_at = 0;
    return acl_check(user, engine_command_resolve(argv, argc), argc, argv, ret_at);
}

Test(acl, one_selector_must_allow_the_command_all_keys_and_all_channels)
{
    static const char *const rules[] = {"+get",
                                        "~a*",
                                        "&c",
                                        "+publish",
                                        "+subscribe",
                                        "+psubscribe",
                                        "+select|0",
                                        "(+set %W~b* ~both)",
                                        "(+copy %R~r* %W~w*)",
                                        NULL};
    static const struct {
        const char *line;
        enum acl_verdict verdict;
        size_t at;
    } rows[] = {
        {"get a1", ACL_OK, 0},
        {"get b1", ACL_DENIED_KEY, 1},
        {"set b1 v", ACL_OK, 0},
        {"set a1 v", ACL_DENIED_KEY, 1},
        {"set b1 v get", ACL_DENIED_KEY, 1},
        {"set both v get", ACL_OK, 0},
        {"copy r1 w1", ACL_OK, 0},
        {"copy w1 r1", ACL_DENIED_KEY, 1},
        {"copy r1 r1", ACL_DENIED_KEY, 2},
        {"del a1", ACL_DENIED_COMMAND, 0},
        {"publish c m", ACL_OK, 0},
        {"publish d c", ACL_DENIED_CHANNEL, 1},
        {"subscribe c d", ACL_DENIED_CHANNEL, 2},
        {"psubscribe c", ACL_OK, 0},
        {"psubscribe c*", ACL_DENIED_CHANNEL, 1},
        {"select 0", ACL_OK, 0},
        {"select 1", ACL_DENIED_COMMAND, 0},
        {"auth x", ACL_OK, 0}, /* always allowed */
    };
    struct acl_user *user = make(rules);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t at;
        cr_expect_eq(verdict(user, rows[i].line, &at), rows[i].verdict, "%s", rows[i].line);
        cr_expect_eq(at, rows[i].at, "%s", rows[i].line);
    }
    acl_user_free(user);
}

Test(acl, every_set_of_commands_is_described_so_that_it_comes_back)
{
    srand(1);
    for (int round = 0; round < 300; round++) {
        struct acl_user *user = acl_user_new(rd_slice_str("u"), false, ENGINE_LEVEL_7_0);
        struct acl_user *again = acl_user_new(rd_slice_str("u"), false, ENGINE_LEVEL_7_0);
        struct acl_selector *s = &user->selectors[0];
        acl_selector_everything(s, rand() % 2);
        for (int i = rand() % 20; i > 0; i--) {
            if (rand() % 2)
                acl_selector_category(s, (uint32_t)1 << rand() % 21, rand() % 2);
            const struct engine_command *c = NULL;
            for (int skip = rand() % 300; skip >= 0; skip--)
                c = engine_command_next(c);
            cr_assert_not_null(c);
            if ((c->flags & ENGINE_CMD_LATER_VERSION) == 0)
                acl_selector_command(s, c, rand() % 2);
        }
        struct rd_buf text = {0};
        acl_describe_commands(s, &text);
        rd_buf_add_byte(&text, '\0');
        for (char *word = strtok((char *)text.ptr, " "); word != NULL; word = strtok(NULL, " "))
            cr_assert_eq(acl_user_rule(again, rd_slice_str(word), false), ACL_FAULT_NONE);
        cr_assert(memcmp(s->commands, again->selectors[0].commands, sizeof s->commands) == 0);
        rd_buf_done(&text);
        acl_user_free(user);
        acl_user_free(again);
    }
}
