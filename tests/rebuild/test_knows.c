/* What a replay says about commands that it has not run. */
#include <criterion/criterion.h>

#include "rebuild/knows.h"

static const struct knows_case {
    const char *line;
    enum rebuild_knows knows;
    enum rebuild_knows by_name;
} cases[] = {
    {"SET a 1", REBUILD_KNOWS, REBUILD_KNOWS},
    {"xgroup create s g 0", REBUILD_KNOWS, REBUILD_KNOWS},
    {"HSETEX h FIELDS 1 f v", REBUILD_KNOWS, REBUILD_KNOWS},
    {"PUBLISH a b", REBUILD_KNOWS, REBUILD_KNOWS},
    {"CLUSTER SYNCSLOTS FINISH STATE s NAME n", REBUILD_KNOWS, REBUILD_KNOWS},
    {"MULTI", REBUILD_KNOWS, REBUILD_KNOWS},
    {"JSON.SET a $ 1", REBUILD_KNOWS_KEYS, REBUILD_KNOWS_KEYS},
    {"arset a 1 x", REBUILD_KNOWS_KEYS, REBUILD_KNOWS_KEYS},
    {"GETDEL a b", REBUILD_KNOWS_KEYS, REBUILD_KNOWS},
    {"BITMAP CONVERT a NATIVE", REBUILD_KNOWS_KEYS, REBUILD_KNOWS},
    {"INCREX a EX 10", REBUILD_KNOWS, REBUILD_KNOWS},
    {"PHDELPREFIX a b", REBUILD_KNOWS_KEYS, REBUILD_KNOWS_KEYS},
    {"NOPE a", REBUILD_KNOWS_NOTHING, REBUILD_KNOWS_NOTHING},
    {"XGROUP NOPE a", REBUILD_KNOWS_NOTHING, REBUILD_KNOWS},
    {"CLUSTER RESET", REBUILD_KNOWS_NOTHING, REBUILD_KNOWS},
};

static size_t split(const char *line, struct rd_slice argv[8])
{
    size_t n = 0;
    for (; *line != '\0'; n++) {
        size_t len = strcspn(line, " ");
        argv[n] = rd_slice(line, len);
        line += len + (line[len] == ' ');
    }
    return n;
}

Test(rebuild_knows, commands_and_names)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_slice argv[8];
        struct rebuild_unsupported whole = {0}, name = {0};
        size_t argc = split(cases[i].line, argv);
        cr_expect_eq(rebuild_knows(argc, argv), cases[i].knows, "%s", cases[i].line);
        cr_expect_eq(rebuild_unsupported_note(&whole, argc, argv), cases[i].knows != REBUILD_KNOWS);
        cr_expect_eq(rebuild_unsupported_note_name(&name, argv[0]),
                     cases[i].by_name != REBUILD_KNOWS, "%s", cases[i].line);
        cr_expect_eq(name.n_nothing, cases[i].by_name == REBUILD_KNOWS_NOTHING);
    }
}

Test(rebuild_knows, the_first_is_named_and_all_are_counted)
{
    struct rebuild_unsupported unsupported = {0};
    struct rd_slice json[] = {rd_slice_str("JSON.SET"), rd_slice_str("a")};
    struct rd_slice nope[] = {rd_slice_str("NO\x01PE")};
    cr_expect(rebuild_unsupported_note(&unsupported, 2, json));
    cr_expect_not(rebuild_unsupported_note(&unsupported, 1, nope));
    cr_expect(unsupported.n == 2 && unsupported.n_nothing == 1);
    cr_expect(strstr(unsupported.text, "cannot run \"JSON.SET\"") != NULL, "%s", unsupported.text);
    unsupported = (struct rebuild_unsupported){0};
    cr_expect(rebuild_unsupported_note(&unsupported, 1, nope));
    cr_expect(strstr(unsupported.text, "does not know \"NO\\x01PE\"") != NULL, "%s",
              unsupported.text);
}
