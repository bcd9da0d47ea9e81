/* Snapshots that a transfer changed: nothing is lost, and the checksum proves it. */
#include "tests/rdb/made_file.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "tests/support/alloc_fault.h"

static const char mark[] = "0123456789abcdef0123456789abcdef01234567";

/* A file whose values hold every byte, and the line ends of text. */
static void make(struct rd_buf *file, bool sealed)
{
    uint8_t sum[8];
    *file = (struct rd_buf){0};
    made_add(file,
             "REDIS0011\xfa\x09redis-ver\x05"
             "7.2.5\xfe\0",
             28);
    made_keys(file, "key", 20);
    for (unsigned i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "bytes:%u", i);
        cr_assert(rd_buf_add_byte(file, 0));
        made_text(file, name);
        made_len32(file, 256 + 7);
        for (unsigned b = 0; b < 256; b++)
            cr_assert(rd_buf_add_byte(file, (uint8_t)(b * (2 * i + 1))));
        made_add(file, "a\r\nb\n\rc", 7);
    }
    made_end(file);
    rd_put_le64(sum, rd_crc64(0, file->ptr, file->len - 8));
    if (sealed)
        memcpy(file->ptr + file->len - 8, sum, 8);
}

static struct rd_buf around(const char *before, size_t n_before, const struct rd_buf *file,
                            const char *after)
{
    struct rd_buf all = {0};
    made_add(&all, before, n_before);
    made_add(&all, file->ptr, file->len);
    made_add(&all, after, strlen(after));
    return all;
}

static struct rdb_salvage_result salvage(const struct rd_buf *input, const struct rd_buf *file,
                                         const char *what)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    struct rd_err err = {0};
    cr_assert(made_salvage(rd_buf_slice(input), NULL, &out, &res, &err), "%s: %s", what, err.text);
    if (file != NULL) {
        cr_expect(rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(file)), "%s", what);
        cr_expect(res.keys == 28 && res.keys_doubted == 0 && res.keys_left_out == 0, "%s", what);
        cr_expect_eq(res.ranges, 0, "%s", what);
    }
    rd_buf_done(&out);
    return res;
}

/* Writes the bytes as a program that takes them for text. */
static struct rd_buf as_text(const struct rd_buf *file, unsigned text, bool windows)
{
    /* The bytes from 0x80 in Windows-1252, in UTF-8. 0: as in Latin-1. */
    static const char *const wide[32] = {
        [0] = "\xe2\x82\xac", [3] = "\xc6\x92", [25] = "\xe2\x84\xa2", [30] = "\xc5\xbe"};
    struct rd_buf out = {0};
    for (size_t i = 0; i < file->len; i++) {
        uint8_t b = file->ptr[i];
        uint8_t utf8[2] = {(uint8_t)(0xc0 | b >> 6), (uint8_t)(0x80 | (b & 0x3f))};
        if (b == '\n' && (text & RDB_TEXT_CRLF) != 0)
            made_add(&out, "\r\n", 2);
        else if (b < 0x80 || (text & RDB_TEXT_UTF8) == 0)
            made_add(&out, &b, 1);
        else if (windows && b < 0xa0 && wide[b - 0x80] != NULL)
            made_add(&out, wide[b - 0x80], strlen(wide[b - 0x80]));
        else
            made_add(&out, utf8, 2);
    }
    return out;
}

Test(salvage_transfer, bytes_around_a_snapshot_are_left_out)
{
    char eof[128];
    int n = snprintf(eof, sizeof eof, "+FULLRESYNC 8371 14\r\n\n\n\n$EOF:%s\r\n", mark);
    const struct {
        const char *before;
        size_t len;
        const char *after;
        enum rdb_before kind;
        uint64_t after_len;
    } cases[] = {
        {eof, (size_t)n, mark, RDB_BEFORE_REPLICATION, 40},
        {eof, (size_t)n, "0123456789abcdef0123456789abcdef01234567\r\n", RDB_BEFORE_REPLICATION,
         42},
        {eof + 21, (size_t)n - 21, mark, RDB_BEFORE_REPLICATION, 40},
        {eof, (size_t)n, "", RDB_BEFORE_REPLICATION, 0},
        {"\n\n$2523\r\n", 9, "*1\r\n$4\r\nPING\r\n", RDB_BEFORE_REPLICATION, 14},
        {"SYNC sent to master, writing 99 bytes to '-'\n", 45, "", RDB_BEFORE_TEXT, 0},
        {"SYNC with master, discarding bytes\n", 35, "Transfer finished with success.\n",
         RDB_BEFORE_TEXT, 32},
        {"\x00\x01\x02\xff", 4, "", RDB_BEFORE_BYTES, 0},
        {"\n", 1, "", RDB_BEFORE_REPLICATION, 0},
        {eof, (size_t)n, "0123456789abcdef0123456789abcdef01234567*1\r\n$4\r\nPING\r\n",
         RDB_BEFORE_REPLICATION, 54},
    };
    struct rd_buf file;
    make(&file, true);
    cr_assert_eq(file.len, 2523, "%zu", file.len);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_buf all = around(cases[i].before, cases[i].len, &file, cases[i].after);
        struct rdb_salvage_result res = salvage(&all, &file, cases[i].before);
        cr_expect(res.proved && res.sealed && res.corrected, "%zu", i);
        cr_expect_eq(res.before, cases[i].kind, "%zu", i);
        cr_expect_eq(res.before_len, cases[i].len, "%zu", i);
        cr_expect_eq(res.after_len, cases[i].after_len, "%zu", i);
        rd_buf_done(&all);
    }
    rd_buf_done(&file);
}

Test(salvage_transfer, changes_of_the_text_are_undone)
{
    struct rd_buf file;
    for (unsigned text = 1; text <= 3; text++)
        for (unsigned way = 0; way < 4; way++) {
            char what[64];
            bool sealed = (way & 1) != 0;
            make(&file, sealed);
            struct rd_buf input = as_text(&file, text, (way & 2) != 0);
            snprintf(what, sizeof what, "text %u, way %u", text, way);
            struct rdb_salvage_result res = salvage(&input, &file, what);
            cr_expect_eq(res.text, text, "%s", what);
            cr_expect_eq(res.proved, sealed, "%s", what);
            rd_buf_done(&input);
            rd_buf_done(&file);
        }
}

/* Every LF follows a CR, and did so before. */
Test(salvage_transfer, only_one_of_two_possible_changes_may_have_happened)
{
    uint8_t sum[8];
    struct rd_buf file = {0};
    made_add(&file, "REDIS0011\xfe\0", 11);
    for (unsigned i = 0; i < 28; i++) {
        char name[16];
        snprintf(name, sizeof name, "text:%u", i + 20);
        cr_assert(rd_buf_add_byte(&file, 0));
        made_text(&file, name);
        made_text(&file, "one\r\ntwo\r\nst\xc3\xbc");
    }
    made_end(&file);
    rd_put_le64(sum, rd_crc64(0, file.ptr, file.len - 8));
    memcpy(file.ptr + file.len - 8, sum, 8);
    cr_assert_null(memchr(sum, '\n', 8));
    struct rd_buf input = as_text(&file, RDB_TEXT_UTF8, false);
    struct rdb_salvage_result res = salvage(&input, &file, "UTF-8 only");
    cr_expect(res.proved);
    cr_expect_eq(res.text, RDB_TEXT_UTF8);
    rd_buf_done(&input);
    rd_buf_done(&file);
}

/* The whole capture went through the terminal. */
Test(salvage_transfer, both_are_undone_together)
{
    char eof[128];
    int n = snprintf(eof, sizeof eof, "$EOF:%s\r\n", mark);
    struct rd_buf file;
    make(&file, true);
    struct rd_buf all = around(eof, (size_t)n, &file, mark);
    struct rd_buf input = as_text(&all, RDB_TEXT_CRLF | RDB_TEXT_UTF8, false);
    struct rdb_salvage_result res = salvage(&input, &file, "both");
    cr_expect(res.proved && res.before_len == (uint64_t)n && res.after_len == 40);
    cr_expect_eq(res.text, RDB_TEXT_CRLF | RDB_TEXT_UTF8);
    rd_buf_done(&input);
    rd_buf_done(&all);
    rd_buf_done(&file);
}

/* Offsets are those of the input. */
static void see_offset(void *ctx, const struct rdb_loss *loss)
{
    *(uint64_t *)ctx = loss->from;
}

Test(salvage_transfer, what_is_damaged_too_is_salvaged)
{
    static const char before[] = "SYNC sent to master\n";
    struct rd_buf file;
    uint64_t from = 0;
    make(&file, true);
    struct rd_buf all = around(before, sizeof before - 1, &file, "");
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = see_offset, .ctx = &from);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    all.len -= 300;
    cr_assert(made_salvage(rd_buf_slice(&all), &opts, NULL, &res, NULL));
    cr_expect_eq(res.keys, 26, "%llu", (unsigned long long)res.keys);
    cr_expect(!res.proved && res.before == RDB_BEFORE_TEXT);
    cr_expect_eq(from, res.first_loss);
    cr_expect_eq(all.ptr[from], 0);
    cr_expect_arr_eq(all.ptr + from + 2, "bytes:6", 7);
    rd_buf_done(&all);
    struct rd_buf input = as_text(&file, RDB_TEXT_CRLF | RDB_TEXT_UTF8, false);
    input.len -= 400;
    res = salvage(&input, NULL, "cut");
    cr_expect(res.keys >= 26 && res.keys < 28 && !res.proved);
    cr_expect_eq(res.text, RDB_TEXT_CRLF | RDB_TEXT_UTF8);
    rd_buf_done(&input);
    input = as_text(&file, RDB_TEXT_CRLF, false);
    input.ptr[100] ^= 1;
    res = salvage(&input, &file, "a wrong byte");
    cr_expect(res.proved && res.correction == RDB_CORRECTION_BYTE && res.text == RDB_TEXT_CRLF);
    rd_buf_done(&input);
    rd_buf_done(&file);
}

/* A value that is a whole snapshot does not become the file when the header is damaged. */
Test(salvage_transfer, a_snapshot_in_a_value_is_not_the_file)
{
    struct rd_buf inner, file = {0};
    make(&inner, true);
    made_add(&file, "\0\0\0\0\0\0\0\0\0\xfe\0\0\5inner", 18);
    made_len32(&file, inner.len);
    made_add(&file, inner.ptr, inner.len);
    made_keys(&file, "key", 10);
    made_end(&file);
    struct rdb_salvage_result res = salvage(&file, NULL, "nested");
    cr_expect_eq(res.keys, 11);
    cr_expect_eq(res.before, RDB_BEFORE_NONE);
    rd_buf_done(&file);
    rd_buf_done(&inner);
}

/* Text with line ends of CR LF in values is as it was saved. */
/* A transfer that was interrupted, and repeated with its output appended. */
Test(salvage_transfer, a_whole_snapshot_after_the_beginning_of_another_is_saved)
{
    struct rd_buf file;
    make(&file, true);
    for (size_t cut = 30; cut < file.len; cut += 97) {
        struct rd_buf all = {0};
        made_add(&all, file.ptr, cut);
        made_add(&all, file.ptr, file.len);
        struct rdb_salvage_result res = salvage(&all, &file, "twice");
        cr_expect(res.proved && res.corrected, "%zu", cut);
        cr_expect_eq(res.before, RDB_BEFORE_SNAPSHOT, "%zu", cut);
        cr_expect_eq(res.before_len, cut, "%zu", cut);
        rd_buf_done(&all);
    }
    rd_buf_done(&file);
}

/* The file is cut where the snapshot in its last value ends, or in the value after it. */
Test(salvage_transfer, a_snapshot_in_a_value_is_not_saved_in_place_of_the_file)
{
    struct rd_buf file;
    make(&file, true);
    for (unsigned more = 0; more < 2; more++) {
        struct rd_buf all = {0};
        made_add(&all, file.ptr, file.len - 9);
        cr_assert(rd_buf_add_byte(&all, 0));
        made_text(&all, "value");
        made_len32(&all, (uint32_t)file.len + 100 * more);
        made_add(&all, file.ptr, file.len);
        struct rdb_salvage_result res = salvage(&all, NULL, "a value");
        cr_expect(!res.proved, "%u", more);
        cr_expect_eq(res.before, RDB_BEFORE_NONE, "%u", more);
        rd_buf_done(&all);
    }
    rd_buf_done(&file);
}

Test(salvage_transfer, values_with_line_ends_are_not_changed)
{
    struct rd_buf file = {0};
    made_add(&file, "REDIS0011\xfe\0", 11);
    for (unsigned i = 0; i < 9; i++) {
        cr_assert(rd_buf_add_byte(&file, 0));
        made_text(&file, (char[]){'k', (char)('0' + i), '\0'});
        made_text(&file, "one\r\ntwo\r\n");
    }
    made_end(&file);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect(res.keys == 9 && res.text == 0);
    cr_expect(rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(&file)));
    rd_buf_done(&out);
    rd_buf_done(&file);
}

Test(salvage_transfer, memory_that_is_short_is_an_error)
{
    struct rd_buf file;
    make(&file, true);
    struct rd_buf all = around("\n", 1, &file, "");
    struct rd_buf input = as_text(&all, RDB_TEXT_CRLF, false);
    size_t n = 1;
    for (bool failed = true; failed; n++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_err err = {0};
        struct rd_src *src, *copy;
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&input), NULL, NULL));
        cr_assert(rd_src_open_memory(&copy, rd_buf_slice(&input), NULL, NULL));
        alloc_fault_begin(n);
        bool ok = rdb_salvage(src, copy, NULL, &RDB_SALVAGE_OPTS(), &res, &err);
        failed = alloc_fault_end().failed;
        cr_expect(ok ? res.proved : err.code == RD_ERR_MEMORY, "allocation %zu", n);
        rd_src_close(src);
        rd_src_close(copy);
    }
    cr_expect_gt(n, 8);
    rd_buf_done(&input);
    rd_buf_done(&all);
    rd_buf_done(&file);
}
