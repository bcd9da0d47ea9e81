/* test_forgery.c - what someone who can write to the store, but has no key, cannot make of it. */
#include "archive/stream.h"
#include "base/buf.h"
#include "base/digest.h"
#include "tests/archive/folder.h"
#include "tests/base/filter.h"
#include "tests/support/seal_1.h"

#include <stdio.h>
#include <stdlib.h>

#define ID    "20240229T000000Z-00000001"
#define OTHER "20240301T000000Z-00000002"
#define RUN   "20261123T013445Z-1f2e3d4c"
#define RUN_B "20261124T013445Z-1f2e3d4c"
#define REPL  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static char path[64];
static struct archive_store *store;
static struct archive_repo repo;
static struct rd_seal_key key, foreign_key;
static struct rd_seal_ring ring;

static void begin(void)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {1}, others[RD_SEAL_KEY] = {2};
    store = folder_open(path);
    cr_assert(rd_seal_key_set(&key, bytes, NULL) && rd_seal_key_set(&foreign_key, others, NULL));
    ring = (struct rd_seal_ring){.keys = &key, .n_keys = 1};
    repo = (struct archive_repo){
        .store = store, .target = "t", .ring = &ring, .lock = folder_lock(store)};
}

static void end(void)
{
    folder_unlock(repo.lock, store);
    folder_remove(store, path);
}

TestSuite(forgery, .init = begin, .fini = end);

/* ---- sets ---- */

/* Seals with this key, or not at all. */
static void put_set(const char *target, const char *id, const struct rd_seal_key *with)
{
    struct archive_repo place = {.store = store, .target = target, .lock = repo.lock};
    struct archive_manifest m = {.keys = 7};
    struct archive_file file = {.name = "dump.rdb"};
    char name[ARCHIVE_NAME_MAX];
    struct archive_pipe pipe = {.key = with, .name = name};
    struct rd_sink *sink;
    struct rd_buf json = {0};
    struct rd_err err = {0};
    snprintf(file.object, sizeof file.object, "dump.rdb%s", with != NULL ? ".sealed" : "");
    snprintf(m.id, sizeof m.id, "%s", id);
    snprintf(m.target, sizeof m.target, "%s", target);
    if (with != NULL)
        rd_seal_key_id(with, m.key_id);
    cr_assert(archive_object_name(name, target, id, file.object, &err));
    cr_assert(archive_repo_put(&place, id, file.object, &sink, &err), "%s", err.text);
    cr_assert(archive_pipe_open_sink(&sink, sink, &pipe, &file, &err), "%s", err.text);
    rd_sink_write(sink, "data", 4);
    cr_assert(rd_sink_close(sink, &err) && archive_manifest_add_file(&m, &file, &err));
    cr_assert(archive_manifest_print(&m, with, &json, &err));
    cr_assert(archive_repo_commit(&place, &m, rd_buf_slice(&json), &err), "%s", err.text);
    rd_buf_done(&json);
    archive_manifest_done(&m);
}

#define MANIFEST(target, id) target "/sets/" id "/manifest.json"

static struct archive_sets list(void)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    cr_assert(archive_repo_list(&repo, &sets, &err), "%s", err.text);
    return sets;
}

/* The error of the only set, which does not give any data. */
static struct rd_err refusal(bool *ret_good)
{
    struct archive_sets sets = list();
    struct rd_err proof = {0}, opened = {0};
    struct rd_src *src;
    cr_assert_eq(sets.n, 1);
    struct archive_set *set = &sets.sets[0];
    *ret_good = archive_set_good(set);
    const struct archive_file file = {.name = "dump.rdb", .object = "dump.rdb.sealed"};
    cr_expect_not(archive_set_open(&repo, set, set->m.n_files > 0 ? set->m.files : &file, &ring,
                                   &src, &opened));
    cr_expect_not(archive_set_prove(&repo, set, &proof));
    cr_expect_eq(opened.code, proof.code, "%s / %s", opened.text, proof.text);
    archive_sets_done(&sets);
    return proof;
}

static void expect_refused(enum rd_err_code code, const char *text, bool good)
{
    bool is_good;
    struct rd_err err = refusal(&is_good);
    cr_expect_eq(err.code, code, "%s: %s", text, err.text);
    cr_expect_not_null(strstr(err.text, text), "%s: %s", text, err.text);
    cr_expect_eq(is_good, good, "%s", text);
}

/* Replaces a part of the manifest and then, as anybody can, its SHA-256. */
static void change_manifest(const char *from, const char *to)
{
    char *text = folder_get(store, MANIFEST("t", ID));
    char *at = strstr(text, from), *sum, hex[65];
    struct rd_buf made = {0};
    uint8_t digest[RD_DIGEST_MAX];
    cr_assert_not_null(at, "%s", from);
    cr_assert(rd_buf_add(&made, text, (size_t)(at - text)) && rd_buf_printf(&made, "%s", to) &&
              rd_buf_printf(&made, "%s", at + strlen(from)));
    free(text);
    cr_assert(rd_buf_add(&made, "", 1));
    sum = strstr((char *)made.ptr, ",\n \"sha256\": \"");
    cr_assert_not_null(sum);
    cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_slice(made.ptr, (size_t)(sum - (char *)made.ptr)),
                           digest, NULL));
    memcpy(sum + strlen(",\n \"sha256\": \""), rd_digest_hex(hex, rd_slice(digest, 32)), 64);
    folder_write(path, MANIFEST("t", ID), made.ptr, made.len - 1);
    rd_buf_done(&made);
}

/* The text from `from` to the end of the JSON string after it. */
static void cut_member(const char *from, char ret[256])
{
    char *text = folder_get(store, MANIFEST("t", ID));
    const char *at = strstr(text, from);
    cr_assert_not_null(at);
    const char *quote = strchr(at + strlen(from), '"');
    snprintf(ret, 256, "%.*s", (int)(quote + 1 - at), at);
    free(text);
}

Test(forgery, a_set_with_a_valid_signature_is_read)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    struct rd_src *src;
    struct rd_slice s;
    put_set("t", ID, &key);
    sets = list();
    cr_assert(archive_set_good(&sets.sets[0]) && archive_set_prove(&repo, &sets.sets[0], &err));
    cr_expect_eq(sets.sets[0].m.signature, ARCHIVE_SIGNATURE_VALID);
    cr_assert(archive_set_open(&repo, &sets.sets[0], sets.sets[0].m.files, &ring, &src, &err), "%s",
              err.text);
    cr_expect_eq(rd_src_need(src, 4, &s), RD_SRC_OK);
    cr_expect(rd_slice_is(s, "data"));
    rd_src_close(src);
    archive_sets_done(&sets);
}

Test(forgery, a_changed_manifest)
{
    put_set("t", ID, &key);
    change_manifest("\"keys\": 7", "\"keys\": 8");
    expect_refused(RD_ERR_CHECKSUM, "not signed with this key", false);
}

Test(forgery, a_signature_of_zeros)
{
    char member[256];
    put_set("t", ID, &key);
    cut_member(",\n \"hmac\": \"", member);
    change_manifest(member, ",\n \"hmac\": "
                            "\"0000000000000000000000000000000000000000000000000000000000000000\"");
    expect_refused(RD_ERR_CHECKSUM, "not signed with this key", false);
}

Test(forgery, a_signature_that_is_gone)
{
    char member[256];
    put_set("t", ID, &key);
    cut_member(",\n \"hmac\": \"", member);
    change_manifest(member, "");
    expect_refused(RD_ERR_CHECKSUM, "names a key but is not signed", false);
}

Test(forgery, a_key_and_a_signature_that_are_gone)
{
    char member[256];
    put_set("t", ID, &key);
    cut_member(",\n \"hmac\": \"", member);
    change_manifest(member, "");
    cut_member("\"key_id\": \"", member);
    change_manifest(member, "\"key_id\": \"\"");
    expect_refused(RD_ERR_CHECKSUM, "manifest of a sealed set is not signed", false);
}

Test(forgery, a_set_of_another_key)
{
    put_set("t", ID, &foreign_key);
    expect_refused(RD_ERR_USAGE, "wrong key", true);
}

/* Else it would hide that backups are not made any more. */
Test(forgery, a_set_of_another_key_is_not_the_newest_one)
{
    put_set("t", ID, &key);
    put_set("t", OTHER, &foreign_key);
    struct archive_sets sets = list();
    cr_expect_eq(archive_sets_find(&sets, NULL, INT64_MAX), &sets.sets[1]);
    cr_expect_eq(archive_sets_newest(&sets, INT64_MAX), &sets.sets[0]);
    archive_sets_done(&sets);
}

Test(forgery, a_set_of_another_target)
{
    put_set("u", ID, &key);
    char *text = folder_get(store, MANIFEST("u", ID));
    char *data = folder_get(store, "u/sets/" ID "/dump.rdb.sealed");
    folder_put(store, MANIFEST("t", ID), text);
    free(data);
    free(text);
    expect_refused(RD_ERR_CORRUPT, "belongs to the target u", false);
}

Test(forgery, a_set_under_another_id)
{
    put_set("t", OTHER, &key);
    char *text = folder_get(store, MANIFEST("t", OTHER));
    struct archive_sets sets = list();
    cr_assert(archive_repo_remove(&repo, &sets.sets[0], NULL));
    archive_sets_done(&sets);
    folder_put(store, MANIFEST("t", ID), text);
    free(text);
    expect_refused(RD_ERR_CORRUPT, "belongs to " OTHER, false);
}

Test(forgery, a_set_that_is_not_sealed)
{
    struct rd_err err = {0};
    struct rd_src *src;
    put_set("t", ID, NULL);
    expect_refused(RD_ERR_CHECKSUM, "not sealed, although there is a key", false);
    ring.allow_unsealed = true;
    struct archive_sets sets = list();
    cr_expect(archive_set_good(&sets.sets[0]) && archive_set_prove(&repo, &sets.sets[0], &err));
    cr_assert(archive_set_open(&repo, &sets.sets[0], sets.sets[0].m.files, &ring, &src, &err), "%s",
              err.text);
    rd_src_close(src);
    archive_sets_done(&sets);
}

/* The listing knows that there is a key, but does not have it. */
Test(forgery, without_the_key_what_is_not_sealed_is_refused_and_the_rest_unknown)
{
    ring = (struct rd_seal_ring){.elsewhere = true};
    put_set("t", ID, NULL);
    put_set("t", OTHER, &key);
    struct archive_sets sets = list();
    cr_assert_eq(sets.n, 2);
    cr_expect(sets.sets[0].refused && !archive_set_good(&sets.sets[0]));
    cr_expect(archive_set_good(&sets.sets[1]));
    cr_expect_eq(sets.sets[1].m.signature, ARCHIVE_SIGNATURE_UNKNOWN);
    archive_sets_done(&sets);
}

Test(forgery, a_set_sealed_with_a_passphrase)
{
    static const uint8_t salt[RD_SEAL_SALT] = {3};
    struct rd_err err = {0};
    struct rd_src *src;
    cr_assert(rd_seal_key_stretch(&key, rd_slice_str("correct horse"), salt, NULL));
    ring = (struct rd_seal_ring){.passphrase = rd_slice_str("correct horse")};
    put_set("t", ID, &key);
    struct archive_sets sets = list();
    cr_expect_eq(sets.sets[0].m.signature, ARCHIVE_SIGNATURE_UNKNOWN);
    /* Its objects would open, but the manifest was not verified yet. */
    cr_expect_not(archive_set_open(&repo, &sets.sets[0], sets.sets[0].m.files, &ring, &src, &err));
    cr_expect_eq(err.reason.id, RD_SEAL_REASON_KEY, "%s", err.text);
    rd_err_reset(&err);
    cr_assert(archive_set_prove(&repo, &sets.sets[0], &err), "%s", err.text);
    cr_expect_eq(sets.sets[0].m.signature, ARCHIVE_SIGNATURE_VALID);
    archive_sets_done(&sets);
    change_manifest("\"keys\": 7", "\"keys\": 8");
    sets = list();
    cr_expect_not(archive_set_prove(&repo, &sets.sets[0], &err));
    cr_expect_eq(err.code, RD_ERR_CHECKSUM, "%s", err.text);
    cr_expect_not(archive_set_good(&sets.sets[0]));
    archive_sets_done(&sets);
}

/* ---- segments ---- */

static struct archive_segment segment(const char *run, uint64_t number)
{
    struct archive_segment s = {.replid = REPL,
                                .chapter = 1,
                                .number = number,
                                .start = 10 * number,
                                .end = 10 * number + 10,
                                .sealed = true};
    snprintf(s.run, sizeof s.run, "%s", run);
    return s;
}

/* The text of a segment stands for its contents, and its SHA-256. */
static struct repl_capture_segment header_of(const char *text)
{
    struct repl_capture_segment header = {.closed = true};
    const char *last =
        strchr(text, ':'); /* of a merged one: what the last of its parts stood for */
    memcpy(header.sha256, text, strlen(text));
    header.last = last != NULL;
    if (last != NULL)
        memcpy(header.last_sha256, last + 1, strlen(last + 1));
    return header;
}

static void name_of(char ret[ARCHIVE_NAME_MAX], const char *target, const struct archive_segment *s)
{
    const struct archive_repo place = {.store = store, .target = target};
    cr_assert(archive_segment_name(ret, &place, s, NULL));
}

static void put_bytes(const char *name, const struct rd_buf *bytes)
{
    struct rd_err err = {0};
    store->ops->remove(store, name, NULL);
    cr_assert(archive_store_write(store, name, rd_buf_slice(bytes), &err), "%s", err.text);
}

static struct rd_buf sealed_bytes(const char *name, const char *text, const char *before)
{
    struct rd_buf bytes = {0};
    struct archive_file file = {.compression = ARCHIVE_COMPRESSION_NONE};
    const struct repl_capture_segment last = header_of(before != NULL ? before : "");
    const struct archive_pipe pipe = {
        .key = &key, .name = name, .before = before != NULL ? last.sha256 : NULL};
    struct rd_sink *sink;
    cr_assert(rd_sink_open_buf(&sink, &bytes, NULL, NULL) &&
              archive_pipe_open_sink(&sink, sink, &pipe, &file, NULL));
    rd_sink_write(sink, text, strlen(text));
    cr_assert(rd_sink_close(sink, NULL));
    return bytes;
}

static void put_segment(const char *target, const struct archive_segment *s, const char *text,
                        const char *before)
{
    char name[ARCHIVE_NAME_MAX];
    name_of(name, target, s);
    struct rd_buf bytes = sealed_bytes(name, text, before);
    put_bytes(name, &bytes);
    rd_buf_done(&bytes);
}

static void put_segment_1(const struct archive_segment *s, const char *text)
{
    char name[ARCHIVE_NAME_MAX], bound[ARCHIVE_NAME_MAX];
    struct rd_buf bytes = {0};
    name_of(name, "t", s);
    archive_segment_bound(bound, s);
    seal_1(&key, bound, text, &bytes);
    put_bytes(name, &bytes);
    rd_buf_done(&bytes);
}

static void copy_segment(const char *from_target, const struct archive_segment *from,
                         const struct archive_segment *to)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf bytes = {0};
    name_of(name, from_target, from);
    cr_assert(archive_store_read(store, name, 10000, &bytes, NULL));
    name_of(name, "t", to);
    put_bytes(name, &bytes);
    rd_buf_done(&bytes);
}

/* Reads a segment after those that `order` has seen. */
static struct rd_err read_next(const struct archive_segment *s, const char *text,
                               struct archive_order *order)
{
    struct rd_err err = {0};
    struct rd_src *src;
    struct rd_buf got = {0};
    const struct repl_capture_segment header = header_of(text);
    if (!archive_segment_open_next(&repo, s, &ring, order, &src, &err))
        return err;
    filter_drain(src, &got, &err);
    if (err.code == RD_ERR_OK) {
        cr_expect(rd_slice_is(rd_buf_slice(&got), text));
        archive_order_check(order, s, &header, &err);
    }
    rd_buf_done(&got);
    return err;
}

static void expect_next(const struct archive_segment *s, const char *text,
                        struct archive_order *order, enum rd_err_code code)
{
    struct rd_err err = read_next(s, text, order);
    cr_expect_eq(err.code, code, "%s: %s", text, err.text);
}

Test(forgery, segments_in_their_order_are_read)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2),
                                 other = segment(RUN_B, 1);
    put_segment("t", &one, "one", NULL);
    put_segment("t", &two, "two", "one");
    put_segment("t", &other, "other", NULL);
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&two, "two", &order, RD_ERR_OK);
    expect_next(&other, "other", &order, RD_ERR_OK);
    order = (struct archive_order){.any = false};
    expect_next(&two, "two", &order, RD_ERR_OK); /* the one before it need not be read */
}

Test(forgery, a_segment_after_a_merged_one_names_the_last_of_its_parts)
{
    struct archive_order order = {.any = false};
    struct archive_segment merged = segment(RUN, 2);
    const struct archive_segment one = segment(RUN, 1), four = segment(RUN, 4),
                                 another = segment(RUN, 5);
    merged.recorded = true;
    merged.last = 3;
    put_segment("t", &one, "one", NULL);
    put_segment("t", &merged, "two and three:three", "one");
    put_segment("t", &four, "four", "three");
    put_segment("t", &another, "five", "another four");
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&merged, "two and three:three", &order, RD_ERR_OK);
    expect_next(&four, "four", &order, RD_ERR_OK);
    expect_next(&another, "five", &order, RD_ERR_CORRUPT);
    order = (struct archive_order){.any = false};
    put_segment("t", &merged, "two and three:another three", "one");
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&merged, "two and three:another three", &order, RD_ERR_OK);
    expect_next(&four, "four", &order, RD_ERR_CORRUPT);
}

Test(forgery, segments_that_change_places)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2);
    put_segment("t", &one, "one", NULL);
    put_segment("t", &two, "two", "one");
    copy_segment("t", &two, &one);
    expect_next(&one, "two", &order, RD_ERR_CHECKSUM);
}

Test(forgery, a_segment_of_another_run_and_of_another_target)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1), other = segment(RUN_B, 1);
    put_segment("t", &other, "other", NULL);
    copy_segment("t", &other, &one);
    expect_next(&one, "other", &order, RD_ERR_CHECKSUM);
    put_segment("u", &one, "of u", NULL);
    copy_segment("u", &one, &one);
    expect_next(&one, "of u", &order, RD_ERR_CHECKSUM);
}

/* Two archives that were taken for one: both names are right. */
static enum archive_store_proof prove(const struct archive_segment *s, const char *text)
{
    struct archive_store_sum sum;
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, rd_slice_str(text), NULL, NULL));
    cr_assert(archive_store_sum_src(src, &sum, NULL));
    rd_src_close(src);
    return archive_segment_prove(&repo, s, &ring, &sum, NULL);
}

static bool stat_more(struct archive_store *at, const char *name, struct archive_object *ret,
                      struct rd_err *err)
{
    (void)at, (void)name, (void)err;
    *ret = (struct archive_object){.there = true, .size = 1 << 20};
    return true;
}

Test(forgery, an_object_in_the_place_of_a_segment_is_no_failure_of_the_store)
{
    const struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2);
    cr_expect_eq(prove(&one, "one"), ARCHIVE_STORE_ABSENT);
    put_segment("t", &one, "one", NULL);
    cr_expect_eq(prove(&one, "one"), ARCHIVE_STORE_SAME);
    cr_expect_eq(prove(&one, "eno"), ARCHIVE_STORE_OTHER);
    copy_segment("t", &one, &two);
    cr_expect_eq(prove(&two, "one"), ARCHIVE_STORE_OPAQUE);
    ring.keys = &foreign_key;
    cr_expect_eq(prove(&one, "one"), ARCHIVE_STORE_OPAQUE);
    ring.keys = &key;
    /* The store did not give all that it has: nothing is known. */
    struct archive_store_ops ops = *store->ops;
    const struct archive_store_ops *real = store->ops;
    ops.stat = stat_more;
    store->ops = &ops;
    cr_expect_eq(prove(&two, "one"), ARCHIVE_STORE_FAILED);
    store->ops = real;
}

Test(forgery, a_segment_that_was_written_after_another_one)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2);
    put_segment("t", &one, "one", NULL);
    put_segment("t", &two, "two", "eno");
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&two, "two", &order, RD_ERR_CORRUPT);
}

Test(forgery, a_segment_that_is_cut)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1);
    char name[ARCHIVE_NAME_MAX];
    name_of(name, "t", &one);
    struct rd_buf bytes = sealed_bytes(name, "one", NULL);
    for (size_t len = 0; len < bytes.len; len++) {
        const struct rd_buf cut = {.ptr = bytes.ptr, .len = len};
        put_bytes(name, &cut);
        expect_next(&one, "one", &order, RD_ERR_TRUNCATED);
    }
    rd_buf_done(&bytes);
}

Test(forgery, a_segment_that_is_not_sealed)
{
    struct archive_order order = {.any = false};
    struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2);
    struct archive_stream stream;
    char name[ARCHIVE_NAME_MAX];
    put_segment("t", &one, "one", NULL);
    two.sealed = false;
    name_of(name, "t", &two);
    folder_put(store, name, "two");
    expect_next(&two, "two", &order, RD_ERR_CHECKSUM);
    cr_assert(archive_stream_list(&repo, &stream, NULL));
    cr_expect_eq(stream.n, 1);
    cr_expect_eq(stream.n_refused, 1);
    cr_expect_not_null(strstr(name, stream.refused));
    archive_stream_done(&stream);
    ring.allow_unsealed = true;
    cr_assert(archive_stream_list(&repo, &stream, NULL));
    cr_expect_eq(stream.n, 2);
    cr_expect_eq(stream.n_refused, 0);
    archive_stream_done(&stream);
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&two, "two", &order, RD_ERR_OK);
}

/* The key came after the segment, which was then stored again. */
Test(forgery, a_segment_that_is_there_sealed_and_not_counts_once)
{
    struct archive_segment one = segment(RUN, 1), plain = segment(RUN, 1);
    struct archive_stream stream;
    char name[ARCHIVE_NAME_MAX];
    plain.sealed = false;
    name_of(name, "t", &plain);
    folder_put(store, name, "one");
    put_segment("t", &one, "one", NULL);
    ring.allow_unsealed = true;
    cr_assert(archive_stream_list(&repo, &stream, NULL));
    cr_assert_eq(stream.n, 1);
    cr_expect(stream.segments[0].sealed);
    archive_stream_done(&stream);
}

Test(forgery, an_old_seal_opens_only_before_new_ones)
{
    struct archive_order order = {.any = false};
    const struct archive_segment one = segment(RUN, 1), two = segment(RUN, 2),
                                 three = segment(RUN, 3), other = segment(RUN_B, 1);
    put_segment_1(&one, "one");
    put_segment("t", &two, "two", "one");
    put_segment_1(&three, "three");
    put_segment_1(&other, "other");
    expect_next(&one, "one", &order, RD_ERR_OK);
    expect_next(&two, "two", &order, RD_ERR_OK);
    expect_next(&three, "three", &order, RD_ERR_CORRUPT);
    expect_next(&other, "other", &order, RD_ERR_OK);
    copy_segment("t", &one, &two); /* a name of its own is bound in version 1, too */
    order = (struct archive_order){.any = false};
    expect_next(&two, "one", &order, RD_ERR_CHECKSUM);
}
