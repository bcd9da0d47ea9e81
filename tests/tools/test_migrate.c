#include <criterion/criterion.h>

#include <stdio.h>

#include "tools/migrate/plan.h"
#include "tools/migrate/position.h"

/* ---- positions ---- */

static const char id[] = "0123456789abcdef0123456789abcdef01234567";

Test(migrate, a_position_is_read_as_it_was_written)
{
    static const struct migrate_position positions[] = {
        {{""}, 0, 0}, {{""}, 1, 15}, {{""}, UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        struct migrate_position at = positions[i], got;
        char text[MIGRATE_POSITION_MAX];
        memcpy(at.replid.hex, id, sizeof id);
        size_t len = migrate_position_put(text, &at);
        cr_assert(migrate_position_get(rd_slice(text, len), &got));
        cr_assert(repl_replid_eq(&got.replid, &at.replid));
        cr_assert(got.offset == at.offset && got.db == at.db);
        for (size_t n = 0; n + 1 < len; n++)
            if (text[n] == ' ' || n < REPL_REPLID_LEN)
                cr_assert_not(migrate_position_get(rd_slice(text, n), &got));
    }
}

Test(migrate, what_is_not_a_position_is_refused)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "0123456789abcdef0123456789abcdef01234567",
                                        "0123456789abcdef0123456789abcdef01234567 ",
                                        "0123456789abcdef0123456789abcdef01234567 1",
                                        "0123456789abcdef0123456789abcdef01234567 1 ",
                                        "0123456789abcdef0123456789abcdef01234567 x 0",
                                        "0123456789abcdef0123456789abcdef01234567 1 0 0",
                                        "g123456789abcdef0123456789abcdef01234567 1 0"};
    struct migrate_position at;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(migrate_position_get(rd_slice_str(wrong[i]), &at), "%s", wrong[i]);
}

Test(migrate, each_slot_has_a_position_key_in_it)
{
    static struct migrate_tags tags;
    char text[MIGRATE_KEY_MAX];
    migrate_tags_init(&tags);
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        struct rd_slice key = migrate_key(text, "name", tags.text[slot]);
        cr_assert_eq(rd_hash_slot(key), slot);
        cr_assert(migrate_key_is(key));
    }
    cr_assert(migrate_key_is(migrate_key(text, "name", NULL)));
    cr_assert_not(migrate_key_is(rd_slice_str("redoubt:migrate")));
    cr_assert_not(migrate_key_is(rd_slice_str("redoubt")));
}

Test(migrate, names_are_short_and_plain)
{
    char text[MIGRATE_NAME_MAX + 2];
    memset(text, 'a', sizeof text);
    text[MIGRATE_NAME_MAX] = '\0';
    cr_assert_not(migrate_name_is(text));
    text[MIGRATE_NAME_MAX - 1] = '\0';
    cr_assert(migrate_name_is(text));
    cr_assert(migrate_name_is("a-B_9."));
    cr_assert_not(migrate_name_is("") || migrate_name_is("a b") || migrate_name_is("{a}"));
}

/* ---- plans ---- */

enum { ARGS = 8 };

static enum migrate_kind make(struct migrate_plan *plan, uint64_t db, const char *line)
{
    static char text[200];
    static struct rd_slice argv[ARGS];
    size_t argc = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = rd_slice_str(word);
    cr_assert(migrate_plan_make(plan, db, argv, argc, NULL));
    return plan->kind;
}

/* The arguments of a piece, separated by blanks. */
static bool is_piece(const struct migrate_plan *plan, size_t i, const char *line)
{
    char text[200] = "";
    size_t at = 0;
    for (size_t k = 0; k < plan->pieces[i].argc; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", k > 0 ? " " : "",
                               (int)plan->pieces[i].argv[k].len,
                               (const char *)plan->pieces[i].argv[k].ptr);
    return strcmp(text, line) == 0;
}

Test(migrate, a_single_server_gets_commands_unchanged)
{
    static const char *const lines[] = {"SET a 1",       "RENAME a b",   "MOVE a 3",
                                        "COPY a b DB 2", "NEWCOMMAND a", "PUBLISH c m",
                                        "EVAL x 0",      "MSET a 1 b 2", "SUNIONSTORE a b c"};
    struct migrate_plan plan = {0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(make(&plan, 5, lines[i]), MIGRATE_PIECES, "%s", lines[i]);
        cr_assert(plan.n == 1 && plan.pieces[0].unchanged && is_piece(&plan, 0, lines[i]));
    }
    cr_assert_eq(make(&plan, 0, "SWAPDB 0 1"), MIGRATE_SWAP);
    cr_assert(make(&plan, 0, "FLUSHALL") == MIGRATE_FLUSH && plan.all_dbs);
    cr_assert(make(&plan, 0, "FLUSHDB") == MIGRATE_FLUSH && !plan.all_dbs);
    cr_assert_eq(make(&plan, 0, "FUNCTION DELETE lib"), MIGRATE_EVERYWHERE);
    migrate_plan_done(&plan);
}

Test(migrate, position_keys_are_never_copied)
{
    struct migrate_plan plan = {0};
    cr_assert_eq(make(&plan, 0, "HSET redoubt:migrate:x f v"), MIGRATE_NOTHING);
    cr_assert_eq(make(&plan, 0, "DEL a redoubt:migrate:x b"), MIGRATE_PIECES);
    cr_assert(plan.n == 1 && is_piece(&plan, 0, "DEL a b"));
    migrate_plan_done(&plan);
}

Test(migrate, a_cluster_gets_commands_by_slot)
{
    struct migrate_plan plan = {.cluster = true};
    cr_assert_eq(make(&plan, 0, "SET {x}a 1"), MIGRATE_PIECES);
    cr_assert(plan.n == 1 && plan.pieces[0].unchanged);
    cr_assert_eq(plan.pieces[0].slot, rd_hash_slot(rd_slice_str("x")));
    cr_assert_eq(make(&plan, 0, "RENAME {x}a {x}b"), MIGRATE_PIECES);
    cr_assert_eq(make(&plan, 0, "DEL a b {a}c"), MIGRATE_PIECES);
    cr_assert(plan.n == 2 && is_piece(&plan, 0, "DEL a {a}c") && is_piece(&plan, 1, "DEL b"));
    cr_assert_eq(make(&plan, 0, "MSETNX a 1 b 2 {b}c 3"), MIGRATE_PIECES);
    cr_assert(plan.n == 2 && is_piece(&plan, 0, "MSET a 1") &&
              is_piece(&plan, 1, "MSET b 2 {b}c 3"));
    migrate_plan_done(&plan);
}

Test(migrate, what_a_cluster_cannot_do_is_refused_by_name)
{
    static const char *const lines[] = {"RENAME a b",         "SUNIONSTORE a b c", "SWAPDB 0 1",
                                        "MOVE a 1",           "NEWCOMMAND a",      "EVAL x 0",
                                        "COPY {x}a {x}b DB 2"};
    struct migrate_plan plan = {.cluster = true};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char name[20] = "\"";
        cr_assert_eq(make(&plan, 0, lines[i]), MIGRATE_REFUSED, "%s", lines[i]);
        strncat(name, lines[i], strcspn(lines[i], " "));
        cr_assert(strncmp(plan.why, name, strlen(name)) == 0, "%s", plan.why);
    }
    cr_assert_eq(make(&plan, 1, "SET a 1"), MIGRATE_REFUSED);
    plan.several_dbs = true;
    cr_assert_eq(make(&plan, 1, "SET a 1"), MIGRATE_PIECES);
    migrate_plan_done(&plan);
}

Test(migrate, a_filter_decides_by_key)
{
    struct filter filter;
    struct migrate_plan plan = {.filter = &filter, .selects = true};
    filter_init(&filter, 0);
    cr_assert(filter_add_prefix(&filter, "app:", NULL) && filter_add_db(&filter, "2", NULL));
    cr_assert_eq(make(&plan, 2, "SET app:a 1"), MIGRATE_PIECES);
    cr_assert_eq(make(&plan, 0, "SET app:a 1"), MIGRATE_NOTHING);
    cr_assert_eq(make(&plan, 2, "SET other 1"), MIGRATE_NOTHING);
    cr_assert_eq(make(&plan, 2, "MSET app:a 1 other 2 app:b 3"), MIGRATE_PIECES);
    cr_assert(plan.n == 1 && is_piece(&plan, 0, "MSET app:a 1 app:b 3"));
    cr_assert_eq(make(&plan, 2, "RENAME app:a other"), MIGRATE_REFUSED);
    cr_assert_eq(make(&plan, 2, "NEWCOMMAND app:a"), MIGRATE_REFUSED);
    cr_assert_eq(make(&plan, 2, "SWAPDB 0 2"), MIGRATE_REFUSED);
    cr_assert_eq(make(&plan, 2, "EVAL x 0"), MIGRATE_REFUSED);
    migrate_plan_done(&plan);
    filter_done(&filter);
}

Test(migrate, keys_are_renamed_by_prefix)
{
    static const struct migrate_rename renames[] = {
        {{(const uint8_t *)"a:", 2}, {(const uint8_t *)"new:", 4}},
        {{(const uint8_t *)"b:", 2}, {NULL, 0}}};
    struct migrate_plan plan = {.renames = renames, .n_renames = 2};
    cr_assert_eq(make(&plan, 0, "RENAME a:x b:y"), MIGRATE_PIECES);
    cr_assert(is_piece(&plan, 0, "RENAME new:x y") && !plan.pieces[0].unchanged);
    cr_assert_eq(make(&plan, 0, "SET c a:x"), MIGRATE_PIECES);
    cr_assert(is_piece(&plan, 0, "SET c a:x") && plan.pieces[0].unchanged);
    struct rd_slice name;
    cr_assert(migrate_plan_rename(&plan, rd_slice_str("a:x"), &name, NULL));
    cr_assert(rd_slice_is(name, "new:x"));
    cr_assert(migrate_plan_has(&plan, 0, rd_slice_str("new:x")));
    cr_assert(migrate_plan_has(&plan, 0, rd_slice_str("x")));
    cr_assert_not(migrate_plan_has(&plan, 0, rd_slice_str("redoubt:migrate:x")));
    plan.n_renames = 1; /* no key of the source becomes one that begins with a: */
    cr_assert_not(migrate_plan_has(&plan, 0, rd_slice_str("a:x")));
    plan.n_renames = 2;
    plan.cluster = true;
    cr_assert_eq(make(&plan, 0, "MSET a:x 1 b:y 2 c 3"), MIGRATE_PIECES);
    cr_assert(plan.n == 3 && is_piece(&plan, 0, "MSET new:x 1") && is_piece(&plan, 1, "MSET y 2"));
    cr_assert_eq(plan.pieces[1].slot, rd_hash_slot(rd_slice_str("y")));
    migrate_plan_done(&plan);
}
