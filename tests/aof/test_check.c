/* What a check makes of logs that are whole, cut anywhere, or changed anywhere.
 */
#include "aof/check.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "aof/check/names.h"
#include "aof/commands.h"
#include "base/buf.h"
#include "base/src_impl.h"
#include "tests/aof/flaky.h"
#include "tests/support/alloc_fault.h"

enum { TAIL = 4096, TEXT = 600, COMMANDS = 200, ENDS = 2 * COMMANDS };

#define SET   "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC  "*1\r\n$4\r\nEXEC\r\n"

struct reported {
    char text[TEXT];
};

/* "word@offset" of each finding. */
static void note_finding(void *ctx, const struct aof_finding *f)
{
    struct reported *reported = ctx;
    size_t len = strlen(reported->text);
    cr_assert_not_null(f->text);
    snprintf(reported->text + len, TEXT - len, "%s%s@%lld", len > 0 ? " " : "", f->word,
             (long long)f->offset);
}

static struct aof_check_file check_bytes(struct rd_slice bytes, size_t feed,
                                         struct reported *reported, enum aof_verdict *ret)
{
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.finding = note_finding, .ctx = reported, .single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    if (feed > 0)
        cr_assert(rd_src_open_trickle(&src, src, feed, NULL, NULL));
    cr_assert(aof_check_one(src, "log", &opts, &res, &err), "%s", err.text);
    rd_src_close(src);
    cr_assert_eq(res.n_files, 1);
    struct aof_check_file file = *res.files[0];
    cr_assert_eq(file.detail != NULL, file.damaged || file.has_snapshot);
    if (file.damaged) {
        cr_assert_eq(file.detail->err.code, file.code);
        cr_assert_eq(file.detail->err.offset, file.broken_at);
    }
    *ret = res.verdict;
    aof_check_done(&res);
    return file;
}

struct row {
    char bytes[TEXT];
    char findings[TEXT];
    enum aof_verdict verdict;
};

static const struct row rows[] = {
    {SET, "", AOF_VERDICT_SOUND},
    {"#TS:1\r\n" SET "#other\r\n" MULTI SET EXEC, "", AOF_VERDICT_SOUND},
    {SET "*", "truncated@28", AOF_VERDICT_TORN},
    {SET "x", "corrupt@27", AOF_VERDICT_TORN},
    {SET "x" SET, "corrupt@27", AOF_VERDICT_DAMAGED},
    {SET "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99\r\nv\r\n" SET, "truncated@82", AOF_VERDICT_DAMAGED},
    {SET MULTI SET, "multi-without-exec@27", AOF_VERDICT_TORN},
    {SET MULTI SET MULTI EXEC, "multi-in-multi@69", AOF_VERDICT_DAMAGED},
    {SET MULTI SET MULTI SET EXEC SET EXEC SET, "script-in-transaction@-1", AOF_VERDICT_SOUND},
    {MULTI MULTI EXEC MULTI SET EXEC EXEC, "script-in-transaction@-1", AOF_VERDICT_SOUND},
    {SET MULTI SET MULTI SET MULTI EXEC, "multi-in-multi@69", AOF_VERDICT_DAMAGED},
    {SET MULTI MULTI SET EXEC "x", "multi-in-multi@42 corrupt@98", AOF_VERDICT_DAMAGED},
    {SET EXEC, "exec-without-multi@27", AOF_VERDICT_TORN},
    {SET EXEC SET, "exec-without-multi@27", AOF_VERDICT_DAMAGED},
    {MULTI SET "*0\r\n", "corrupt@43", AOF_VERDICT_TORN},
    {"#TS:2\r\n#TS:1\r\n", "time-goes-back@7", AOF_VERDICT_WARNED},
    {"*1\r\n$3\r\nFOO\r\n*1\r\n$3\r\nFOO\r\n", "unknown-command@0", AOF_VERDICT_WARNED},
    {SET "*2\r\n$3\r\nSET\r\n$1\r\na\r\n", "too-few-arguments@27", AOF_VERDICT_TORN},
    {"*1\r\n$4\r\ninCR\r\n" SET, "too-few-arguments@0", AOF_VERDICT_DAMAGED},
    {MULTI SET "*2\r\n$3\r\nSET\r\n$1\r\na\r\n" EXEC SET, "too-few-arguments@42",
     AOF_VERDICT_DAMAGED},
    {"#TS:1", "not-a-log@5", AOF_VERDICT_NOT_LOG},
    {"*3\n$3\nSET\n$1\nk\n$1\nv\n", "text-mode@2", AOF_VERDICT_DAMAGED},
    {"*3\r\r\n$3\r\r\nSET\r\r\n", "text-mode@3", AOF_VERDICT_DAMAGED},
    {"# services\nftp 21/tcp\n", "not-a-log@11", AOF_VERDICT_NOT_LOG},
    {"", "empty-file@-1", AOF_VERDICT_SOUND},
};

Test(check, finds_what_is_wrong_whatever_the_size_of_reads)
{
    static const size_t feeds[] = {0, 1, 2, 3, 7, 4096};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof feeds / sizeof feeds[0]; k++) {
            struct reported reported = {""};
            enum aof_verdict verdict;
            check_bytes(rd_slice_str(rows[i].bytes), feeds[k], &reported, &verdict);
            cr_assert_str_eq(reported.text, rows[i].findings, "row %zu", i);
            /* What cannot seek cannot be searched after the damage: then nothing is promised. */
            if (feeds[k] == 0 || verdict != AOF_VERDICT_DAMAGED)
                cr_assert_eq(verdict, rows[i].verdict, "row %zu: %s", i, aof_verdict_word(verdict));
        }
}

/* Commands of many lengths, every fifth in a transaction; ends[] are where a cut does no harm. */
static size_t make_log(struct rd_buf *log, uint64_t ends[ENDS])
{
    size_t n = 0;
    ends[n++] = 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (i % 7 == 3) {
            cr_assert(rd_buf_printf(log, "#TS:%d\r\n", 1000 + i));
            ends[n++] = log->len;
        }
        if (i % 5 == 0)
            cr_assert(rd_buf_printf(log, MULTI));
        cr_assert(rd_buf_printf(log, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%0*d\r\n", 1 + i % 40,
                                1 + i % 40, i % 10));
        if (i % 5 == 0)
            cr_assert(rd_buf_printf(log, EXEC));
        ends[n++] = log->len;
    }
    return n;
}

static uint64_t last_end(const uint64_t *ends, size_t n, uint64_t size)
{
    uint64_t last = 0;
    for (size_t i = 0; i < n && ends[i] <= size; i++)
        last = ends[i];
    return last;
}

Test(check, every_cut_in_the_last_4_kib_is_found_and_repairable)
{
    struct rd_buf log = {0};
    static uint64_t ends[ENDS];
    size_t n = make_log(&log, ends);
    cr_assert_gt(log.len, TAIL);
    for (size_t size = log.len - TAIL; size <= log.len; size++) {
        struct reported reported = {""};
        enum aof_verdict verdict;
        uint64_t end = last_end(ends, n, size);
        struct aof_check_file f = check_bytes(rd_slice(log.ptr, size), 0, &reported, &verdict);
        cr_assert_eq(f.ok_up_to, end, "%zu", size);
        cr_assert_eq(f.size, size);
        cr_assert_eq(verdict, end == size ? AOF_VERDICT_SOUND : AOF_VERDICT_TORN, "%zu: %s", size,
                     reported.text);
        if (end == size)
            continue;
        cr_assert_eq(f.code, RD_ERR_TRUNCATED);
        cr_assert_eq(f.broken_at, size);
    }
    rd_buf_done(&log);
}

Test(check, every_changed_byte_leaves_the_records_before_it)
{
    struct rd_buf log = {0};
    static uint64_t ends[ENDS];
    size_t n = make_log(&log, ends), n_damaged = 0;
    for (size_t at = log.len - TAIL; at < log.len; at++) {
        struct reported reported = {""};
        enum aof_verdict verdict;
        uint8_t was = log.ptr[at];
        log.ptr[at] ^= 0x80;
        struct aof_check_file f = check_bytes(rd_buf_slice(&log), 0, &reported, &verdict);
        if (f.damaged) {
            cr_assert_geq(f.ok_up_to, last_end(ends, n, at), "%zu", at);
            cr_assert_geq(f.broken_at, last_end(ends, n, at), "%zu", at);
            n_damaged++;
        }
        log.ptr[at] = was;
    }
    cr_assert_gt(n_damaged, TAIL / 4);
    rd_buf_done(&log);
}

Test(check, zeros_up_to_the_end_differ_from_other_damage)
{
    for (size_t zeros = 1; zeros < 100000; zeros = 3 * zeros + 1) {
        struct rd_buf log = {0};
        struct reported reported = {""};
        enum aof_verdict verdict;
        cr_assert(rd_buf_printf(&log, SET));
        for (size_t i = 0; i < zeros; i++)
            cr_assert(rd_buf_add_byte(&log, 0));
        struct aof_check_file f = check_bytes(rd_buf_slice(&log), 0, &reported, &verdict);
        cr_assert_str_eq(reported.text, "zero-tail@27");
        cr_assert_eq(f.zeros, zeros);
        cr_assert_eq(verdict, AOF_VERDICT_TORN);
        cr_assert(rd_buf_printf(&log, SET));
        reported.text[0] = '\0';
        f = check_bytes(rd_buf_slice(&log), 0, &reported, &verdict);
        cr_assert_str_eq(reported.text, "corrupt@27");
        cr_assert_eq(f.after, 27 + zeros);
        cr_assert_eq(verdict, AOF_VERDICT_DAMAGED);
        rd_buf_done(&log);
    }
}

Test(check, more_names_than_are_remembered_are_counted_together)
{
    struct aof_check_opts opts = AOF_CHECK_OPTS(.single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_buf log = {0};
    struct rd_src *src;
    for (int i = 0; i < AOF_UNKNOWN_NAMES + 5; i++)
        cr_assert(rd_buf_printf(&log, "*1\r\n$3\r\nX%02d\r\n", i));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&log), NULL, NULL));
    cr_assert(aof_check_one(src, "log", &opts, &res, NULL));
    cr_assert_eq(res.warnings, AOF_UNKNOWN_NAMES + 1);
    cr_assert_eq(res.commands, AOF_UNKNOWN_NAMES + 5);
    aof_check_done(&res);
    rd_src_close(src);
    rd_buf_done(&log);
}

Test(check, a_long_command_after_damage_is_seen)
{
    enum { LONG = 1 << 20 };
    struct rd_buf log = {0};
    struct reported reported = {""};
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.finding = note_finding, .ctx = &reported, .single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    cr_assert(
        rd_buf_printf(&log, SET "x*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%0*d\r\n", LONG, LONG, 1));
    for (size_t cut = 0; cut < 3; cut++) {
        struct flaky from = {.bytes = rd_slice(log.ptr, log.len - cut), .piece = 4096};
        struct rd_src *src = flaky_open(&from);
        cr_assert(aof_check_one(src, "log", &opts, &res, NULL));
        cr_assert_eq(res.verdict, cut == 0 ? AOF_VERDICT_DAMAGED : AOF_VERDICT_TORN);
        cr_assert_eq(res.files[0]->after, cut == 0 ? sizeof SET : RD_NO_OFFSET);
        aof_check_done(&res);
        rd_src_close(src);
    }
    rd_buf_done(&log);
}

Test(check, where_nothing_is_but_beginnings_of_commands_the_search_ends_without_a_promise)
{
    struct rd_buf log = {0};
    struct rd_src *src;
    struct aof_check_opts opts = AOF_CHECK_OPTS(.single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    cr_assert(rd_buf_printf(&log, SET "x"));
    for (int i = 0; i < 5000; i++)
        cr_assert(rd_buf_printf(&log, "*1\r\n$1\r\n"));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&log), NULL, NULL));
    cr_assert(aof_check_one(src, "log", &opts, &res, NULL));
    cr_assert_not(res.files[0]->searched);
    cr_assert_eq(res.verdict, AOF_VERDICT_DAMAGED);
    aof_check_done(&res);
    rd_src_close(src);
    rd_buf_done(&log);
}

Test(check, the_first_bytes_tell_what_a_file_holds)
{
    cr_assert_eq(aof_content_of(rd_slice_str("")), AOF_EMPTY);
    cr_assert_eq(aof_content_of(rd_slice_str("*1\r\n")), AOF_RESP);
    cr_assert_eq(aof_content_of(rd_slice_str("REDIS")), AOF_SNAPSHOT);
    cr_assert_eq(aof_content_of(rd_slice_str("REDIS0011")), AOF_SNAPSHOT);
    cr_assert_eq(aof_content_of(rd_slice_str("VALKEY080")), AOF_SNAPSHOT);
    cr_assert_str_eq(aof_content_name(AOF_EMPTY), "empty");
    cr_assert_str_eq(aof_content_name(AOF_SNAPSHOT), "snapshot");
}

struct named {
    unsigned set, other;
};

static void count_name(void *ctx, struct rd_slice name)
{
    struct named *named = ctx;
    named->set += rd_slice_is(name, "SET");
    named->other += !rd_slice_is(name, "SET");
}

Test(check, reports_the_name_of_each_command)
{
    struct named named = {0, 0};
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.command = count_name, .ctx = &named, .single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, rd_slice_str(SET MULTI SET EXEC "*x" SET), NULL, NULL));
    cr_assert(aof_check_one(src, "log", &opts, &res, NULL));
    cr_assert_eq(named.set, 2);
    cr_assert_eq(named.other, 2);
    aof_check_done(&res);
    rd_src_close(src);
}

/* ---- folders ---- */

struct folder {
    const char *base, *incr; /* NULL: not there */
    struct reported reported;
};

static bool open_in(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err)
{
    const struct folder *folder = ctx;
    const char *bytes = file->type == AOF_BASE ? folder->base : folder->incr;
    if (bytes == NULL)
        return rd_err_sys(err, ENOENT, "open");
    return rd_src_open_memory(ret, rd_slice_str(bytes), NULL, err);
}

static const char two_files[] = "file a.1.base.aof seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";

static void note_folder(void *ctx, const struct aof_finding *f)
{
    note_finding(&((struct folder *)ctx)->reported, f);
}

static bool check_folder(struct folder *folder, const char *manifest, struct aof_check_result *ret,
                         struct rd_err *err)
{
    static const char *const names[] = {"a.1.base.aof", "a.2.incr.aof", "temp-a.aof", "other"};
    const struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_in, .finding = note_folder, .ctx = folder, .names = names,
                       .n_names = sizeof names / sizeof names[0], .prefix = "a",
                       .single_thread = true);
    struct rd_src *src;
    folder->reported.text[0] = '\0';
    *ret = AOF_CHECK_RESULT();
    if (!rd_src_open_memory(&src, rd_slice_str(manifest), NULL, err))
        return false;
    bool ok = aof_check(src, &opts, ret, err);
    rd_src_close(src);
    return ok;
}

Test(check, a_folder_is_its_manifest_and_its_files)
{
    struct folder folder = {.base = SET, .incr = SET SET};
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_err err = {0};
    cr_assert(check_folder(&folder, two_files, &res, &err));
    cr_assert_str_eq(folder.reported.text, "not-in-manifest@-1 leftover-file@-1");
    cr_assert_eq(res.verdict, AOF_VERDICT_WARNED);
    cr_assert_eq(res.n_files, 2);
    cr_assert_eq(res.commands, 3);
    cr_assert_eq(res.bytes, 3 * 27);
    aof_check_done(&res);

    folder.incr = NULL;
    cr_assert(check_folder(&folder, two_files, &res, &err));
    cr_assert_eq(res.verdict, AOF_VERDICT_MISSING);
    cr_assert_eq(res.files[1]->verdict, AOF_VERDICT_MISSING);
    aof_check_done(&res);

    folder = (struct folder){.base = SET "x", .incr = SET};
    cr_assert(check_folder(&folder, two_files, &res, &err));
    cr_assert_eq(res.verdict, AOF_VERDICT_DAMAGED, "not the last file");
    aof_check_done(&res);
}

static bool open_torn(void *ctx, const struct aof_file *file, struct rd_src **ret,
                      struct rd_err *err)
{
    (void)ctx, (void)file;
    return rd_src_open_memory(ret, rd_slice_str(SET "*"), NULL, err);
}

Test(check, details_of_many_damaged_files_are_not_kept_but_those_of_the_last_are)
{
    enum { FILES = 3 * AOF_CHECK_DETAILS };
    const struct aof_check_opts opts = AOF_CHECK_OPTS(.open = open_torn, .single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_buf manifest = {0};
    struct rd_src *src;
    size_t n = 0;
    for (int i = 1; i <= FILES; i++)
        cr_assert(rd_buf_printf(&manifest, "file a.%d.incr.aof seq %d type i\n", i, i));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&manifest), NULL, NULL));
    cr_assert(aof_check(src, &opts, &res, NULL));
    cr_assert_eq(res.n_files, FILES);
    for (size_t i = 0; i < FILES; i++) {
        cr_assert_eq(res.files[i]->code, RD_ERR_TRUNCATED);
        cr_assert_eq(res.files[i]->broken_at, sizeof SET "*" - 1);
        n += res.files[i]->detail != NULL;
    }
    cr_assert_eq(n, AOF_CHECK_DETAILS);
    cr_assert_not_null(res.files[0]->detail);
    cr_assert_not_null(res.files[FILES - 1]->detail);
    aof_check_done(&res);
    rd_src_close(src);
    rd_buf_done(&manifest);
}

Test(check, says_when_memory_is_short)
{
    for (size_t n = 1;; n++) {
        struct folder folder = {.base = SET, .incr = SET "#TS:1\r\n" MULTI EXEC};
        struct aof_check_result res = AOF_CHECK_RESULT();
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = check_folder(&folder, two_files, &res, &err);
        aof_check_done(&res);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        if (!r.failed)
            break;
        cr_assert_not(ok, "allocation %zu", n);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}

/* ---- names ---- */

Test(check, names_of_commands_are_sorted_and_known_in_any_case)
{
    size_t n = aof_command_count();
    cr_assert_gt(n, 400);
    for (size_t i = 0; i < n; i++) {
        const char *name = aof_command_name(i);
        char upper[64];
        size_t len = strlen(name);
        cr_assert(i == 0 || strcmp(aof_command_name(i - 1), name) < 0, "%s", name);
        for (size_t k = 0; k <= len; k++)
            upper[k] = (char)toupper((unsigned char)name[k]);
        cr_assert(aof_command_known(rd_slice(name, len)));
        cr_assert(aof_command_known(rd_slice(upper, len)));
        cr_assert_not(aof_command_known(rd_slice(name, len + 1)), "a NUL is part of the name");
    }
    cr_assert_not(aof_command_known(rd_slice("", 0)));
    cr_assert_not(aof_command_known(rd_slice_str("set ")));
    cr_assert_not(aof_command_known(rd_slice_str("zzz")));
}

Test(check, names_are_compared_by_every_byte)
{
    static struct aof_names names;
    struct aof_unknown_name *unknown = NULL;
    memset(&names, 0, sizeof names);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < aof_command_count(); i++) {
            const char *name = aof_command_name(i);
            size_t len = strlen(name);
            char other[64];
            memcpy(other, name, len + 1);
            enum aof_name_kind kind = aof_names_look_up(&names, rd_slice(name, len), 9, &unknown);
            cr_assert_neq(kind, AOF_NAME_UNKNOWN, "%s", name);
            cr_assert_eq(kind == AOF_NAME_MULTI, strcmp(name, "multi") == 0);
            for (size_t k = 0; k < len; k++) {
                other[k] = '~';
                cr_assert_eq(aof_names_look_up(&names, rd_slice(other, len), 9, &unknown),
                             AOF_NAME_UNKNOWN, "%s", other);
                other[k] = name[k];
            }
        }
    cr_assert_eq(names.n_unknown, AOF_UNKNOWN_NAMES);
    cr_assert_gt(names.n_more, 1000);
}
