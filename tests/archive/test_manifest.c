#include "archive/manifest.h"

#include "base/digest.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>

static struct rd_seal_key key_of(uint8_t fill)
{
    uint8_t bytes[RD_SEAL_KEY];
    struct rd_seal_key key;
    memset(bytes, fill, sizeof bytes);
    cr_assert(rd_seal_key_set(&key, bytes, NULL));
    return key;
}

static bool fill(struct archive_manifest *m)
{
    struct archive_file file = {.name = "dump.rdb",
                                .object = "dump.rdb.lz4.sealed",
                                .compression = ARCHIVE_COMPRESSION_LZ4,
                                .sealed = true,
                                .plain = {1000, 0x0123456789abcdef, {1, 2, 3}},
                                .stored = {500, 0, {4, 5, 6}}};
    *m = (struct archive_manifest){.id = "20261123T013445Z-1f2e3d4c",
                                   .target = "nightly",
                                   .source = "a \"name\"\\with\nall \x7f and \xc3\xa4",
                                   .tool = "redoubt 0.2.0",
                                   .begin_ms = 1795397685000,
                                   .end_ms = 1795397686500,
                                   .rdb_version = 10,
                                   .replid = "0123456789012345678901234567890123456789",
                                   .offset = 17,
                                   .keys = 3,
                                   .expires = 1};
    struct archive_db *db = archive_manifest_db(m, 9);
    file.node = 1;
    if (db == NULL || !archive_manifest_add_file(m, &file, NULL))
        return false;
    db->keys = 3;
    db->expires = 1;
    const struct archive_node node = {.id = "abc",
                                      .host = "::1",
                                      .port = 7000,
                                      .slots = "0-1,9-16383",
                                      .replid = "0123456789012345678901234567890123456789",
                                      .base = 100,
                                      .offset = 200};
    m->scan = true;
    m->moment_from_us = -1;
    m->moment_to_us = 2;
    if (!archive_manifest_add_node(m, &node, NULL))
        return false;
    file.node = 1;
    file.role = ARCHIVE_ROLE_STREAM;
    file.compression = ARCHIVE_COMPRESSION_GZIP;
    file.sealed = false;
    return archive_manifest_add_file(m, &file, NULL);
}

/* Sealed with the key, or not at all. */
static void seal_with(struct archive_manifest *m, const struct rd_seal_key *key)
{
    for (size_t i = 0; i < m->n_files; i++)
        m->files[i].sealed = key != NULL;
    if (key != NULL)
        rd_seal_key_id(key, m->key_id);
}

static struct rd_buf text_of(const struct rd_seal_key *key)
{
    struct archive_manifest m;
    struct rd_buf text = {0};
    struct rd_err err = {0};
    cr_assert(fill(&m));
    seal_with(&m, key);
    cr_assert(archive_manifest_print(&m, key, &text, &err), "%s", err.text);
    archive_manifest_done(&m);
    return text;
}

Test(manifest, what_is_written_reads_back)
{
    struct archive_manifest want, got;
    struct rd_buf text = text_of(NULL);
    struct rd_err err = {0};
    cr_assert(fill(&want));
    seal_with(&want, NULL);
    cr_assert(archive_manifest_parse(&got, rd_buf_slice(&text), NULL, &err), "%s", err.text);
    cr_expect_str_eq(got.id, want.id);
    cr_expect_str_eq(got.target, want.target);
    cr_expect_str_eq(got.source, want.source);
    cr_expect_str_eq(got.tool, want.tool);
    cr_expect_str_eq(got.replid, want.replid);
    cr_expect_eq(got.begin_ms, want.begin_ms);
    cr_expect_eq(got.end_ms, want.end_ms);
    cr_expect_eq(got.offset, want.offset);
    cr_expect_eq(got.rdb_version, 10);
    cr_expect_eq(got.keys, 3);
    cr_expect_eq(got.expires, 1);
    cr_assert_eq(got.n_files, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct archive_file *a = &got.files[i], *b = &want.files[i];
        cr_expect_str_eq(a->name, b->name);
        cr_expect_str_eq(a->object, b->object);
        cr_expect_eq(a->role, b->role);
        cr_expect_eq(a->compression, b->compression);
        cr_expect_eq(a->sealed, b->sealed);
        cr_expect_arr_eq(&a->plain, &b->plain, sizeof a->plain);
        cr_expect_arr_eq(a->stored.sha256, b->stored.sha256, ARCHIVE_SHA256);
    }
    cr_expect_eq(got.files[1].node, 1);
    cr_assert_eq(got.n_nodes, 1);
    cr_expect_str_eq(got.nodes[0].id, "abc");
    cr_expect_str_eq(got.nodes[0].host, "::1");
    cr_expect_str_eq(got.nodes[0].slots, "0-1,9-16383");
    cr_expect_str_eq(got.nodes[0].replid, want.nodes[0].replid);
    cr_expect_eq(got.nodes[0].port, 7000);
    cr_expect_eq(got.nodes[0].base, 100);
    cr_expect_eq(got.nodes[0].offset, 200);
    cr_expect_eq(got.moment_from_us, -1);
    cr_expect_eq(got.moment_to_us, 2);
    cr_expect(got.scan);
    cr_assert_eq(got.n_dbs, 1);
    cr_expect_eq(got.dbs[0].db, 9);
    cr_expect_eq(got.dbs[0].keys, 3);
    cr_expect_not(got.has_hmac);
    archive_manifest_done(&got);
    archive_manifest_done(&want);
    rd_buf_done(&text);
}

Test(manifest, every_flipped_bit_and_every_cut_is_found)
{
    const struct rd_seal_key key = key_of(1);
    const struct rd_seal_ring ring = {.keys = &key, .n_keys = 1};
    for (int sealed = 0; sealed < 2; sealed++) {
        struct rd_buf text = text_of(sealed ? &key : NULL);
        for (size_t bit = 0; bit < 8 * text.len; bit++) {
            struct archive_manifest m;
            text.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            cr_assert_not(archive_manifest_parse(&m, rd_buf_slice(&text), &ring, NULL), "bit %zu",
                          bit);
            text.ptr[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        for (size_t len = 0; len < text.len; len++) {
            struct archive_manifest m;
            cr_assert_not(archive_manifest_parse(&m, rd_slice(text.ptr, len), NULL, NULL), "%zu",
                          len);
        }
        rd_buf_done(&text);
    }
}

Test(manifest, a_signature_is_that_of_one_key)
{
    const struct rd_seal_key keys[] = {key_of(2), key_of(1)};
    struct rd_seal_ring ring = {.keys = keys, .n_keys = 2};
    struct archive_manifest m;
    struct rd_err err = {0};
    struct rd_buf text = text_of(&keys[1]);
    cr_assert(archive_manifest_parse(&m, rd_buf_slice(&text), &ring, &err), "%s", err.text);
    cr_expect_eq(m.signature, ARCHIVE_SIGNATURE_VALID);
    archive_manifest_done(&m);
    ring.n_keys = 1;
    for (int i = 0; i < 2; i++) {
        cr_assert(archive_manifest_parse(&m, rd_buf_slice(&text), i == 0 ? &ring : NULL, &err));
        cr_expect_eq(m.signature, ARCHIVE_SIGNATURE_UNKNOWN);
        cr_expect_not(archive_manifest_verify(&m, rd_buf_slice(&text), &keys[0], &err));
        cr_expect_eq(err.code, RD_ERR_CHECKSUM);
        cr_expect_eq(m.signature, ARCHIVE_SIGNATURE_UNKNOWN);
        rd_err_reset(&err);
        cr_expect(archive_manifest_verify(&m, rd_buf_slice(&text), &keys[1], &err), "%s", err.text);
        cr_expect_eq(m.signature, ARCHIVE_SIGNATURE_VALID);
        archive_manifest_done(&m);
    }
    rd_buf_done(&text);
    text = text_of(NULL);
    cr_assert(archive_manifest_parse(&m, rd_buf_slice(&text), &ring, NULL));
    cr_expect_eq(m.signature, ARCHIVE_SIGNATURE_NONE);
    cr_expect_not(archive_manifest_verify(&m, rd_buf_slice(&text), &keys[0], NULL));
    archive_manifest_done(&m);
    rd_buf_done(&text);
}

/* A text with the digest that belongs to it, so that what it says is what is refused. */
static void expect_refused(const char *body, enum rd_err_code code)
{
    struct archive_manifest m;
    struct rd_err err = {0};
    struct rd_buf text = {0};
    uint8_t sum[64];
    char hex[129];
    cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_slice_str(body), sum, NULL));
    cr_assert(rd_buf_printf(&text, "%s,\n \"sha256\": \"%s\"}\n", body,
                            rd_digest_hex(hex, rd_slice(sum, 32))));
    cr_expect_not(archive_manifest_parse(&m, rd_buf_slice(&text), NULL, &err), "%s", body);
    cr_expect_eq(err.code, code, "%s: %s", body, err.text);
    rd_buf_done(&text);
}

Test(manifest, what_makes_no_sense_is_refused)
{
    static const char *const bodies[] = {
        "{\"format\": 1",
        "{\"id\": \"a\"",
        "{\"id\": \"a\", \"files\": []",
        "{\"id\": \"../a\", \"files\": [{\"name\": \"a\", \"object\": \"a\"}]",
        "{\"id\": \"a\", \"files\": [{\"name\": \"a\", \"object\": \"../a\"}]",
        "{\"id\": \"a\", \"files\": [{\"name\": \"a/b\", \"object\": \"a\"}]",
        "{\"id\": \"a\", \"files\": [{\"name\": \"a\", \"object\": \"manifest.json\"}]",
        "{\"id\": \"a\", \"files\": [{\"role\": \"king\"}]",
        "{\"id\": \"a\", \"files\": [{\"plain\": {\"bytes\": -1}}]",
        "{\"id\": \"a\", \"files\": [{\"plain\": {\"sha256\": \"00\"}}]",
        "{\"id\": \"a\", \"files\": [{\"plain\": {\"crc64\": \"xx\"}}]",
        "{\"id\": \"a\", \"files\": [{\"sealed\": 1}]",
        "{\"id\": \"a\", \"files\": {}",
        "{\"id\": \"a\", \"files\": [{\"name\": \"a\", \"object\": \"a\", \"node\": 1}]",
        "{\"id\": \"a\", \"nodes\": [{\"id\": \"a\"}], \"files\": [{\"name\": \"a\", "
        "\"object\": \"a\"}]",
        "{\"id\": \"a\", \"nodes\": [{\"id\": \"a\"}], \"files\": [{\"name\": \"a\", "
        "\"object\": \"a\", \"node\": 2}]",
        "{\"id\": \"a\", \"nodes\": [{\"id\": \"a\\n\"}], \"files\": [{\"name\": \"a\", "
        "\"object\": \"a\", \"node\": 1}]",
        "{\"id\": \"a\", \"nodes\": [{\"id\": \"a\", \"slots\": \"0\\n\"}], \"files\": "
        "[{\"name\": \"a\", \"object\": \"a\", \"node\": 1}]",
        "{\"id\": \"a\", \"dbs\": [{\"db\": \"1\"}]",
        "{\"id\": 1",
        "{\"id\": \"\x01\"",
        "{\"id\": \"\\x\"",
        "{\"id\": \"\\u00\"",
        "{\"id\" \"a\"",
        "{\"begin_ms\": 1.5",
        "{\"begin_ms\": x",
        "{\"other\": [[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]",
        "{\"other\": ]",
        "{\"other\": ,",
        "{\"other\": nix",
        "[",
        "",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        expect_refused(bodies[i], RD_ERR_CORRUPT);
    expect_refused("{\"format\": 2", RD_ERR_UNSUPPORTED);
}

Test(manifest, members_that_are_not_known_are_passed_over)
{
    struct archive_manifest m;
    struct rd_err err = {0};
    const char *body =
        "{\"new\": {\"a\": [1, -2.5e3, \"x\\\"]\", null, true, false, {}]}, \"id\": "
        "\"\\u0061\\n\\u00e4"
        "\", \"id\": \"a\", \"server\": null, \"dbs\": [{\"n\": [], \"db\": 2}, {\"db\": 2, "
        "\"keys\": 4}], "
        "\"files\": [{\"new\": 1, \"name\": \"a\", \"object\": \"a\", \"plain\": {\"new\": []}}]";
    struct rd_buf text = {0};
    uint8_t sum[64];
    char hex[129];
    cr_assert(rd_digest_of(RD_DIGEST_SHA256, rd_slice_str(body), sum, NULL));
    cr_assert(rd_buf_printf(&text, "%s,\n \"sha256\": \"%s\"}\n", body,
                            rd_digest_hex(hex, rd_slice(sum, 32))));
    cr_assert(archive_manifest_parse(&m, rd_buf_slice(&text), NULL, &err), "%s", err.text);
    cr_expect_str_eq(m.id, "a");
    cr_assert_eq(m.n_dbs, 1);
    cr_expect_eq(m.dbs[0].keys, 4);
    archive_manifest_done(&m);
    rd_buf_done(&text);
}

Test(manifest, limits_hold)
{
    struct archive_manifest m = {0};
    struct archive_file file = {0};
    struct rd_err err = {0};
    for (uint64_t i = 0; i < ARCHIVE_DBS_MAX; i++)
        cr_assert_not_null(archive_manifest_db(&m, i));
    cr_expect_null(archive_manifest_db(&m, ARCHIVE_DBS_MAX));
    cr_expect_not_null(archive_manifest_db(&m, 7));
    for (size_t i = 0; i < ARCHIVE_FILES_MAX; i++)
        cr_assert(archive_manifest_add_file(&m, &file, &err));
    cr_expect_not(archive_manifest_add_file(&m, &file, &err));
    cr_expect_eq(err.code, RD_ERR_LIMIT);
    archive_manifest_done(&m);
}

static bool round_trip(void)
{
    struct archive_manifest m = {0}, got;
    struct rd_buf text = {0};
    const struct rd_seal_key key = {.bytes = {1}};
    bool ok = fill(&m);
    if (ok)
        seal_with(&m, &key);
    ok = ok && archive_manifest_print(&m, &key, &text, NULL) &&
         archive_manifest_parse(&got, rd_buf_slice(&text), NULL, NULL);
    if (ok)
        archive_manifest_done(&got);
    rd_buf_done(&text);
    archive_manifest_done(&m);
    return ok;
}

Test(manifest, every_failing_allocation_is_survived)
{
    for (size_t n = 1;; n++) {
        alloc_fault_begin(n);
        bool ok = round_trip();
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !result.failed, "allocation %zu", n);
        if (ok)
            break;
    }
}

Test(manifest, words_are_those_of_the_format)
{
    cr_expect_str_eq(archive_role_word(ARCHIVE_ROLE_AOF_BASE), "aof-base");
    cr_expect_str_eq(archive_compression_word(ARCHIVE_COMPRESSION_GZIP), "gzip");
    cr_expect_str_eq(archive_compression_suffix(ARCHIVE_COMPRESSION_LZ4), ".lz4");
}
