/* Damage that the checksum of a snapshot describes completely is corrected: nothing is lost. */
#include "tests/rdb/made_file.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "tests/support/alloc_fault.h"

static void begin(struct rd_buf *file)
{
    *file = (struct rd_buf){0};
    made_add(file, "REDIS0011\xfe\0", 11);
}

static void seal(struct rd_buf *file)
{
    uint8_t sum[8];
    rd_put_le64(sum, rd_crc64(0, file->ptr, file->len - sizeof sum));
    memcpy(file->ptr + file->len - sizeof sum, sum, sizeof sum);
}

/* ---- a single wrong byte ---- */

Test(salvage_correction, any_single_wrong_byte_of_a_sealed_file_is_corrected)
{
    struct rd_buf file;
    begin(&file);
    made_keys(&file, "key", 20);
    made_end(&file);
    seal(&file);
    for (size_t at = 0; at < file.len; at++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf out = {0};
        uint8_t was = file.ptr[at];
        file.ptr[at] ^= (uint8_t)(1 + at % 255);
        cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL), "%zu", at);
        cr_expect(res.corrected && res.proved && res.sealed && res.corrected_at == at, "%zu", at);
        cr_expect(res.corrected_from == file.ptr[at] && res.corrected_to == was, "%zu", at);
        cr_expect(res.keys == 20 && res.keys_doubted == 0 && res.ranges == 0, "%zu", at);
        cr_expect_leq(res.damage, at);
        file.ptr[at] = was;
        cr_expect(rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(&file)), "%zu", at);
        rd_buf_done(&out);
    }
    rd_buf_done(&file);
}

/* The byte is found, but the file is not sound with it: what is wrong was saved so. */
Test(salvage_correction, a_file_that_was_saved_unsound_is_not_corrected)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file;
    begin(&file);
    made_keys(&file, "key", 20);
    made_add(&file, "\x02\1s\2\1a\1a", 7); /* a set with a member twice */
    made_end(&file);
    seal(&file);
    file.ptr[40] ^= 1;
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, NULL, &res, NULL));
    cr_expect(!res.corrected && !res.proved);
    rd_buf_done(&file);
}

Test(salvage_correction, without_a_checksum_no_byte_is_corrected)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file;
    begin(&file);
    made_keys(&file, "key", 20);
    made_end(&file);
    file.ptr[40] ^= 1;
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, NULL, &res, NULL));
    cr_expect(!res.corrected && !res.proved);
    rd_buf_done(&file);
}

/* ---- bytes in the wrong place ---- */

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* A sealed file whose values are not alike. */
static void begin_varied(struct rd_buf *file, unsigned keys, size_t value)
{
    uint64_t random = 7;
    char name[32];
    begin(file);
    for (unsigned i = 0; i < keys; i++) {
        snprintf(name, sizeof name, "key:%u", i);
        cr_assert(rd_buf_add_byte(file, 0));
        made_text(file, name);
        made_len32(file, value);
        for (size_t b = 0; b < value; b++)
            cr_assert(rd_buf_add_byte(file, (uint8_t)next(&random)));
    }
    made_end(file);
    seal(file);
}

/* Salvages the damaged bytes, and compares the output with the file that was damaged. */
static struct rdb_salvage_result expect_corrected(const struct rd_buf *damaged,
                                                  const struct rd_buf *file, const char *what)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    cr_assert(made_salvage(rd_buf_slice(damaged), NULL, &out, &res, NULL), "%s", what);
    cr_expect(res.corrected && res.proved && res.sealed, "%s", what);
    cr_expect(res.keys_doubted == 0 && res.ranges == 0 && res.bytes_lost == 0, "%s", what);
    cr_expect(rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(file)), "%s", what);
    rd_buf_done(&out);
    return res;
}

static void expect_not_corrected(const struct rd_buf *damaged, const char *what)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    cr_assert(made_salvage(rd_buf_slice(damaged), NULL, NULL, &res, NULL), "%s", what);
    cr_expect(!res.corrected && !res.proved && res.correction == RDB_CORRECTION_NONE, "%s", what);
}

/* The file with `len` other bytes, or the same ones again, at `at`. */
static struct rd_buf with_inserted(const struct rd_buf *file, size_t at, size_t len, bool again)
{
    struct rd_buf damaged = {0};
    uint64_t random = at;
    made_add(&damaged, file->ptr, at);
    for (size_t i = 0; i < len; i++)
        cr_assert(rd_buf_add_byte(&damaged, again ? file->ptr[at + i] : (uint8_t)next(&random)));
    made_add(&damaged, file->ptr + at, file->len - at);
    return damaged;
}

static struct rd_buf with_exchanged(const struct rd_buf *file, size_t a, size_t b, size_t len)
{
    struct rd_buf damaged = {0};
    made_add(&damaged, file->ptr, file->len);
    memcpy(damaged.ptr + a, file->ptr + b, len);
    memcpy(damaged.ptr + b, file->ptr + a, len);
    return damaged;
}

Test(salvage_correction, bytes_that_were_written_twice_are_left_out)
{
    struct rd_buf file;
    char what[64];
    begin_varied(&file, 12, 20);
    for (size_t len = 1; len <= 64; len += len < 4 ? 1 : 15)
        for (size_t at = 9; at + len + 8 <= file.len; at += 3) {
            snprintf(what, sizeof what, "%zu bytes at %zu", len, at);
            struct rd_buf damaged = with_inserted(&file, at, len, true);
            struct rdb_salvage_result res = expect_corrected(&damaged, &file, what);
            if (len > 1 || res.correction == RDB_CORRECTION_INSERTED) {
                cr_expect_eq(res.correction, RDB_CORRECTION_INSERTED, "%s", what);
                cr_expect_eq(res.corrected_len, len, "%s", what);
                cr_expect_leq(res.corrected_at, at, "%s", what);
            }
            rd_buf_done(&damaged);
        }
    rd_buf_done(&file);
}

Test(salvage_correction, inserted_bytes_are_left_out)
{
    struct rd_buf file;
    char what[64];
    begin_varied(&file, 12, 20);
    for (size_t len = 1; len <= 1000; len = 3 * len + 1)
        for (size_t at = 1; at + 9 <= file.len; at += 3) {
            snprintf(what, sizeof what, "%zu bytes at %zu", len, at);
            struct rd_buf damaged = with_inserted(&file, at, len, false);
            struct rdb_salvage_result res = expect_corrected(&damaged, &file, what);
            cr_expect(res.correction == RDB_CORRECTION_INSERTED && res.corrected_len == len, "%s",
                      what);
            rd_buf_done(&damaged);
        }
    rd_buf_done(&file);
}

/* In the fifth of ten values of half a megabyte: far from any header. */
Test(salvage_correction, an_insertion_in_a_large_value_is_found)
{
    struct rd_buf file;
    begin_varied(&file, 10, 500000);
    struct rd_buf damaged = with_inserted(&file, 2250000, 100000, false);
    struct rdb_salvage_result res = expect_corrected(&damaged, &file, "100000 bytes");
    cr_expect(res.correction == RDB_CORRECTION_INSERTED && res.corrected_at == 2250000 &&
              res.corrected_len == 100000);
    rd_buf_done(&damaged);
    rd_buf_done(&file);
}

Test(salvage_correction, exchanged_blocks_are_put_back)
{
    struct rd_buf file;
    char what[64];
    begin_varied(&file, 60, 60);
    for (size_t len = 16; len <= 1024; len *= 2)
        for (size_t a = 0; a + len + 8 <= file.len; a += 5 * len)
            for (size_t b = a + len; b + len + 8 <= file.len; b += 7 * len) {
                snprintf(what, sizeof what, "%zu bytes at %zu and at %zu", len, a, b);
                struct rd_buf damaged = with_exchanged(&file, a, b, len);
                struct rdb_salvage_result res = expect_corrected(&damaged, &file, what);
                cr_expect_eq(res.correction, RDB_CORRECTION_EXCHANGED, "%s", what);
                cr_expect(res.corrected_at == a && res.corrected_other == b &&
                              res.corrected_len == len,
                          "%s", what);
                rd_buf_done(&damaged);
            }
    rd_buf_done(&file);
}

Test(salvage_correction, few_missing_bytes_are_put_back)
{
    struct rd_buf file;
    char what[64];
    begin_varied(&file, 12, 20);
    for (size_t len = 1; len <= 3; len++)
        for (size_t at = 9; at + len + 8 <= file.len; at += 1 + at % 3) {
            struct rd_buf damaged = {0};
            made_add(&damaged, file.ptr, at);
            made_add(&damaged, file.ptr + at + len, file.len - at - len);
            snprintf(what, sizeof what, "%zu bytes at %zu", len, at);
            struct rdb_salvage_result res = expect_corrected(&damaged, &file, what);
            cr_expect_eq(res.correction, RDB_CORRECTION_MISSING, "%s", what);
            /* Of equal bytes any may be missing. */
            cr_expect(res.corrected_len == len && res.corrected_at <= at + 8 * len &&
                          at <= res.corrected_at + 8 * len,
                      "%s: %llu", what, (unsigned long long)res.corrected_at);
            rd_buf_done(&damaged);
        }
    rd_buf_done(&file);
}

Test(salvage_correction, a_header_of_which_more_than_a_byte_is_wrong_is_proved)
{
    static const char *const wrong[] = {"REDIS0009", "REDIS9999", "VALKEY080", "RED1S0O11",
                                        "\0\0\0\0\0\0\0\0"};
    struct rd_buf file;
    begin_varied(&file, 12, 20);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rd_buf damaged = {0};
        made_add(&damaged, wrong[i], 9);
        made_add(&damaged, file.ptr + 9, file.len - 9);
        struct rdb_salvage_result res = expect_corrected(&damaged, &file, wrong[i]);
        cr_expect_eq(res.correction, RDB_CORRECTION_HEADER, "%s", wrong[i]);
        cr_expect_arr_eq(res.restored, "REDIS0011", 9);
        cr_expect_eq(res.version, 11);
        cr_expect_not(res.guessed_version);
        rd_buf_done(&damaged);
    }
    rd_buf_done(&file);
}

/* A server or a converter wrote the header, whatever release a field names. */
Test(salvage_correction, a_header_that_the_checksum_covers_is_not_damaged)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    struct rd_buf file = {0};
    made_add(&file,
             "REDIS0012\xfa\x09redis-ver\x06"
             "7.0.15\xfe\0",
             29);
    made_keys(&file, "key", 20);
    made_end(&file);
    seal(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect(res.proved && res.intact && res.sealed && !res.guessed_version);
    cr_expect_eq(res.version, 12);
    cr_expect(rd_slice_eq(rd_buf_slice(&out), rd_buf_slice(&file)));
    rd_buf_done(&out);
    rd_buf_done(&file);
}

/* The checksum then describes other bytes: what is left is not proved. */
Test(salvage_correction, more_than_one_damage_or_lost_bytes_are_not_corrected)
{
    struct rd_buf file;
    begin_varied(&file, 12, 20);
    struct rd_buf damaged = with_inserted(&file, 100, 16, true);
    damaged.ptr[200] ^= 1;
    expect_not_corrected(&damaged, "bytes twice, and a wrong one");
    rd_buf_done(&damaged);
    damaged = with_exchanged(&file, 96, 192, 32);
    damaged.ptr[40] ^= 1;
    expect_not_corrected(&damaged, "blocks exchanged, and a wrong byte");
    rd_buf_done(&damaged);
    made_add(&damaged, file.ptr, 100);
    made_add(&damaged, file.ptr + 109, file.len - 109);
    expect_not_corrected(&damaged, "nine bytes lost");
    rd_buf_done(&damaged);
    damaged = with_inserted(&file, 100, 16, true);
    memset(damaged.ptr + damaged.len - 8, 0, 8);
    expect_not_corrected(&damaged, "without a checksum");
    rd_buf_done(&damaged);
    rd_buf_done(&file);
}

/* The file was cut after a snapshot in a value: without the bytes before that snapshot it would be
 * a sound file, but another one. */
Test(salvage_correction, a_snapshot_within_a_value_does_not_become_the_file)
{
    struct rd_buf inner, file;
    begin_varied(&inner, 12, 20);
    begin(&file);
    made_keys(&file, "outer", 5);
    cr_assert(rd_buf_add_byte(&file, 0));
    made_text(&file, "copy");
    made_len32(&file, inner.len + 100);
    made_add(&file, inner.ptr, inner.len);
    expect_not_corrected(&file, "cut after the inner snapshot");
    rd_buf_done(&inner);
    rd_buf_done(&file);
}

/* With its bytes in their places, the file has a set with a member twice. */
Test(salvage_correction, bytes_of_a_file_that_was_saved_unsound_stay_where_they_are)
{
    struct rd_buf file;
    begin(&file);
    made_keys(&file, "key", 20);
    made_add(&file, "\x02\1s\2\1a\1a", 7);
    made_end(&file);
    seal(&file);
    struct rd_buf damaged = with_inserted(&file, 40, 9, false);
    expect_not_corrected(&damaged, "unsound");
    rd_buf_done(&damaged);
    rd_buf_done(&file);
}

/* ---- memory ---- */

/* Every allocation fails once. */
static void expect_errors(const struct rd_buf *damaged, unsigned least)
{
    size_t n = 1;
    for (bool failed = true; failed; n++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_err err = {0};
        struct rd_src *src;
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(damaged), NULL, NULL));
        alloc_fault_begin(n);
        bool ok = rdb_salvage(src, NULL, NULL, &RDB_SALVAGE_OPTS(), &res, &err);
        failed = alloc_fault_end().failed;
        cr_expect(ok ? res.corrected : err.code == RD_ERR_MEMORY, "allocation %zu", n);
        rd_src_close(src);
    }
    cr_expect_gt(n, least);
}

Test(salvage_correction, a_correction_for_which_memory_is_short_is_an_error)
{
    struct rd_buf file;
    begin(&file);
    made_keys(&file, "key", 20);
    made_end(&file);
    seal(&file);
    file.ptr[40] ^= 1;
    expect_errors(&file, 4);
    file.ptr[40] ^= 1;
    struct rd_buf damaged = with_inserted(&file, 30, 4, false);
    expect_errors(&damaged, 8);
    rd_buf_done(&damaged);
    damaged = with_exchanged(&file, 16, 48, 16);
    expect_errors(&damaged, 9);
    rd_buf_done(&damaged);
    rd_buf_done(&file);
}
