/* The version as which salvage reads a file whose header is lost, or contradicts the release. */
#include "tests/rdb/made_file.h"

static void begin(struct rd_buf *file, const char *magic, const char *release)
{
    *file = (struct rd_buf){0};
    made_add(file, magic, RDB_MAGIC_LEN);
    made_add(file, "\xfa", 1);
    made_text(file, "redis-ver");
    made_text(file, release);
    made_add(file, "\xfe\0", 2);
}

/* A hash of one field that expires, in the layout that exists since version 12. */
static void add_hash(struct rd_buf *file)
{
    made_add(file, "\x18\4hash\0\0\0\0\1\0\0\0\1\1\1f\1v", 20);
}

static void salvage(const struct rd_buf *file, struct rdb_salvage_result *res)
{
    struct rdb_salvage_result none = RDB_SALVAGE_RESULT();
    struct rd_buf out = {0};
    *res = none;
    cr_assert(made_salvage(rd_buf_slice(file), NULL, &out, res, NULL));
    rd_buf_done(&out);
}

/* A converted file names the server that wrote the original. A server of the version of the header
 * must be able to load the output. */
Test(salvage_version, a_file_that_was_converted_and_cut_keeps_its_version)
{
    static const char *const releases[] = {"7.2.5", "7.4.1", "8.6.0"};
    for (size_t i = 0; i < 3; i++) {
        struct rdb_salvage_result res;
        struct rd_buf file;
        begin(&file, "REDIS0010", releases[i]);
        made_keys(&file, "key", 20);
        made_add(&file, "\0\3cut\x20half", 10);
        salvage(&file, &res);
        cr_expect_eq(res.keys, 20, "%s", releases[i]);
        cr_expect_eq(res.version, 10, "%s: %d", releases[i], res.version);
        cr_expect_not(res.guessed_version, "%s", releases[i]);
        cr_expect_gt(res.damage, RDB_MAGIC_LEN, "%s", releases[i]);
        rd_buf_done(&file);
    }
}

/* The hash is of version 12. In the second case two places are wrong: the header, and a record. */
Test(salvage_version, of_header_and_release_the_one_that_reads_more_is_right)
{
    static const struct {
        const char *magic, *release;
        bool guessed;
    } cases[] = {{"REDIS0012", "7.0.15", false}, {"REDIS0002", "7.4.1", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rdb_salvage_result res;
        struct rd_buf file;
        begin(&file, cases[i].magic, cases[i].release);
        made_keys(&file, "key", 20);
        add_hash(&file);
        made_keys(&file, "more", 20);
        made_add(&file, "\0\3cut\x20half", 10);
        salvage(&file, &res);
        cr_expect_eq(res.keys, 41, "%s", cases[i].magic);
        cr_expect_eq(res.version, 12, "%s: %d", cases[i].magic, res.version);
        cr_expect_eq(res.guessed_version, cases[i].guessed, "%s", cases[i].magic);
        rd_buf_done(&file);
    }
}

Test(salvage_version, releases_after_the_first_of_a_series_have_their_own_versions)
{
    static const struct {
        const char *release;
        int version;
    } cases[] = {{"8.0.3", 12}, {"8.4.0", 12}, {"8.6.1", 13}, {"8.8.0", 14}, {"8.10.0", 15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rdb_salvage_result res;
        struct rd_buf file;
        begin(&file, "\0\0\0\0\0\0\0\0\0", cases[i].release);
        made_keys(&file, "key", 20);
        made_end(&file);
        salvage(&file, &res);
        cr_expect_eq(res.version, cases[i].version, "%s: %d", cases[i].release, res.version);
        rd_buf_done(&file);
    }
}

/* Without a checksum, the end mark is the last byte, and leads to the end of the file. */
Test(salvage_version, a_file_of_an_early_version_ends_with_its_end_mark)
{
    static const uint8_t zeros[64];
    struct rdb_salvage_result res;
    struct rd_buf file = {0};
    made_add(&file, zeros, sizeof zeros);
    made_keys(&file, "key", 30);
    made_add(&file, "\xff", 1);
    salvage(&file, &res);
    cr_expect_eq(res.keys, 30);
    cr_expect(res.found_end);
    cr_expect(res.guessed_version);
    rd_buf_done(&file);
}

/* The same end without records that lead to it proves nothing. */
Test(salvage_version, a_last_byte_like_an_end_mark_is_not_evidence)
{
    static const uint8_t zeros[64];
    struct rdb_salvage_result res;
    struct rd_buf file = {0};
    made_add(&file, zeros, sizeof zeros);
    made_keys(&file, "key", 30);
    made_add(&file, "\0\3cut\x20half\xff", 11);
    salvage(&file, &res);
    cr_expect_eq(res.keys, 0);
    rd_buf_done(&file);
}

/* The header and the field of the release are damaged; a hash is of Valkey 9. Both attempts stop at
 * the field first, but only one of them can read all that follows. */
Test(salvage_version, the_contents_decide_if_header_and_release_are_lost)
{
    struct rdb_salvage_result res;
    struct rd_buf file = {0};
    made_add(&file, "VA\x1d\xf4\xb9\x46\x69\x57\xe8\x74\xec\xa8\x17\xc5\x4c\xe1", 16);
    made_add(&file, "\xfe\0\xfb\x29\0", 5);
    made_keys(&file, "key", 20);
    made_add(&file, "\x16\4hash\2\1f\1v\xff\xff\xff\xff\xff\xff\xff\xff", 19);
    made_add(&file, "\1g\1w\0\0\0\0\1\0\0\0", 12);
    made_keys(&file, "more", 20);
    made_end(&file);
    salvage(&file, &res);
    cr_expect_eq(res.keys, 41);
    cr_expect_eq(res.dialect, RDB_VALKEY);
    rd_buf_done(&file);
}

/* The header is that of a version that does not exist, and a field names a release. */
Test(salvage_version, the_output_has_a_version_that_exists)
{
    static const struct {
        const char *header, *release;
        int version;
    } cases[] = {{"REDIS0102", "6.2.0", 9}, {"REDIS0102", "9.9.9", 7}, {"VALKEY999", "9.0.0", 80}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0}, out = {0};
        made_add(&file, cases[i].header, 9);
        made_add(&file, i < 2 ? "\xfa\x09redis-ver" : "\xfa\x0avalkey-ver", i < 2 ? 11 : 12);
        made_text(&file, cases[i].release);
        made_add(&file, "\xfe\0\xfb\x0a\0", 5);
        made_keys(&file, "key", 10);
        made_end(&file);
        cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
        cr_expect(res.guessed_version && res.keys == 10, "%zu", i);
        cr_expect_neq(res.header_version, res.version, "%zu", i);
        cr_expect(rdb_version_known(res.dialect, res.version), "%zu: %d", i, res.version);
        cr_expect_eq(res.version, cases[i].version, "%zu: %d", i, res.version);
        rd_buf_done(&out);
        rd_buf_done(&file);
    }
}
