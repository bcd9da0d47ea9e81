/* Records beside the keys: those of modules, and the fields that KeyDB writes for one key. */
#include "rdb/beside.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* What a caller of the module puts out: a word for each event. */
struct sieve {
    struct rdb_beside beside;
    char text[512];
};

static void note(struct sieve *s, const char *word, struct rd_slice name)
{
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s %.*s\n", word, (int)name.len,
             (const char *)name.ptr);
}

static void note_omission(void *ctx, const struct rdb_omission *omission)
{
    note(ctx, rdb_omitted_word(omission->what), omission->element);
}

static void put_aux(struct sieve *s, const char *name, const char *value)
{
    struct rdb_event ev = {.kind = RDB_AUX, .aux.name = rd_slice_str(name)};
    ev.aux.value =
        (struct rdb_string){.ptr = (const uint8_t *)value, .len = strlen(value), .first = true};
    if (rdb_beside_wants(&s->beside, &ev))
        note(s, name, rd_slice_str(value));
}

static void put_key(struct sieve *s, const char *name, bool kept)
{
    struct rdb_event before = {.kind = RDB_AUX};
    const struct rdb_event key = {.kind = RDB_KEY, .key.name = rd_slice_str(name)};
    if (!kept) {
        rdb_beside_drop(&s->beside);
        return;
    }
    if (rdb_beside_keep(&s->beside, &key, &before))
        note(s, "before", rd_slice(before.aux.value.ptr, before.aux.value.len));
    note(s, "key", rd_slice_str(name));
}

static void put_kind(struct sieve *s, enum rdb_event_kind kind)
{
    const struct rdb_event ev = {.kind = kind};
    if (rdb_beside_wants(&s->beside, &ev))
        note(s, "event", rd_slice_str(""));
}

Test(beside, fields_of_a_key_go_where_the_key_goes)
{
    struct sieve s = {0};
    for (int i = 0; i < 3; i++) {
        put_aux(&s, "mvcc-tstamp", i == 1 ? "11" : "10");
        put_key(&s, "k", i != 1);
        put_aux(&s, "keydb-subexpire-key", "m");
        put_aux(&s, "keydb-subexpire-when", "5");
    }
    put_key(&s, "l", true);
    put_aux(&s, "ctime", "1");
    cr_expect_str_eq(s.text, "before 10\nkey k\nkeydb-subexpire-key m\nkeydb-subexpire-when 5\n"
                             "before 10\nkey k\nkeydb-subexpire-key m\nkeydb-subexpire-when 5\n"
                             "key l\nctime 1\n");
}

/* A number can be stored as one; a longer text than KeyDB writes is not kept for later. */
Test(beside, the_field_before_a_key_can_have_any_form)
{
    struct sieve s = {0};
    struct rdb_event ev = {.kind = RDB_AUX, .aux.name = rd_slice_str("mvcc-tstamp")};
    ev.aux.value = (struct rdb_string){.is_int = true, .num = -7};
    cr_expect_not(rdb_beside_wants(&s.beside, &ev));
    put_key(&s, "k", true);
    put_aux(&s, "mvcc-tstamp", "a text that is longer than any number that a stamp can have");
    put_key(&s, "l", true);
    cr_expect_str_eq(s.text, "before -7\nkey k\nmvcc-tstamp a text that is longer than any number "
                             "that a stamp can have\nkey l\n");
}

Test(beside, records_of_modules_are_left_out_only_if_the_caller_asks)
{
    for (int no_modules = 0; no_modules < 2; no_modules++) {
        struct sieve s = {.beside.no_modules = no_modules != 0};
        s.beside.omitted = note_omission;
        s.beside.omitted_ctx = &s;
        put_kind(&s, RDB_MODULE_AUX);
        put_kind(&s, RDB_MODULE_ITEM);
        put_kind(&s, RDB_VALUE_END);
        put_kind(&s, RDB_MODULE_ITEM); /* of the value of a key */
        cr_expect_eq(s.beside.n_omitted, (uint64_t)no_modules);
        cr_expect_str_eq(s.text, no_modules ? "module-data AAAAAAAAA\nevent \n"
                                            : "event \nevent \nevent \nevent \n");
    }
}
