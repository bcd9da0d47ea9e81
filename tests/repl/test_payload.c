/* The frame of a snapshot.
 */
#include "repl/payload.h"

#include "base/buf.h"
#include "tests/support/guard.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define MARK "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"

static bool parse(const char *line, struct repl_payload *ret, struct rd_err *err)
{
    return repl_payload_parse(ret, rd_slice_str(line), err);
}

Test(payload, a_header_is_a_length_or_a_mark)
{
    struct repl_payload p;
    cr_assert(parse("$0", &p, NULL));
    cr_expect(!p.by_mark && p.len == 0);
    cr_assert(parse("$9223372036854775807", &p, NULL));
    cr_expect_eq(p.len, INT64_MAX);
    cr_assert(parse("$EOF:" MARK, &p, NULL));
    cr_expect(p.by_mark && memcmp(p.mark, MARK, REPL_MARK_LEN) == 0 && p.done == 0);
}

Test(payload, an_invalid_header_is_refused_and_changes_nothing)
{
    static const char *const wrong[] = {"",          "$",           "$-1",
                                        "$01",       "$x",          "$ 1",
                                        "1",         "+1",          "$9223372036854775808",
                                        "$EOF:",     "$EOF",        ("$EOF:" MARK "c"),
                                        "$EOF:aaaa", ("$eof:" MARK)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct repl_payload p = {.len = 5};
        struct rd_err err = {0};
        cr_expect_not(parse(wrong[i], &p, &err), "%s", wrong[i]);
        cr_expect_eq(err.code, RD_ERR_CORRUPT, "%s", wrong[i]);
        cr_expect_eq(p.len, 5);
    }
    struct repl_payload p;
    struct rd_err err = {0};
    cr_expect_not(parse("$ENDOFF:123 abc 0 7", &p, &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
}

Test(payload, a_header_that_is_written_reads_back)
{
    static const char *const lines[] = {"$0", "$176", "$9223372036854775807", ("$EOF:" MARK)};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct repl_payload p;
        uint8_t text[REPL_PAYLOAD_HEADER_MAX];
        cr_assert(parse(lines[i], &p, NULL));
        size_t len = repl_payload_put(&p, text);
        cr_assert_eq(len, strlen(lines[i]) + 2);
        cr_expect(memcmp(text, lines[i], len - 2) == 0 && memcmp(text + len - 2, "\r\n", 2) == 0);
    }
}

/* Takes `all` in pieces of n; what is not used comes again with the next. Returns how many bytes
 * were used at the end, or SIZE_MAX. */
static size_t take_all(struct repl_payload *p, struct rd_slice all, size_t n, struct rd_buf *ret)
{
    size_t used = 0, have = 0;
    for (;;) {
        struct rd_slice piece;
        size_t now;
        uint8_t *bytes = guard_new(all.ptr + used, have - used);
        enum repl_payload_status status =
            repl_payload_take(p, rd_slice(bytes, have - used), &piece, &now);
        if (status == REPL_PAYLOAD_PIECE) {
            cr_assert(piece.len > 0 && piece.len == now);
            rd_buf_add(ret, piece.ptr, piece.len);
        } else {
            cr_assert(piece.len == 0 && (status == REPL_PAYLOAD_AT_END || now == 0));
        }
        used += now;
        guard_free(bytes);
        if (status == REPL_PAYLOAD_AT_END)
            return used;
        if (status == REPL_PAYLOAD_WANTS && have == all.len)
            return SIZE_MAX;
        if (status == REPL_PAYLOAD_WANTS)
            have = all.len - have < n ? all.len : have + n;
    }
}

static void expect_taken(const char *header, const char *body, const char *rest, const char *want)
{
    struct rd_buf all = {0};
    rd_buf_printf(&all, "%s%s", body, rest);
    for (size_t n = 1; n <= all.len + 1; n++) {
        struct repl_payload p;
        struct rd_buf got = {0};
        cr_assert(parse(header, &p, NULL));
        cr_expect_eq(take_all(&p, rd_buf_slice(&all), n, &got), strlen(body), "%s by %zu", body, n);
        cr_expect(rd_slice_is(rd_buf_slice(&got), want), "%s by %zu", body, n);
        cr_expect_eq(p.done, strlen(want));
        rd_buf_done(&got);
    }
    rd_buf_done(&all);
}

Test(payload, a_snapshot_ends_after_its_length)
{
    expect_taken("$5", "12345", "", "12345");
    expect_taken("$5", "12345", "*1\r\n", "12345");
    expect_taken("$0", "", "rest", "");
}

Test(payload, a_snapshot_ends_at_its_mark_wherever_pieces_part)
{
    expect_taken("$EOF:" MARK, "REDIS" MARK, "", "REDIS");
    expect_taken("$EOF:" MARK, "REDIS" MARK, "*1\r\n$4\r\nPING\r\n", "REDIS");
    expect_taken("$EOF:" MARK, MARK, MARK, "");
}

Test(payload, what_looks_like_the_mark_and_is_not_belongs_to_the_snapshot)
{
    expect_taken("$EOF:" MARK, "aaa" MARK, "x", "aaa");
    expect_taken("$EOF:" MARK, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac" MARK, "",
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac");
    expect_taken("$EOF:" MARK, "xaaxab" MARK, "", "xaaxab");
}

Test(payload, one_that_is_not_whole_wants_more)
{
    struct repl_payload p;
    struct rd_buf got = {0};
    cr_assert(parse("$5", &p, NULL));
    cr_expect_eq(take_all(&p, rd_slice_str("1234"), 3, &got), SIZE_MAX);
    cr_assert(parse("$EOF:" MARK, &p, NULL));
    cr_expect_eq(take_all(&p, rd_slice_str("abaaa"), 3, &got), SIZE_MAX);
    cr_expect_eq(p.done, 2);
    rd_buf_done(&got);
}
