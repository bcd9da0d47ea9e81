#include "base/seal.h"

#include "base/digest.h"
#include "base/endian.h"
#include "tests/base/filter.h"
#include "tests/support/seal_1.h"

/* The same key again takes no memory, which a test may have none of. */
static struct rd_seal_key key_of(uint8_t first)
{
    static struct rd_seal_key key;
    uint8_t bytes[RD_SEAL_KEY];
    if (key.bytes[0] == first)
        return key;
    for (size_t i = 0; i < RD_SEAL_KEY; i++)
        bytes[i] = (uint8_t)(first + i);
    cr_assert(rd_seal_key_set(&key, bytes, NULL));
    return key;
}

static bool open_sink_named(struct rd_sink **ret, struct rd_sink *inner, uint8_t chance,
                            const char *name, struct rd_err *err)
{
    const struct rd_seal_key key = key_of(1);
    struct rd_seal_opts opts = {.key = &key, .name = rd_slice_str(name)};
    memset(opts.random, chance, sizeof opts.random);
    return rd_seal_open_sink(ret, inner, &opts, err);
}

static bool open_sink(struct rd_sink **ret, struct rd_sink *inner, int level, struct rd_err *err)
{
    (void)level;
    return open_sink_named(ret, inner, 7, "name", err);
}

static const struct rd_seal_ring *ring(void)
{
    static struct rd_seal_key key;
    static struct rd_seal_ring made;
    key = key_of(1);
    made = (struct rd_seal_ring){.keys = &key, .n_keys = 1};
    return &made;
}

static bool open_src(struct rd_src **ret, struct rd_src *inner, struct rd_err *err)
{
    return rd_seal_open_src(ret, inner, ring(), rd_slice_str("name"), err);
}

static const struct filter filter = {open_src, open_sink};

static struct rd_buf sealed_text(size_t len)
{
    struct rd_buf text = filter_text(len), sealed = {0};
    filter_pack(&filter, rd_buf_slice(&text), 10000, 0, &sealed);
    rd_buf_done(&text);
    return sealed;
}

/* What comes out of sealed bytes with this ring and name. */
static struct rd_err open_with(struct rd_slice sealed, const struct rd_seal_ring *keys,
                               const char *name, struct rd_buf *ret)
{
    struct rd_src *inner, *src;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&inner, sealed, NULL, &err));
    cr_assert(rd_seal_open_src(&src, inner, keys, rd_slice_str(name), &err));
    filter_drain(src, ret, &err);
    return err;
}

static void expect_code(struct rd_slice sealed, const struct rd_seal_ring *keys, const char *name,
                        enum rd_err_code code, const char *text)
{
    struct rd_buf got;
    struct rd_err err = open_with(sealed, keys, name, &got);
    cr_expect_eq(err.code, code, "%s", err.text);
    cr_expect_not_null(strstr(err.text, text), "%s", err.text);
    rd_buf_done(&got);
}

Test(seal, what_is_written_reads_back)
{
    filter_check_round_trips(&filter, 2);
}

Test(seal, sizes_about_a_frame_read_back)
{
    static const size_t lens[] = {RD_SEAL_FRAME - 1, RD_SEAL_FRAME, RD_SEAL_FRAME + 1,
                                  2 * RD_SEAL_FRAME};
    for (size_t i = 0; i < 4; i++) {
        struct rd_buf text = filter_text(lens[i]), sealed = sealed_text(lens[i]), got;
        struct rd_err err = open_with(rd_buf_slice(&sealed), ring(), "name", &got);
        cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
        filter_expect(&got, rd_buf_slice(&text));
        cr_expect_eq(rd_seal_plain_size(sealed.len), lens[i]);
        rd_buf_done(&text);
        rd_buf_done(&sealed);
        rd_buf_done(&got);
    }
}

Test(seal, sizes_that_no_object_has_are_known)
{
    cr_expect_eq(rd_seal_plain_size(RD_SEAL_HEADER + RD_SEAL_FRAME_EXTRA), 0);
    cr_expect_eq(rd_seal_plain_size(RD_SEAL_HEADER + RD_SEAL_FRAME_EXTRA - 1), RD_NO_OFFSET);
    cr_expect_eq(rd_seal_plain_size(RD_SEAL_HEADER + RD_SEAL_FRAME + RD_SEAL_FRAME_EXTRA + 5),
                 RD_NO_OFFSET);
}

Test(seal, size_of_reads_does_not_matter)
{
    static const size_t pieces[] = {1, 2, 3, 7, 4096};
    struct rd_buf text = filter_text(150000), sealed = sealed_text(150000);
    for (size_t i = 0; i < 5; i++) {
        struct rd_buf got;
        struct rd_err err = {0};
        filter_unpack(&filter, rd_buf_slice(&sealed), pieces[i], &got, &err);
        cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
        filter_expect(&got, rd_buf_slice(&text));
        rd_buf_done(&got);
    }
    rd_buf_done(&text);
    rd_buf_done(&sealed);
}

Test(seal, pushed_bytes_come_out)
{
    filter_check_push(&filter);
}

Test(seal, what_was_synced_can_be_read)
{
    filter_check_sync(&filter);
}

Test(seal, every_prefix_is_truncated)
{
    struct rd_buf sealed = sealed_text(700);
    for (size_t len = 0; len < sealed.len; len++)
        expect_code(rd_slice(sealed.ptr, len), ring(), "name", RD_ERR_TRUNCATED, "sealed byte");
    rd_buf_done(&sealed);
}

Test(seal, every_flipped_bit_is_found)
{
    struct rd_buf sealed = sealed_text(300);
    for (size_t bit = 0; bit < 8 * sealed.len; bit++) {
        struct rd_buf got;
        sealed.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        struct rd_err err = open_with(rd_buf_slice(&sealed), ring(), "name", &got);
        cr_assert_neq(err.code, RD_ERR_OK, "bit %zu", bit);
        cr_assert_eq(got.len, 0, "bit %zu", bit);
        sealed.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        rd_buf_done(&got);
    }
    rd_buf_done(&sealed);
}

enum { FULL = RD_SEAL_FRAME + RD_SEAL_FRAME_EXTRA };

/* The object put together from its header and these of its frames. */
static struct rd_buf frames_of(const struct rd_buf *sealed, const unsigned *frames, size_t n)
{
    struct rd_buf made = {0};
    cr_assert(rd_buf_add(&made, sealed->ptr, RD_SEAL_HEADER));
    for (size_t i = 0; i < n; i++) {
        size_t at = RD_SEAL_HEADER + frames[i] * (size_t)FULL;
        size_t len = sealed->len - at < FULL ? sealed->len - at : FULL;
        cr_assert(rd_buf_add(&made, sealed->ptr + at, len));
    }
    return made;
}

Test(seal, frames_that_are_moved_repeated_or_missing_are_found)
{
    static const struct {
        unsigned frames[5];
        size_t n, good;
        enum rd_err_code code;
    } cases[] = {
        {{0, 1, 2, 3}, 4, 4, RD_ERR_OK},
        {{1, 0, 2, 3}, 4, 0, RD_ERR_CHECKSUM},
        {{0, 2, 1, 3}, 4, 1, RD_ERR_CHECKSUM},
        {{0, 1, 1, 2, 3}, 5, 2, RD_ERR_CHECKSUM},
        {{0, 2, 3}, 3, 1, RD_ERR_CHECKSUM},
        {{1, 2, 3}, 3, 0, RD_ERR_CHECKSUM},
        {{0, 1, 2}, 3, 3, RD_ERR_TRUNCATED},
        {{0, 1, 3}, 3, 2, RD_ERR_CHECKSUM},
        {{0, 1, 2, 3, 3}, 5, 4, RD_ERR_CORRUPT},
        {{0, 1, 2, 3, 0}, 5, 4, RD_ERR_CORRUPT},
        {{3}, 1, 0, RD_ERR_CHECKSUM},
    };
    struct rd_buf sealed = sealed_text(3 * RD_SEAL_FRAME + 100);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_buf made = frames_of(&sealed, cases[i].frames, cases[i].n), got;
        struct rd_err err = open_with(rd_buf_slice(&made), ring(), "name", &got);
        size_t good = cases[i].good * (size_t)RD_SEAL_FRAME;
        cr_expect_eq(err.code, cases[i].code, "case %zu: %s", i, err.text);
        cr_expect_eq(got.len, cases[i].good == 4 ? 3 * (size_t)RD_SEAL_FRAME + 100 : good,
                     "case %zu", i);
        rd_buf_done(&made);
        rd_buf_done(&got);
    }
    rd_buf_done(&sealed);
}

/* Two objects of the same key. */
Test(seal, a_frame_of_another_object_is_found)
{
    struct rd_buf one = sealed_text(100), two = {0};
    struct rd_sink *inner, *sink;
    cr_assert(rd_sink_open_buf(&inner, &two, NULL, NULL));
    cr_assert(open_sink_named(&sink, inner, 8, "name", NULL));
    struct rd_buf text = filter_text(100);
    cr_assert(rd_sink_write(sink, text.ptr, text.len) && rd_sink_close(sink, NULL));
    cr_assert_eq(one.len, two.len);
    memcpy(two.ptr + RD_SEAL_HEADER, one.ptr + RD_SEAL_HEADER, one.len - RD_SEAL_HEADER);
    expect_code(rd_buf_slice(&two), ring(), "name", RD_ERR_CHECKSUM, "a frame is damaged");
    rd_buf_done(&text);
    rd_buf_done(&one);
    rd_buf_done(&two);
}

Test(seal, an_object_under_another_name_does_not_open)
{
    struct rd_buf sealed = sealed_text(100);
    expect_code(rd_buf_slice(&sealed), ring(), "other", RD_ERR_CHECKSUM,
                "belongs to another object");
    rd_buf_done(&sealed);
}

Test(seal, a_wrong_key_is_named)
{
    struct rd_buf sealed = sealed_text(100);
    const struct rd_seal_key keys[] = {key_of(2), key_of(1)};
    struct rd_seal_ring wrong = {.keys = keys, .n_keys = 1};
    expect_code(rd_buf_slice(&sealed), &wrong, "name", RD_ERR_USAGE, "wrong key");
    wrong.n_keys = 0;
    expect_code(rd_buf_slice(&sealed), &wrong, "name", RD_ERR_USAGE, "no key is given");
    wrong.passphrase = rd_slice_str("something");
    expect_code(rd_buf_slice(&sealed), &wrong, "name", RD_ERR_USAGE, "no key is given");
    wrong.n_keys = 2;
    expect_code(rd_buf_slice(&sealed), &wrong, "name", RD_ERR_OK, "");
    rd_buf_done(&sealed);
}

Test(seal, unsealed_input_is_reported_as_such)
{
    struct rd_buf text = filter_text(1000), sealed = sealed_text(10);
    cr_expect(rd_seal_is(rd_buf_slice(&sealed)));
    cr_expect_not(rd_seal_is(rd_buf_slice(&text)));
    cr_expect_not(rd_seal_is(rd_slice(sealed.ptr, 7)));
    expect_code(rd_buf_slice(&text), ring(), "name", RD_ERR_CORRUPT, "not a sealed object");
    sealed.ptr[6] = 3;
    cr_expect(rd_seal_is(rd_buf_slice(&sealed)));
    expect_code(rd_buf_slice(&sealed), ring(), "name", RD_ERR_UNSUPPORTED, "version 3");
    rd_buf_done(&text);
    rd_buf_done(&sealed);
}

/* What a header says; the name is "T/sets/name", of which version 1 binds "name". */
static struct rd_err read_info(struct rd_slice sealed, const char *name, struct rd_seal_info *info)
{
    struct rd_src *inner, *src;
    struct rd_slice s;
    struct rd_err err = {0};
    const struct rd_seal_object object = {
        .name = rd_slice_str(name), .skip_1 = strlen("T/sets/"), .info = info};
    cr_assert(rd_src_open_memory(&inner, sealed, NULL, NULL));
    cr_assert(rd_seal_open_object(&src, inner, ring(), &object, NULL));
    if (rd_src_need(src, 1, &s) == RD_SRC_FAIL)
        rd_err_adopt(&err, rd_src_err(src));
    rd_src_close(src);
    return err;
}

static struct rd_buf sealed_after(const char *name, const uint8_t *before)
{
    const struct rd_seal_key key = key_of(1);
    const struct rd_seal_opts opts = {.key = &key, .name = rd_slice_str(name), .before = before};
    struct rd_buf sealed = {0};
    struct rd_sink *sink;
    cr_assert(rd_sink_open_buf(&sink, &sealed, NULL, NULL));
    cr_assert(rd_seal_open_sink(&sink, sink, &opts, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_close(sink, NULL));
    return sealed;
}

Test(seal, the_header_names_the_object_before)
{
    static const uint8_t before[RD_SEAL_BEFORE] = {7, 8};
    struct rd_seal_info info = {.version = 9};
    struct rd_buf first = sealed_after("T/sets/name", NULL);
    struct rd_buf second = sealed_after("T/sets/name", before);
    struct rd_err err = read_info(rd_buf_slice(&first), "T/sets/name", &info);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(info.version == 2 && !info.has_before);
    err = read_info(rd_buf_slice(&second), "T/sets/name", &info);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(info.version == 2 && info.has_before);
    cr_expect_arr_eq(info.before, before, RD_SEAL_BEFORE);
    second.ptr[RD_SEAL_HEADER_1] ^= 1;
    cr_expect_eq(read_info(rd_buf_slice(&second), "T/sets/name", NULL).code, RD_ERR_CHECKSUM);
    rd_buf_done(&first);
    rd_buf_done(&second);
}

Test(seal, version_1_is_read_and_binds_the_end_of_the_name)
{
    const struct rd_seal_key key = key_of(1);
    struct rd_seal_info info = {.version = 0};
    struct rd_buf old = {0}, got;
    seal_1(&key, "name", "abc", &old);
    struct rd_err err = open_with(rd_buf_slice(&old), ring(), "name", &got);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(rd_slice_is(rd_buf_slice(&got), "abc"));
    err = read_info(rd_buf_slice(&old), "U/sets/name", &info);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(info.version == 1 && !info.has_before);
    cr_expect_eq(read_info(rd_buf_slice(&old), "T/sets/eman", &info).code, RD_ERR_CHECKSUM);
    rd_buf_done(&got);
    rd_buf_done(&old);
}

/* Else what is bound since version 2 could be taken off. */
Test(seal, an_object_does_not_pass_as_one_of_another_version)
{
    const struct rd_seal_key key = key_of(1);
    struct rd_buf sealed = sealed_after("name", NULL), cut = {0}, old = {0};
    sealed.ptr[6] = 1;
    expect_code(rd_buf_slice(&sealed), ring(), "name", RD_ERR_CHECKSUM, "the header is damaged");
    cr_assert(rd_buf_add(&cut, sealed.ptr, RD_SEAL_HEADER_1) &&
              rd_buf_add(&cut, sealed.ptr + RD_SEAL_HEADER, sealed.len - RD_SEAL_HEADER));
    expect_code(rd_buf_slice(&cut), ring(), "name", RD_ERR_CHECKSUM, "the header is damaged");
    seal_1(&key, "name", "some longer text, so that there are bytes for a header", &old);
    old.ptr[6] = 2;
    expect_code(rd_buf_slice(&old), ring(), "name", RD_ERR_CHECKSUM, "the header is damaged");
    rd_buf_done(&sealed);
    rd_buf_done(&cut);
    rd_buf_done(&old);
}

Test(seal, a_key_requires_seals)
{
    struct rd_seal_ring r = {.n_keys = 0};
    cr_expect_not(rd_seal_required(NULL));
    cr_expect_not(rd_seal_required(&r));
    r.elsewhere = true;
    cr_expect(rd_seal_required(&r));
    r.allow_unsealed = true;
    cr_expect_not(rd_seal_required(&r));
    r = *ring();
    cr_expect(rd_seal_required(&r));
    r = (struct rd_seal_ring){.passphrase = rd_slice_str("a")};
    cr_expect(rd_seal_required(&r));
}

static struct rd_buf sealed_by_passphrase(const char *passphrase)
{
    static const uint8_t salt[RD_SEAL_SALT] = {1, 2, 3};
    struct rd_seal_key key;
    struct rd_buf sealed = {0};
    struct rd_sink *inner, *sink;
    cr_assert(rd_seal_key_stretch(&key, rd_slice_str(passphrase), salt, NULL));
    const struct rd_seal_opts opts = {.key = &key};
    cr_assert(rd_sink_open_buf(&inner, &sealed, NULL, NULL));
    cr_assert(rd_seal_open_sink(&sink, inner, &opts, NULL));
    cr_assert(rd_sink_write(sink, "abc", 3) && rd_sink_close(sink, NULL));
    rd_seal_key_done(&key);
    return sealed;
}

Test(seal, a_passphrase_opens_what_it_sealed)
{
    struct rd_buf sealed = sealed_by_passphrase("correct horse"), got;
    struct rd_seal_ring r = {.passphrase = rd_slice_str("correct horse")};
    struct rd_err err = open_with(rd_buf_slice(&sealed), &r, "", &got);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(rd_slice_is(rd_buf_slice(&got), "abc"));
    r.passphrase = rd_slice_str("correct house");
    expect_code(rd_buf_slice(&sealed), &r, "", RD_ERR_USAGE, "the given passphrase is wrong");
    r.passphrase.len = 0;
    expect_code(rd_buf_slice(&sealed), &r, "", RD_ERR_USAGE, "none is given");
    r.passphrase = rd_slice_str("correct horse");
    sealed.ptr[9] = 63;
    expect_code(rd_buf_slice(&sealed), &r, "", RD_ERR_CORRUPT, "the header is damaged");
    sealed.ptr[9] = 18; /* each within its limit, but not the work */
    sealed.ptr[11] = 3;
    expect_code(rd_buf_slice(&sealed), &r, "", RD_ERR_CORRUPT, "the header is damaged");
    rd_buf_done(&sealed);
    rd_buf_done(&got);
}

Test(seal, an_empty_passphrase_is_refused)
{
    static const uint8_t salt[RD_SEAL_SALT];
    struct rd_seal_key key;
    struct rd_err err = {0};
    cr_expect_not(rd_seal_key_stretch(&key, rd_slice_str(""), salt, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
}

/* The vector of RFC 7914, section 12, has other parameters; this one was computed by Python's
 * hashlib.scrypt(b"redoubt", salt=bytes(16), n=32768, r=8, p=1, maxmem=1<<26, dklen=32). */
Test(seal, stretching_is_scrypt)
{
    static const uint8_t salt[RD_SEAL_SALT];
    struct rd_seal_key key;
    char hex[2 * RD_SEAL_KEY + 1];
    cr_assert(rd_seal_key_stretch(&key, rd_slice_str("redoubt"), salt, NULL));
    cr_expect_str_eq(rd_digest_hex(hex, rd_slice(key.bytes, RD_SEAL_KEY)),
                     "bb3757dc091096e7498e48749e244c90074c71d639ca6568aa051cb46318b1b9");
}

/* Computed by Python: hmac.digest(hmac.digest(key, b"redoubt hmac key 1\0", "sha256"), b"abc",
 * "sha256") with the bytes 1 to 32 as key, and hashlib.sha256(b"redoubt key id 1\0" + key). */
Test(seal, hmac_and_id_are_those_of_the_format)
{
    const struct rd_seal_key key = key_of(1);
    uint8_t sum[RD_SEAL_HMAC];
    char hex[2 * RD_SEAL_HMAC + 1], id[RD_SEAL_ID_HEX];
    cr_assert(rd_seal_hmac(&key, rd_slice_str("abc"), sum, NULL));
    cr_expect_str_eq(rd_digest_hex(hex, rd_slice(sum, sizeof sum)),
                     "59c99a1ecf7270963bf726b3d78ac2e35d13e08d0dbc11d51e682f7499a5d6b8");
    cr_expect_str_eq(rd_seal_key_id(&key, id), "f259e19f522a5548f77d7e163bd640af");
}

Test(seal, every_failing_allocation_is_survived)
{
    ring();
    filter_check_failing_allocations(&filter);
}

Test(seal, failing_source_fails_with_its_own_error)
{
    filter_check_failing_source(&filter);
}

Test(seal, failing_sink_fails_with_its_own_error)
{
    filter_check_failing_sink(&filter);
    filter_check_failing_sync(&filter);
}
