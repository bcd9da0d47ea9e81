#include "aof/manifest.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/src_impl.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#define S(text) rd_slice(text, sizeof(text) - 1)

static struct rd_src *memory(struct rd_slice bytes)
{
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    return src;
}

/* Reads what must be sound. */
static struct aof_manifest read_sound(struct rd_slice bytes)
{
    struct rd_src *src = memory(bytes);
    struct aof_manifest m;
    struct rd_err err = {0};
    aof_manifest_init(&m);
    cr_assert(aof_manifest_read(&m, src, NULL, NULL, &err), "%s", err.text);
    rd_src_close(src);
    return m;
}

static struct rd_buf written(const struct aof_manifest *m)
{
    struct rd_buf text = {0};
    struct rd_sink *sink;
    cr_assert(rd_sink_open_buf(&sink, &text, NULL, NULL));
    cr_assert(aof_manifest_write(m, sink));
    cr_assert(rd_sink_close(sink, NULL));
    cr_assert(rd_buf_add_byte(&text, 0));
    return text;
}

/* "WORD@OFFSET:LINE" of each problem; fatal: whether servers refuse the file because of one. */
struct problems {
    char text[600];
    bool fatal;
    size_t n;
};

static void note(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                 const char *text)
{
    struct problems *seen = ctx;
    size_t len = strlen(seen->text);
    cr_assert_gt(strlen(text), 0);
    snprintf(seen->text + len, sizeof seen->text - len, "%s%s@%ju:%u", len > 0 ? " " : "",
             aof_manifest_problem_word(problem) + strlen("manifest-"), (uintmax_t)offset, line);
    seen->fatal |= aof_manifest_problem_fatal(problem);
    seen->n++;
}

static void expect_problems(struct rd_slice bytes, const char *want, size_t n_files)
{
    struct problems seen = {0};
    struct aof_manifest m, strict;
    struct rd_src *src = memory(bytes);
    char quoted[300];
    rd_err_quote(quoted, sizeof quoted, bytes);
    aof_manifest_init(&m);
    cr_assert(aof_manifest_read(&m, src, note, &seen, NULL), "%s", quoted);
    rd_src_close(src);
    cr_expect_str_eq(seen.text, want, "%s in %s", seen.text, quoted);
    cr_expect_eq(aof_manifest_count(&m), n_files, "%zu files in %s", aof_manifest_count(&m),
                 quoted);
    aof_manifest_done(&m);
    struct rd_err err = {0};
    src = memory(bytes);
    aof_manifest_init(&strict);
    cr_expect_eq(aof_manifest_read(&strict, src, NULL, NULL, &err), !seen.fatal, "%s", quoted);
    cr_expect_eq(err.code, seen.fatal ? RD_ERR_CORRUPT : RD_ERR_OK);
    if (seen.fatal)
        cr_expect_eq(aof_manifest_count(&strict), 0);
    aof_manifest_done(&strict);
    rd_src_close(src);
}

#define BASE "file a.1.base.rdb seq 1 type b\n"
#define INCR "file a.1.incr.aof seq 1 type i\n"

Test(manifest, lines_are_read_as_servers_read_them)
{
    struct aof_manifest m =
        read_sound(S("# a comment\n" BASE "  FILE\ta.1.incr.aof  type i SEQ 1 \r\n"
                     "seq 07x type incr file 'a \\'b' later \"f  g\" x y\n"
                     "file \"a\\x20\\n\\\"\" seq 9 type h\n#"));
    cr_assert_eq(aof_manifest_count(&m), 4);
    cr_assert_str_eq(aof_manifest_file(&m, 0)->name, "a.1.base.rdb");
    cr_assert_eq(aof_manifest_file(&m, 0)->type, AOF_BASE);
    cr_assert_eq(aof_manifest_file(&m, 0)->seq, 1);
    cr_assert_eq(aof_manifest_file(&m, 0)->offset, 12);
    cr_assert_eq(aof_manifest_file(&m, 0)->line, 2);
    cr_assert_eq(aof_manifest_file(&m, 0)->start_offset, -1);
    cr_assert_null(aof_manifest_file(&m, 0)->extra);
    cr_assert_str_eq(aof_manifest_file(&m, 1)->name, "a.1.incr.aof");
    cr_assert_str_eq(aof_manifest_file(&m, 2)->name, "a 'b");
    cr_assert_eq(aof_manifest_file(&m, 2)->seq, 7);
    cr_assert_str_eq(aof_manifest_file(&m, 2)->extra, "later \"f  g\" x y");
    cr_assert_str_eq(aof_manifest_file(&m, 3)->name, "a \n\"");
    cr_assert_eq(aof_manifest_file(&m, 3)->type, AOF_HISTORY);
    cr_assert_eq(aof_manifest_base(&m), aof_manifest_file(&m, 0));
    cr_assert_eq(aof_manifest_last_incr(&m), aof_manifest_file(&m, 2));
    aof_manifest_done(&m);
    cr_assert_eq(aof_manifest_count(&m), 0);
}

Test(manifest, offsets_of_the_replication_stream_are_kept)
{
    static const char text[] = "file a seq 1 type i startoffset 1200 endoffset 3400\n";
    struct aof_manifest m = read_sound(S(text));
    cr_assert_eq(aof_manifest_file(&m, 0)->start_offset, 1200);
    cr_assert_eq(aof_manifest_file(&m, 0)->end_offset, 3400);
    struct rd_buf out = written(&m);
    cr_assert_str_eq((const char *)out.ptr, text);
    rd_buf_done(&out);
    aof_manifest_done(&m);
}

/* What Redis 7.0.15, and for those of the corpus Redis unstable and Valkey 8.0.1, said when they
 * were started with such a manifest. */
Test(manifest, what_servers_refuse_is_refused_and_named)
{
    expect_problems(S(""), "empty@0:0", 0);
    expect_problems(S("# one\n# two\n"), "no-files@12:0", 0);
    expect_problems(S(BASE "\n" INCR), "line-blank@31:2", 2);
    expect_problems(S(BASE " # x y\n"), "line-pairs@36:2", 1);
    expect_problems(S(BASE "file a.1.incr.aof seq 1 type i"), "line-cut@61:2", 2);
    expect_problems(S(BASE "# no end"), "", 1);
    expect_problems(S(BASE "file a.1.incr.aof seq 1 type i later\n"), "line-pairs@62:2", 1);
    expect_problems(S(BASE "file \"a seq 1 type i\n"), "line-pairs@36:2", 1);
    expect_problems(S(BASE "file \"a\"b seq 1 type i\n"), "line-pairs@36:2", 1);
    expect_problems(S(BASE INCR "\0\n"), "line-nul@62:3", 2);
    expect_problems(S(BASE "seq 1 type i\n"), "no-name@43:2", 1);
    expect_problems(S("file ./a seq 1 type b\n" INCR), "bad-name@5:1", 1);
    expect_problems(S("file a\\b seq 1 type b\n"), "bad-name@5:1 no-files@22:0", 0);
    expect_problems(S("file \"\" seq 1 type b\n" INCR), "bad-name@5:1", 1);
    expect_problems(S("file \"a\\x00\" seq 1 type b\n" INCR), "bad-name@5:1", 1);
    expect_problems(S(BASE "file a seq 0 type i\n"), "bad-seq@42:2", 1);
    expect_problems(S(BASE "file a seq -2 type i\n"), "bad-seq@42:2", 1);
    expect_problems(S(BASE "file a seq 99999999999999999999 type i\n"), "bad-seq@42:2", 1);
    expect_problems(S(BASE "file a type i\n"), "bad-seq@44:2", 1);
    expect_problems(S(BASE "file a seq 2\n"), "no-type@43:2", 1);
    expect_problems(S(BASE "file a seq 2 type x\n"), "bad-type@49:2", 1);
    expect_problems(S(BASE BASE INCR), "two-bases@31:2", 2);
    expect_problems(S(BASE "file b seq 2 type i\n" INCR), "seq-order@73:3", 3);
    expect_problems(S(BASE INCR INCR), "seq-order@84:3", 2);
}

Test(manifest, what_servers_take_is_remarked_only)
{
    expect_problems(S(INCR "file a.1.incr.aof seq 2 type i\n"), "same-name@31:2", 2);
    expect_problems(S(INCR "file b seq 3 type i\n"), "seq-missing@42:2", 2);
    expect_problems(S("file a seq 1 type i startoffset x\n"), "bad-offset@32:1", 1);
    expect_problems(S("file c seq 9 type h\n" BASE), "", 2);
}

/* A line of len bytes with its end. */
static struct rd_buf long_line(const char *begin, size_t len)
{
    struct rd_buf text = {0};
    cr_assert(rd_buf_printf(&text, "%s", begin));
    while (text.len < len - 1)
        cr_assert(rd_buf_add_byte(&text, ' '));
    cr_assert(rd_buf_add_byte(&text, '\n'));
    return text;
}

Test(manifest, a_line_has_at_most_1024_bytes)
{
    static const char *const begins[] = {"file a seq 1 type b", "# a comment"};
    for (size_t i = 0; i < 2; i++) {
        struct rd_buf fits = long_line(begins[i], 1024), over = long_line(begins[i], 1025);
        expect_problems(rd_buf_slice(&fits), i == 0 ? "" : "no-files@1024:0", i == 0);
        expect_problems(rd_buf_slice(&over), "line-long@1024:1 no-files@1025:0", 0);
        rd_buf_done(&fits);
        rd_buf_done(&over);
    }
}

Test(manifest, what_is_written_is_in_the_order_of_servers_and_reads_back)
{
    struct aof_manifest m = read_sound(S("file \"a b\\xff\" seq 2 type i k \"v w\"\n"
                                         "file old seq 1 type h\n"
                                         "file it's' seq 1 type b\n"));
    struct rd_buf first = written(&m);
    cr_assert_str_eq((const char *)first.ptr, "file its seq 1 type b\n"
                                              "file old seq 1 type h\n"
                                              "file \"a b\\xff\" seq 2 type i k \"v w\"\n");
    struct aof_manifest again = read_sound(rd_slice(first.ptr, first.len - 1));
    struct rd_buf second = written(&again);
    cr_assert_str_eq((const char *)second.ptr, (const char *)first.ptr);
    rd_buf_done(&first);
    rd_buf_done(&second);
    aof_manifest_done(&m);
    aof_manifest_done(&again);
}

Test(manifest, every_byte_of_a_name_survives_quoting)
{
    for (int c = 1; c < 256; c++) {
        if (c == '/' || c == '\\')
            continue;
        char name[] = {'n', (char)c, 'm', '\0'};
        const struct aof_file file = {
            .name = name, .seq = 1, .type = AOF_INCR, .start_offset = -1, .end_offset = -1};
        struct aof_manifest m;
        aof_manifest_init(&m);
        cr_assert_not_null(aof_manifest_add(&m, &file));
        struct rd_buf text = written(&m);
        struct aof_manifest again = read_sound(rd_slice(text.ptr, text.len - 1));
        cr_assert_str_eq(aof_manifest_file(&again, 0)->name, name);
        rd_buf_done(&text);
        aof_manifest_done(&m);
        aof_manifest_done(&again);
    }
}

Test(manifest, files_are_removed_from_the_list)
{
    struct aof_manifest m = read_sound(S(BASE INCR "file b seq 2 type i\n"));
    aof_manifest_remove(&m, 1);
    cr_assert_eq(aof_manifest_count(&m), 2);
    cr_assert_str_eq(aof_manifest_file(&m, 1)->name, "b");
    aof_manifest_remove(&m, 1);
    aof_manifest_remove(&m, 0);
    cr_assert_null(aof_manifest_base(&m));
    cr_assert_null(aof_manifest_last_incr(&m));
    aof_manifest_done(&m);
}

static const char sample[] =
    "# c\n" BASE INCR "file \"b \\x41\" seq 2 type i k 'v' endoffset 5\r\n";

/* The same in pieces, after a guard page, and with every byte changed: the lenient and the strict
 * way agree on whether servers take it. */
Test(manifest, any_prefix_and_any_flipped_bit_is_judged_alike_in_pieces)
{
    static const size_t sizes[] = {1, 2, 3, 7, 4096};
    enum { LEN = sizeof sample - 1 };
    for (size_t i = 0; i < LEN * 9; i++) {
        size_t len = i < LEN ? i : LEN;
        uint8_t *bytes = guard_new(sample, len);
        if (i >= LEN)
            bytes[(i - LEN) / 8] = (uint8_t)(bytes[(i - LEN) / 8] ^ (1u << i % 8));
        struct problems seen = {0}, strict = {0};
        struct rd_err err = {0};
        struct aof_manifest m;
        struct rd_src *src;
        aof_manifest_init(&m);
        cr_assert(rd_src_open_trickle(&src, memory(rd_slice(bytes, len)), sizes[i % 5],
                                      &RD_SRC_OPTS(.window = 64), NULL));
        cr_assert(aof_manifest_read(&m, src, note, &seen, NULL));
        aof_manifest_done(&m);
        rd_src_close(src);
        src = memory(rd_slice(bytes, len));
        strict.fatal = !aof_manifest_read(&m, src, NULL, NULL, &err);
        cr_assert_eq(strict.fatal, seen.fatal, "%zu: %s", i, seen.text);
        rd_src_close(src);
        aof_manifest_done(&m);
        guard_free(bytes);
    }
}

Test(manifest, memory_may_be_short_at_any_time)
{
    for (size_t n = 1;; n++) {
        struct rd_src *src = memory(S(sample));
        struct aof_manifest m;
        struct rd_err err = {0};
        aof_manifest_init(&m);
        alloc_fault_begin(n);
        bool ok = aof_manifest_read(&m, src, NULL, NULL, &err);
        aof_manifest_done(&m);
        struct alloc_fault_result result = alloc_fault_end();
        rd_src_close(src);
        cr_assert_eq(result.live, 0);
        cr_assert_eq(ok, !result.failed);
        cr_assert_eq(err.code, result.failed ? RD_ERR_MEMORY : RD_ERR_OK);
        if (!result.failed) {
            cr_assert_gt(n, 5);
            break;
        }
    }
}

Test(manifest, names_of_files_are_made_and_understood)
{
    char name[64];
    uint64_t seq;
    enum aof_type type;
    bool snapshot;
    cr_assert(aof_file_name(name, sizeof name, "appendonly.aof", 3, AOF_BASE, true));
    cr_assert_str_eq(name, "appendonly.aof.3.base.rdb");
    cr_assert(aof_file_name_parse(name, "appendonly.aof", &seq, &type, &snapshot));
    cr_assert(seq == 3 && type == AOF_BASE && snapshot);
    cr_assert(aof_file_name(name, sizeof name, "a", 12, AOF_BASE, false));
    cr_assert_str_eq(name, "a.12.base.aof");
    cr_assert(aof_file_name_parse(name, "a", &seq, &type, &snapshot));
    cr_assert(seq == 12 && type == AOF_BASE && !snapshot);
    cr_assert(aof_file_name(name, sizeof name, "a", 1, AOF_INCR, false));
    cr_assert_str_eq(name, "a.1.incr.aof");
    cr_assert(aof_file_name_parse(name, "a", &seq, &type, &snapshot));
    cr_assert(seq == 1 && type == AOF_INCR && !snapshot);
    cr_assert_not(aof_file_name(name, sizeof name, "a", 1, AOF_INCR, true));
    cr_assert_not(aof_file_name(name, sizeof name, "a", 1, AOF_HISTORY, false));
    cr_assert_not(aof_file_name(name, 12, "a", 1, AOF_INCR, false));
    cr_assert(aof_file_name(name, 13, "a", 1, AOF_INCR, false));
    static const char *const others[] = {"a.1.incr.rdb",
                                         "a.0.incr.aof",
                                         "a.01.incr.aof",
                                         "a.incr.aof",
                                         "b.1.incr.aof",
                                         "a.1.incr.aof2",
                                         "a",
                                         "temp-a.1.incr.aof"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_not(aof_file_name_parse(others[i], "a", &seq, &type, &snapshot), "%s", others[i]);
}
