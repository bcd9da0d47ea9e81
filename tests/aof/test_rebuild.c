/* Manifests made from listings: what becomes of each file, and why.
 */
#include "aof/rebuild.h"

#include <criterion/criterion.h>

#include "base/buf.h"
#include "tests/support/alloc_fault.h"

#define NO_TIME AOF_NO_TIME, AOF_NO_TIME, AOF_NO_TIME
#define BASE(seq)                                                                                  \
    {                                                                                              \
        "appendonly.aof." #seq ".base.rdb", 100, AOF_SNAPSHOT, true, NO_TIME                       \
    }
#define INCR(seq)                                                                                  \
    {                                                                                              \
        "appendonly.aof." #seq ".incr.aof", 100, AOF_RESP, true, NO_TIME                           \
    }

static struct aof_manifest read_manifest(const char *text)
{
    struct aof_manifest m;
    struct rd_src *src;
    aof_manifest_init(&m);
    if (text == NULL)
        return m;
    cr_assert(rd_src_open_memory(&src, rd_slice_str(text), NULL, NULL));
    cr_assert(aof_manifest_read(&m, src, NULL, NULL, NULL), "%s", text);
    rd_src_close(src);
    return m;
}

/* The lines of the manifest without "file appendonly.aof.", then a mark where something is
 * doubtful. */
static void expect(const struct aof_found *found, size_t n, const char *old_text,
                   const char *expected)
{
    struct aof_manifest old = read_manifest(old_text);
    struct aof_rebuild plan;
    struct rd_buf out = {0};
    struct rd_err err = {0};
    aof_rebuild_init(&plan);
    if (aof_rebuild_plan(&plan, found, n, "appendonly.aof", &old, &err)) {
        for (size_t i = 0; i < aof_manifest_count(&plan.manifest); i++)
            cr_assert(
                rd_buf_printf(&out, "%s%s:%c", i > 0 ? " " : "",
                              aof_manifest_file(&plan.manifest, i)->name + strlen("appendonly.aof"),
                              (char)aof_manifest_file(&plan.manifest, i)->type));
        if (plan.doubtful)
            cr_assert(rd_buf_printf(&out, " ?"));
    } else {
        cr_assert(rd_buf_printf(&out, "%s", rd_err_word(err.code)));
    }
    cr_assert(rd_buf_add_byte(&out, 0));
    cr_expect_str_eq((const char *)out.ptr, expected);
    rd_buf_done(&out);
    aof_rebuild_done(&plan);
    aof_manifest_done(&old);
}

#define EXPECT(old, expected, ...)                                                                 \
    do {                                                                                           \
        const struct aof_found found[] = {__VA_ARGS__};                                            \
        expect(found, sizeof found / sizeof *found, old, expected);                                \
    } while (0)

Test(rebuild, a_base_and_what_follows_it)
{
    EXPECT(NULL, ".2.base.rdb:b .2.incr.aof:i .10.incr.aof:i ?", INCR(10), INCR(2), BASE(2));
    EXPECT(NULL, ".2.base.rdb:b .2.incr.aof:i .3.incr.aof:i", INCR(3), INCR(2), BASE(2));
    EXPECT(NULL, ".1.base.rdb:b", BASE(1));
}

Test(rebuild, what_is_older_than_the_newest_base_is_history)
{
    EXPECT(NULL, ".2.base.rdb:b .1.base.rdb:h .1.incr.aof:h .2.incr.aof:i", BASE(1), INCR(1),
           BASE(2), INCR(2));
}

Test(rebuild, without_an_older_base_older_numbers_are_left_out_and_not_deleted)
{
    EXPECT(NULL, ".2.base.rdb:b .2.incr.aof:i ?", INCR(1), BASE(2), INCR(2));
}

Test(rebuild, a_damaged_base_is_taken_only_where_none_is_sound)
{
    const struct aof_found broken = {"appendonly.aof.2.base.rdb", 100, AOF_SNAPSHOT, false,
                                     NO_TIME};
    EXPECT(NULL, ".1.base.rdb:b .1.incr.aof:i .2.incr.aof:i ?", BASE(1), INCR(1), broken, INCR(2));
    EXPECT(NULL, ".2.base.rdb:b .2.incr.aof:i ?", broken, INCR(2));
}

Test(rebuild, numbers_left_out_are_reported)
{
    EXPECT(NULL, ".1.base.rdb:b .1.incr.aof:i .4.incr.aof:i ?", BASE(1), INCR(1), INCR(4));
}

Test(rebuild, without_a_base_the_commands_alone_remain)
{
    EXPECT(NULL, ".1.incr.aof:i .2.incr.aof:i ?", INCR(1), INCR(2));
}

Test(rebuild, nothing_of_a_log_is_corrupt)
{
    EXPECT(NULL, "corrupt", {"dump.rdb", 100, AOF_SNAPSHOT, true, NO_TIME});
    EXPECT(NULL, "corrupt", {"temp-rewriteaof-1.aof", 100, AOF_RESP, true, NO_TIME});
}

Test(rebuild, a_log_from_before_7_is_a_base)
{
    EXPECT(NULL, ":b .1.incr.aof:i", {"appendonly.aof", 100, AOF_RESP, true, NO_TIME}, INCR(1));
    EXPECT(NULL, ".2.base.rdb:b :h .1.incr.aof:h .2.incr.aof:i",
           {"appendonly.aof", 100, AOF_RESP, true, NO_TIME}, INCR(1), BASE(2), INCR(2));
}

Test(rebuild, of_two_files_with_one_number_the_manifests_or_the_sound_one_is_taken)
{
    EXPECT(NULL, ".1.base.aof:b ?", {"appendonly.aof.1.base.rdb", 9, AOF_SNAPSHOT, false, NO_TIME},
           {"appendonly.aof.1.base.aof", 5, AOF_RESP, true, NO_TIME});
    EXPECT("file appendonly.aof.1.base.rdb seq 1 type b\n", ".1.base.rdb:b ?", BASE(1),
           {"appendonly.aof.1.base.aof", 500, AOF_RESP, true, NO_TIME});
}

Test(rebuild, of_two_sound_files_with_one_number_the_named_or_the_larger_one_is_taken)
{
    EXPECT(NULL, ".1.base.rdb:b ?", {"appendonly.aof", 500, AOF_RESP, true, NO_TIME}, BASE(1));
    EXPECT(NULL, ".1.base.rdb:b ?", BASE(1), {"appendonly.aof", 500, AOF_RESP, true, NO_TIME});
    EXPECT(NULL, ".1.base.aof:b ?", BASE(1),
           {"appendonly.aof.1.base.aof", 500, AOF_RESP, true, NO_TIME});
    EXPECT(NULL, ".1.base.rdb:b ?", BASE(1),
           {"appendonly.aof.1.base.aof", 50, AOF_RESP, true, NO_TIME});
}

Test(rebuild, what_becomes_of_a_file_has_a_word)
{
    static const char *const words[] = {"base", "incr", "history", "left-out", "missing"};
    for (int use = AOF_USE_BASE; use <= AOF_USE_MISSING; use++)
        cr_expect_str_eq(aof_use_word((enum aof_use)use), words[use]);
}

Test(rebuild, the_old_manifest_tells_what_belongs_to_its_base)
{
    EXPECT("file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.3.incr.aof seq 3 type "
           "h\nfile appendonly.aof.4.incr.aof seq 4 type i\n",
           ".2.base.rdb:b .3.incr.aof:h .4.incr.aof:i .5.incr.aof:i", BASE(2), INCR(3), INCR(4),
           INCR(5));
}

Test(rebuild, a_stale_manifest_does_not_hide_a_newer_base)
{
    EXPECT("file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type "
           "i\n",
           ".2.base.rdb:b .1.base.rdb:h .1.incr.aof:h .2.incr.aof:i", BASE(1), INCR(1), BASE(2),
           INCR(2));
}

Test(rebuild, files_with_names_of_their_own_are_known_by_the_old_manifest)
{
    EXPECT("file appendonly.aof.odd seq 3 type i\n", ".1.base.rdb:b .odd:i", BASE(1),
           {"appendonly.aof.odd", 100, AOF_RESP, true, NO_TIME});
}

Test(rebuild, times_tell_which_commands_are_older_than_the_base)
{
    EXPECT(NULL, ".2.base.rdb:b .1.base.rdb:h .2.incr.aof:h .3.incr.aof:h .4.incr.aof:i", BASE(1),
           {"appendonly.aof.2.base.rdb", 9, AOF_SNAPSHOT, true, AOF_NO_TIME, AOF_NO_TIME, 1000},
           {"appendonly.aof.2.incr.aof", 9, AOF_RESP, true, 100, 500, AOF_NO_TIME},
           {"appendonly.aof.3.incr.aof", 9, AOF_RESP, true, 500, 999, AOF_NO_TIME},
           {"appendonly.aof.4.incr.aof", 9, AOF_RESP, true, 1000, 2000, AOF_NO_TIME});
}

Test(rebuild, what_the_old_manifest_names_and_is_gone_is_reported)
{
    EXPECT("file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.2.incr.aof seq 2 type "
           "i\n",
           ".1.base.rdb:b .1.incr.aof:i ?", BASE(1), INCR(1));
}

Test(rebuild, short_memory_is_an_error_and_leaks_nothing)
{
    const struct aof_found found[] = {BASE(1), INCR(1), BASE(2), INCR(2), INCR(5)};
    for (size_t n = 1;; n++) {
        struct aof_rebuild plan;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        aof_rebuild_init(&plan);
        bool ok = aof_rebuild_plan(&plan, found, 5, "appendonly.aof", NULL, &err);
        aof_rebuild_done(&plan);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed)
            break;
        cr_assert_not(ok);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}
