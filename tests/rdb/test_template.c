/* Hashes that share their field names (Redis 8.10): copies of them, parts of their file, payloads,
 * and what salvage makes of a file that lost names. */
#include "base/endian.h"
#include "rdb/check.h"
#include "rdb/content.h"
#include "rdb/dump.h"
#include "rdb/enc/pack.h"
#include "rdb/enc/put.h"
#include "rdb/writer.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/read_all.h"
#include "tests/support/hex.h"

enum { NAMES = 3, LONG = 700 };

static struct rdb_content_opts plain = {.key = "sixteen bytes!"};

static struct rd_slice name_of(unsigned template, unsigned i, char tmp[LONG + 8])
{
    /* Longer ones come later. */
    size_t len = (size_t)snprintf(tmp, LONG + 8, "%u%0*u", template, (int)(1 + i * LONG / 4), i);
    return rd_slice(tmp, len);
}

static void add_template(struct rd_buf *file, unsigned id)
{
    struct rd_sink *sink;
    struct rdb_put put;
    char tmp[LONG + 8];
    const uint8_t head[] = {RDB_OP_HASH_TEMPLATE, (uint8_t)id, NAMES};
    cr_assert(rdb_put_init(&put, true));
    cr_assert(rd_sink_open_buf(&sink, file, NULL, NULL) && rd_sink_write(sink, head, sizeof head));
    for (unsigned i = 0; i < NAMES; i++)
        cr_assert(rdb_put_string(&put, sink, name_of(id, i, tmp)));
    cr_assert(rd_sink_close(sink, NULL));
    rdb_put_done(&put);
}

static struct rd_slice value_of(unsigned key, unsigned i, char tmp[LONG + 8])
{
    size_t len = (size_t)snprintf(tmp, LONG + 8, "%u-%u", key, i);
    if (key % 5 == 3 && i == 1)
        len = (size_t)snprintf(tmp, LONG + 8, "%0*u", LONG, key);
    if (key % 5 == 4)
        len = (size_t)snprintf(tmp, LONG + 8, "%u", key + i);
    return rd_slice(tmp, len);
}

static void add_values(struct rd_sink *sink, struct rdb_put *put, unsigned id, unsigned key)
{
    char tmp[LONG + 8];
    struct rd_buf blob = {0};
    struct rdb_packer packer;
    if (key % 2 == 0) {
        cr_assert(rd_sink_byte(sink, (uint8_t)id));
        for (unsigned i = 0; i < NAMES; i++)
            cr_assert(rdb_put_string(put, sink, value_of(key, i, tmp)));
        return;
    }
    cr_assert(rdb_packer_begin(&packer, RDB_LISTPACK, &blob) && rdb_packer_add_i64(&packer, id));
    for (unsigned i = 0; i < NAMES; i++)
        cr_assert(rdb_packer_add(&packer, value_of(key, i, tmp)));
    cr_assert(rdb_packer_end(&packer) && rdb_put_string(put, sink, rd_buf_slice(&blob)));
    rd_buf_done(&blob);
}

/* Even ones are stored as values, odd ones as a listpack. */
static void add_hash(struct rd_buf *file, unsigned id, unsigned key)
{
    struct rd_sink *sink;
    struct rdb_put put;
    char name[32];
    size_t len = (size_t)snprintf(name, sizeof name, "hash:%u:%u", id, key);
    cr_assert(rdb_put_init(&put, true));
    cr_assert(rd_sink_open_buf(&sink, file, NULL, NULL));
    cr_assert(rd_sink_byte(sink, key % 2 == 0 ? 32 : 30));
    cr_assert(rdb_put_string(&put, sink, rd_slice(name, len)));
    add_values(sink, &put, id, key);
    cr_assert(rd_sink_close(sink, NULL));
    rdb_put_done(&put);
}

static void begin_file(struct rd_buf *file, unsigned n_templates, unsigned n_hashes)
{
    const uint8_t db[] = {RDB_OP_SELECTDB, 0, RDB_OP_RESIZEDB, (uint8_t)n_hashes, 0};
    *file = (struct rd_buf){0};
    made_add(file, "REDIS0015", 9);
    for (unsigned id = 0; id < n_templates; id++)
        add_template(file, id);
    made_add(file, db, sizeof db);
}

static void make_file(struct rd_buf *file, unsigned n_templates, unsigned n_hashes)
{
    begin_file(file, n_templates, n_hashes);
    for (unsigned key = 0; key < n_hashes; key++)
        add_hash(file, key % n_templates, key);
    made_end(file);
}

/* ---- contents ---- */

/* The next value of a reader. */
static struct rd_hash128 next_content(struct rdb_reader *r)
{
    struct rdb_content content;
    struct rdb_event ev = {.kind = RDB_VALUE};
    rdb_content_init(&content, &plain);
    do {
        cr_assert_eq(rdb_reader_next(r, &ev), RDB_EVENT, "%s", rdb_reader_err(r)->text);
        cr_assert(rdb_content_put(&content, &ev, NULL));
    } while (ev.kind != RDB_VALUE_END);
    return rdb_content_sum(&content);
}

static struct rd_hash128 content_of(const struct rdb_type *type, struct rd_slice value)
{
    struct rd_buf typed = {0};
    struct rdb_reader *r;
    struct rd_src *src;
    made_add(&typed, &type->number, 1);
    made_add(&typed, value.ptr, value.len);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&typed), NULL, NULL));
    cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, 15, NULL, NULL));
    struct rd_hash128 sum = next_content(r);
    struct rdb_event ev;
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_END);
    cr_assert_eq(rd_src_avail(src), 0);
    rdb_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&typed);
    return sum;
}

static struct rd_hash128 expected_of(unsigned id, unsigned key)
{
    struct rdb_content content;
    char tmp[LONG + 8];
    struct rdb_event ev = {.kind = RDB_VALUE};
    rdb_content_init(&content, &plain);
    ev.value.type = rdb_type_get(RDB_TYPE_HASH);
    cr_assert(rdb_content_put(&content, &ev, NULL));
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        struct rd_slice text = i % 2 == 0 ? name_of(id, i / 2, tmp) : value_of(key, i / 2, tmp);
        ev = (struct rdb_event){.kind = RDB_ELEM};
        ev.elem.role = i % 2 == 0 ? RDB_ROLE_FIELD : RDB_ROLE_VALUE;
        ev.elem.expire_ms = RDB_NO_EXPIRE;
        ev.elem.str =
            (struct rdb_string){.ptr = text.ptr, .len = text.len, .total = text.len, .first = true};
        cr_assert(rdb_content_put(&content, &ev, NULL));
    }
    ev = (struct rdb_event){.kind = RDB_VALUE_END};
    cr_assert(rdb_content_put(&content, &ev, NULL));
    return rdb_content_sum(&content);
}

static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 3}};

enum { N_WAYS = sizeof ways / sizeof ways[0] };

Test(template, hashes_have_the_names_of_their_template)
{
    struct rd_buf file;
    make_file(&file, 2, 40);
    for (size_t i = 0; i < N_WAYS; i++) {
        struct rd_src *src = way_open(&ways[i], rd_buf_slice(&file));
        struct rdb_reader *r;
        struct rdb_event ev;
        unsigned n = 0;
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        while (rdb_reader_next(r, &ev) == RDB_EVENT) {
            if (ev.kind != RDB_KEY)
                continue;
            cr_expect_eq(ev.raw.len, 0, "a record without its template is of no use");
            cr_expect(rd_hash128_eq(next_content(r), expected_of(n % 2, n)), "%u", n);
            n++;
        }
        cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_OK);
        cr_expect_eq(n, 40);
        rdb_reader_free(r);
        rd_src_close(src);
    }
    rd_buf_done(&file);
}

Test(template, a_copy_of_a_value_contains_the_names)
{
    struct rd_buf file;
    make_file(&file, 2, 40);
    for (size_t i = 0; i < N_WAYS; i++) {
        struct rd_src *src = way_open(&ways[i], rd_buf_slice(&file));
        struct rdb_reader *r;
        struct rdb_event ev;
        unsigned n = 0;
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        while (rdb_reader_next(r, &ev) == RDB_EVENT) {
            struct rd_buf copy = {0};
            struct rd_sink *sink;
            if (ev.kind != RDB_KEY)
                continue;
            const struct rdb_type *type = ev.key.type;
            cr_expect_eq(type->id, n % 2 == 0 ? RDB_TYPE_HASH_TMPL_ARRAY : RDB_TYPE_HASH_TMPL_LP);
            cr_assert(rd_sink_open_buf(&sink, &copy, NULL, NULL));
            cr_assert_eq(rdb_reader_copy_value(r, sink), RDB_EVENT, "%s", rdb_reader_err(r)->text);
            cr_assert(rd_sink_close(sink, NULL));
            cr_expect(rd_hash128_eq(content_of(type, rd_buf_slice(&copy)), expected_of(n % 2, n)));
            rd_buf_done(&copy);
            n++;
        }
        cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_OK);
        cr_expect_eq(n, 40);
        rdb_reader_free(r);
        rd_src_close(src);
    }
    rd_buf_done(&file);
}

Test(template, a_copy_of_a_value_without_its_template_is_refused)
{
    for (unsigned key = 0; key < 2; key++) {
        struct rd_buf file, copy = {0};
        struct rdb_reader *r;
        struct rdb_event ev;
        struct rd_src *src;
        struct rd_sink *sink;
        begin_file(&file, 1, 1);
        add_hash(&file, 1, key);
        made_end(&file);
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        do
            cr_assert_eq(rdb_reader_next(r, &ev), RDB_EVENT);
        while (ev.kind != RDB_KEY);
        cr_assert(rd_sink_open_buf(&sink, &copy, NULL, NULL));
        cr_expect_eq(rdb_reader_copy_value(r, sink), RDB_FAIL);
        cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_CORRUPT);
        cr_expect_not_null(strstr(rdb_reader_err(r)->text, "template 1"), "%s",
                           rdb_reader_err(r)->text);
        cr_assert(rd_sink_close(sink, NULL));
        cr_expect_eq(copy.len, 0);
        rd_buf_done(&copy);
        rdb_reader_free(r);
        rd_src_close(src);
        rd_buf_done(&file);
    }
}

/* ---- limits ---- */

static enum rd_err_code code_with(const struct rd_buf *file, const struct rdb_reader_opts *opts)
{
    return read_all(rd_buf_slice(file), &ways[1], opts, NULL).code;
}

Test(template, more_names_than_the_option_allows_are_refused)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.max_templates = 4000);
    struct rd_buf file;
    make_file(&file, 3, 6);
    cr_expect_eq(code_with(&file, &opts), RD_ERR_OK);
    opts.max_templates = 1500;
    cr_expect_eq(code_with(&file, &opts), RD_ERR_LIMIT);
    rd_buf_done(&file);
    /* … also those of a single value, as a listpack and as strings. */
    static const char *const heads[] = {"REDIS0015\x1d\1k\0", "REDIS0015\x1f\1k\1\x8"};
    for (size_t i = 0; i < 2; i++) {
        struct rd_buf names = {0};
        struct rdb_packer packer;
        file = (struct rd_buf){0};
        made_add(&file, heads[i], i == 0 ? 13 : 14);
        cr_assert(rdb_packer_begin(&packer, RDB_LISTPACK, &names));
        for (unsigned n = 0; n < 8; n++) {
            char text[64];
            snprintf(text, sizeof text, "%060u", n);
            if (i == 0)
                cr_assert(rdb_packer_add(&packer, rd_slice_str(text)));
            else
                made_text(&file, text);
        }
        cr_assert(rdb_packer_end(&packer));
        if (i == 0) {
            made_len32(&file, names.len);
            made_add(&file, names.ptr, names.len);
        }
        opts.max_templates = 400;
        cr_expect_eq(code_with(&file, &opts), RD_ERR_LIMIT, "%zu", i);
        opts.max_templates = 4000;
        cr_expect_eq(code_with(&file, &opts), RD_ERR_TRUNCATED, "%zu", i);
        rd_buf_done(&names);
        rd_buf_done(&file);
    }
}

Test(template, numbers_that_no_server_gives_are_beyond_the_limit)
{
    struct rd_buf file = {0};
    made_add(&file, "REDIS0015\xf2\x80\0\x20\0\0\1\1a\xff\0\0\0\0\0\0\0\0", 27);
    cr_expect_eq(code_with(&file, NULL), RD_ERR_LIMIT);
    rd_buf_done(&file);
}

/* ---- parts of a file ---- */

/* Where the first key is. */
static uint64_t read_templates(struct rdb_reader *r)
{
    struct rdb_event ev;
    do
        cr_assert_eq(rdb_reader_next(r, &ev), RDB_EVENT);
    while (ev.kind != RDB_KEY);
    return ev.key.record;
}

static enum rd_err_code read_part(const struct rd_buf *file, uint64_t from,
                                  struct rdb_templates *templates)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.templates = templates);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    unsigned n = 0;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(file), NULL, NULL));
    cr_assert(rd_src_seek(src, from, NULL));
    cr_assert(rdb_reader_new_records(&r, src, RDB_REDIS, 15, &opts, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY) {
            cr_expect(rd_hash128_eq(next_content(r), expected_of(n % 2, n)), "%u", n);
            n++;
        }
        if (n == 10)
            break;
    }
    enum rd_err_code code = rdb_reader_err(r)->code;
    rdb_reader_free(r);
    rd_src_close(src);
    return code;
}

Test(template, a_part_of_a_file_needs_the_templates_before_it)
{
    struct rd_buf file;
    struct rd_src *src;
    struct rdb_reader *r;
    make_file(&file, 2, 10);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    cr_expect_null(rdb_reader_templates(r));
    uint64_t first = read_templates(r);
    cr_assert_not_null(rdb_reader_templates(r));
    cr_expect_eq(read_part(&file, first, rdb_reader_templates(r)), RD_ERR_OK);
    rdb_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&file);
}

/* A template after keys is read, and belongs to the reader that read it. */
Test(template, readers_that_share_templates_do_not_see_later_ones_of_others)
{
    struct rd_buf file;
    struct rd_src *src;
    struct rdb_reader *r, *part;
    struct rdb_event ev;
    begin_file(&file, 1, 2);
    add_hash(&file, 0, 0);
    add_template(&file, 1);
    add_hash(&file, 1, 1);
    made_end(&file);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    read_templates(r);
    struct rdb_templates *before = rdb_reader_templates(r);
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.templates = before);
    cr_assert(rdb_reader_new_records(&part, src, RDB_REDIS, 15, &opts, NULL));
    cr_expect_eq(rdb_reader_templates(part), before);
    while (rdb_reader_next(r, &ev) == RDB_EVENT)
        ;
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_OK, "%s", rdb_reader_err(r)->text);
    cr_expect_neq(rdb_reader_templates(r), before);
    cr_expect_eq(rdb_reader_templates(part), before);
    rdb_reader_free(r);
    rdb_reader_free(part);
    rd_src_close(src);
    rd_buf_done(&file);
}

/* ---- payloads ---- */

/* The first two are those with which Redis tests itself; the others have one fault each. */
static const struct {
    const char *hex;
    enum rd_err_code code;
} payloads[] = {
    {"1d001717000000020086"
     "6669656c643107866669656c643207ff0d0d00000003000001010102"
     "01ff0f000000000000000000",
     RD_ERR_OK},
    {"1f0102066669656c643106666965"
     "6c6432c001c0020f000000000000000000",
     RD_ERR_OK},
    {"1d0017170000000200866669656c643107866669656c643207ff0b0b000000020000010101ff0f00"
     "0000000000000000",
     RD_ERR_CORRUPT},
    {"1d0017170000000200866669656c643107866669656c643207ff07070000000000ff0f00"
     "0000000000000000",
     RD_ERR_CORRUPT},
    {"1d0017170000000200866669656c643107866669656c643207ff0e0e0000000300817802010102"
     "01ff0f000000000000000000",
     RD_ERR_CORRUPT},
    {"1d0007070000000000ff0d0d0000000300000101010201ff0f000000000000000000", RD_ERR_CORRUPT},
    {"1f0100066669656c643106666965"
     "6c6432c001c0020f000000000000000000",
     RD_ERR_CORRUPT},
    {"1e0d0d0000000300050101010201ff0f000000000000000000", RD_ERR_CORRUPT},
    {"2005c001c0020f000000000000000000", RD_ERR_CORRUPT},
    {"1f0102016101"
     "62c0010f000000000000000000",
     RD_ERR_TRUNCATED},
    {"1f01010161c0010e000000000000000000", RD_ERR_UNSUPPORTED},
};

Test(template, payloads_contain_their_names)
{
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        struct rd_buf payload = {0};
        struct rd_err err = {0};
        unsigned line;
        cr_assert(hex_parse(rd_slice_str(payloads[i].hex), &payload, &line), "%zu", i);
        bool ok = rdb_dump_verify(rd_buf_slice(&payload), &err);
        cr_expect_eq(ok, payloads[i].code == RD_ERR_OK, "%zu: %s", i, err.text);
        cr_expect_eq(err.code, payloads[i].code, "%zu: %s", i, err.text);
        rd_buf_done(&payload);
    }
}

Test(template, a_payload_that_refers_to_a_template_is_not_made)
{
    struct rd_buf payload = {0};
    struct rd_err err = {0};
    cr_expect_not(rdb_dump_make(&payload, rdb_type_get(RDB_TYPE_HASH_TMPL_ARRAY_REF),
                                rd_slice("\0\1v", 3), 15, &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    rd_buf_done(&payload);
}

/* ---- other versions ---- */

static void convert(const struct rd_buf *file, const struct rdb_writer_opts *opts,
                    struct rd_buf *ret)
{
    struct rd_src *src;
    struct rd_sink *sink;
    struct rdb_reader *r;
    struct rdb_writer *w;
    struct rdb_event ev;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(file), NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL) && rdb_writer_new(&w, sink, opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT)
        cr_assert(rdb_writer_put(w, &ev, &err), "%s", err.text);
    cr_assert(rdb_writer_end(w, NULL) && rd_sink_close(sink, NULL));
    rdb_writer_free(w);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(template, other_versions_get_hashes_with_names)
{
    static const struct rdb_writer_opts targets[] = {
        {.size = sizeof(struct rdb_writer_opts), .version = 6},
        {.size = sizeof(struct rdb_writer_opts), .version = 12, .compress = true},
        {.size = sizeof(struct rdb_writer_opts), .version = 15},
        {.size = sizeof(struct rdb_writer_opts), .dialect = RDB_VALKEY, .version = 80},
    };
    struct rd_buf file;
    make_file(&file, 2, 30);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct rd_buf out = {0};
        struct rd_src *src;
        struct rdb_reader *r;
        struct rdb_event ev;
        unsigned n = 0;
        convert(&file, &targets[i], &out);
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&out), NULL, NULL));
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        while (rdb_reader_next(r, &ev) == RDB_EVENT) {
            if (ev.kind != RDB_KEY)
                continue;
            cr_expect_lt(ev.key.type->since, 15);
            cr_expect(rd_hash128_eq(next_content(r), expected_of(n % 2, n)), "%zu, %u", i, n);
            n++;
        }
        cr_expect_eq(n, 30);
        cr_expect_null(rdb_reader_templates(r));
        rdb_reader_free(r);
        rd_src_close(src);
        rd_buf_done(&out);
    }
    rd_buf_done(&file);
}

/* ---- salvage ---- */

/* Reads what was saved: it must be sound. Counts the hashes of each template. */
static void count_saved(const struct rd_buf *out, unsigned n[3])
{
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rdb_check_opts opts = RDB_CHECK_OPTS();
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    n[0] = n[1] = n[2] = 0;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(out), NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    cr_expect(!res.damaged && res.errors == 0, "%s", res.err.text);
    rd_src_close(src);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(out), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        unsigned id, key;
        char name[64];
        if (ev.kind != RDB_KEY)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)ev.key.name.len, (const char *)ev.key.name.ptr);
        cr_assert_eq(sscanf(name, "hash:%u:%u", &id, &key), 2, "%s", name);
        cr_assert_lt(id, 3);
        cr_expect(rd_hash128_eq(next_content(r), expected_of(id, key)), "%s", name);
        n[id]++;
    }
    rdb_reader_free(r);
    rd_src_close(src);
}

/* Where the record of a template begins. */
static size_t template_at(const struct rd_buf *file, unsigned id)
{
    size_t i = 9;
    while (i + 3 < file->len && !(file->ptr[i] == RDB_OP_HASH_TEMPLATE && file->ptr[i + 1] == id))
        i++;
    return i;
}

Test(template, hashes_of_a_lost_template_are_lost_and_no_others)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    unsigned n[3];
    begin_file(&file, 3, 60);
    for (unsigned key = 0; key < 60; key++)
        add_hash(&file, key / 20, key);
    made_end(&file);
    file.ptr[template_at(&file, 1) + 2] = 0xc9; /* the number of names */
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    count_saved(&out, n);
    cr_expect_eq(n[0], 20);
    cr_expect_eq(n[1], 0);
    cr_expect_eq(n[2], 20);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* Its hashes can be read, but servers would refuse the file because of it. */
Test(template, hashes_of_a_refused_template_are_named_and_left_out)
{
    struct made_seen seen = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    unsigned n[3];
    make_file(&file, 3, 60);
    /* The first name becomes as long as the second one, which began with another template. */
    size_t at = template_at(&file, 1) + 3;
    cr_assert_eq(file.ptr[at], 0xc0);
    static const uint8_t longer[] = {0x41, 0x2c};
    char zeros[300];
    memset(zeros, '9', sizeof zeros);
    struct rd_buf other = {0};
    made_add(&other, file.ptr, at);
    made_add(&other, longer, sizeof longer);
    made_add(&other, zeros, sizeof zeros);
    made_add(&other, file.ptr + at + 2, file.len - at - 2);
    cr_assert(made_salvage(rd_buf_slice(&other), &opts, &out, &res, NULL));
    count_saved(&out, n);
    cr_expect_eq(n[0], 20);
    cr_expect_eq(n[1], 0);
    cr_expect_eq(n[2], 20);
    cr_expect_eq(res.keys_dropped, 20);
    cr_expect_str_eq(seen.last.why, "lost-template");
    rd_buf_done(&file);
    rd_buf_done(&other);
    rd_buf_done(&out);
}

/* Bytes that read as a template must not become one. */
Test(template, names_are_not_read_out_of_damage)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    unsigned n[3];
    begin_file(&file, 1, 61);
    for (unsigned key = 0; key < 20; key++)
        add_hash(&file, 0, key);
    size_t at = file.len;
    made_add(&file, "\x05\x01k\x03", 4); /* a broken sorted set */
    made_add(&file, "\xf2\x01\x03\x01x\x01y\x01z\xf2\x02\x01\x01x\x86\x99", 17);
    for (unsigned key = 20; key < 40; key++)
        add_hash(&file, 0, key);
    for (unsigned key = 40; key < 43; key++)
        add_hash(&file, 1, key);
    for (unsigned key = 43; key < 60; key++)
        add_hash(&file, 0, key);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    count_saved(&out, n);
    cr_expect_geq(n[0], 55);
    cr_expect_eq(n[1], 0);
    cr_expect_leq(res.damage, at);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(template, doubtful_hashes_get_their_names_in_the_other_output)
{
    struct rd_buf file, out = {0}, doubtful = {0};
    struct rd_sink *sink;
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    unsigned n[3], m[3];
    make_file(&file, 2, 60);
    cr_assert(rd_sink_open_buf(&sink, &doubtful, NULL, NULL));
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.strict = true, .doubtful = sink);
    size_t at = 0;
    while (memcmp(file.ptr + at, "hash:0:30", 9) != 0)
        at++;
    file.ptr[at - 1] = 0xc9; /* the length of the name */
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_assert(rd_sink_close(sink, NULL));
    count_saved(&out, n);
    count_saved(&doubtful, m);
    cr_expect_eq(n[0] + n[1], res.keys);
    cr_expect_eq(m[0] + m[1], res.keys_left_out);
    cr_expect_geq(n[0] + n[1] + m[0] + m[1], 57);
    rd_buf_done(&file);
    rd_buf_done(&out);
    rd_buf_done(&doubtful);
}
