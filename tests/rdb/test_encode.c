#include "rdb/encode.h"

#include "base/buf.h"
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/base/broken.h"
#include "tests/support/alloc_fault.h"

enum { N = 40, TEXT_MAX = 24 };

/* The i-th string of a value: integers in ascending order, or words where they may be. */
static size_t make_text(char dst[TEXT_MAX], const struct rdb_type *type, unsigned i)
{
    bool word = type->id != RDB_TYPE_SET_INTSET && i % 3 == 0;
    return (size_t)snprintf(dst, TEXT_MAX, word ? "word %u" : "%u", 1000 * i);
}

static enum rdb_role role_of(const struct rdb_type *type, unsigned i)
{
    switch ((int)type->kind) {
    case RDB_KIND_STRING:
        return RDB_ROLE_STRING;
    case RDB_KIND_LIST:
        return RDB_ROLE_ELEMENT;
    case RDB_KIND_HASH:
        return i % 2 == 0 ? RDB_ROLE_FIELD : RDB_ROLE_VALUE;
    default:
        return RDB_ROLE_MEMBER;
    }
}

static bool has_ttl(const struct rdb_type *type)
{
    return strstr(type->encoding, "metadata") != NULL ||
           strstr(type->encoding, "listpack_ex") != NULL || type->id == RDB_TYPE_HASH_2;
}

static int64_t expiry_of(const struct rdb_type *type, unsigned i)
{
    return has_ttl(type) && i % 4 == 1 ? 5000 + (int64_t)i : RDB_NO_EXPIRE;
}

/* Puts a string of `len` bytes in pieces of at most `piece`. */
static bool put_text(struct rdb_encoder *e, struct rdb_event ev, struct rd_slice text, size_t piece,
                     struct rd_err *err)
{
    size_t at = 0;
    do {
        size_t n = text.len - at < piece ? text.len - at : piece;
        ev.elem.str = (struct rdb_string){.ptr = text.ptr + at,
                                          .len = n,
                                          .total = text.len,
                                          .first = at == 0,
                                          .more = at + n < text.len};
        if (!rdb_encoder_put(e, &ev, err))
            return false;
        at += n;
    } while (at < text.len);
    return true;
}

static bool put(struct rdb_encoder *e, const struct rdb_type *type, unsigned i, size_t piece,
                struct rd_err *err)
{
    char text[TEXT_MAX];
    size_t len = make_text(text, type, i);
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role_of(type, i);
    ev.elem.score = i / 2.0;
    ev.elem.expire_ms = expiry_of(type, i);
    return put_text(e, ev, rd_slice(text, len), piece, err);
}

static void encode(const struct rdb_type *type, unsigned n, size_t piece, struct rd_buf *ret)
{
    struct rdb_encoder *e;
    struct rd_buf body = {0};
    struct rd_sink *sink;
    struct rd_slice head;
    struct rd_err err = {0};
    cr_assert(rdb_encoder_new(&e, &err));
    cr_assert(rd_sink_open_buf(&sink, &body, NULL, &err));
    cr_assert(rdb_encoder_begin(e, type, has_ttl(type) ? 5001 : RDB_NO_EXPIRE, sink, &err));
    for (unsigned i = 0; i < n; i++)
        cr_assert(put(e, type, i, piece, &err), "%s %u: %s", type->name, i, err.text);
    cr_assert(rdb_encoder_end(e, &head, &err), "%s: %s", type->name, err.text);
    cr_assert(rd_sink_close(sink, &err));
    cr_assert(rd_buf_add_byte(ret, type->number) && rd_buf_add(ret, head.ptr, head.len) &&
              rd_buf_add(ret, body.ptr, body.len));
    rd_buf_done(&body);
    rdb_encoder_free(e);
}

static void check_element(const struct rdb_type *type, const struct rdb_event *ev, unsigned i)
{
    char text[TEXT_MAX], tmp[RD_NUM_I64_MAX];
    size_t len = make_text(text, type, i);
    cr_assert(rd_slice_eq(rdb_string_bytes(&ev->elem.str, tmp), rd_slice(text, len)), "%s %u",
              type->name, i);
    if (type->kind == RDB_KIND_ZSET)
        cr_assert(ev->elem.score == i / 2.0, "%s %u", type->name, i);
    if (ev->elem.role == RDB_ROLE_VALUE)
        cr_assert_eq(ev->elem.expire_ms, expiry_of(type, i), "%s %u", type->name, i);
}

static void read_back(const struct rdb_type *type, struct rd_slice bytes, unsigned n)
{
    enum rdb_dialect dialect = type->family == RDB_FAMILY_VALKEY ? RDB_VALKEY : RDB_REDIS;
    struct rdb_reader *r;
    struct rd_src *src;
    struct rd_err err = {0};
    struct rdb_event ev;
    unsigned i = 0;
    enum rdb_status status;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, &err));
    cr_assert(rdb_reader_new_value(&r, src, dialect, type->since, NULL, &err));
    while ((status = rdb_reader_next(r, &ev)) == RDB_EVENT)
        if (ev.kind == RDB_ELEM)
            check_element(type, &ev, i++);
    cr_assert_eq(status, RDB_END, "%s: %s", type->name, rdb_reader_err(r)->text);
    cr_assert_eq(i, n, "%s", type->name);
    cr_assert_eq(rd_src_avail(src), 0, "%s", type->name);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(encode, every_encoding_reads_back_as_it_was_put)
{
    static const size_t pieces[] = {1, 3, TEXT_MAX};
    unsigned n_types = 0;
    for (int id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        unsigned n = type->kind == RDB_KIND_STRING ? 1 : N;
        if (!rdb_encoder_can(type))
            continue;
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            struct rd_buf value = {0};
            encode(type, n, pieces[p], &value);
            read_back(type, rd_buf_slice(&value), n);
            rd_buf_done(&value);
        }
        n_types++;
    }
    cr_assert_eq(n_types, 21);
}

Test(encode, an_intset_takes_integers_only_and_each_once)
{
    const struct rdb_type *type = rdb_type_get(RDB_TYPE_SET_INTSET);
    struct rdb_encoder *e;
    struct rd_sink *sink;
    struct rd_slice head;
    struct rd_err err = {0};
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.str =
        (struct rdb_string){.ptr = (const uint8_t *)"7", .len = 1, .total = 1, .first = true};
    cr_assert(rdb_encoder_new(&e, &err) && rd_sink_open_null(&sink, NULL, &err));
    cr_assert(rdb_encoder_begin(e, type, RDB_NO_EXPIRE, sink, &err));
    cr_assert(rdb_encoder_put(e, &ev, &err) && rdb_encoder_put(e, &ev, &err));
    cr_assert_not(rdb_encoder_end(e, &head, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    rd_err_reset(&err);
    cr_assert(rdb_encoder_begin(e, type, RDB_NO_EXPIRE, sink, &err));
    ev.elem.str.ptr = (const uint8_t *)"x";
    cr_assert_not(rdb_encoder_put(e, &ev, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    rd_err_reset(&err);
    ev.elem.role = RDB_ROLE_FIELD;
    cr_assert_not(rdb_encoder_put(e, &ev, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    rd_sink_abort(sink);
    rdb_encoder_free(e);
}

/* ---- what fails ---- */

enum { LONG = 20000 }; /* of an element that no node takes among others */

/* Encodes N elements, optionally with a long one, to the sink, and the head to *ret_head, which may
 * be NULL. */
static bool encode_all(const struct rdb_type *type, size_t piece, bool with_long,
                       struct rd_sink *sink, struct rd_buf *ret_head, struct rd_err *err)
{
    static const uint8_t zeros[LONG];
    unsigned n = type->kind == RDB_KIND_STRING ? 1 : N;
    struct rdb_encoder *e = NULL;
    struct rdb_event ev = {.kind = RDB_ELEM};
    struct rd_slice head;
    bool ok = rdb_encoder_new(&e, err) &&
              rdb_encoder_begin(e, type, has_ttl(type) ? 5001 : RDB_NO_EXPIRE, sink, err);
    for (unsigned i = 0; ok && i < n; i++)
        ok = put(e, type, i, piece, err);
    ev.elem.role = role_of(type, 0);
    if (with_long)
        ok = ok && put_text(e, ev, rd_slice(zeros, LONG), LONG / 2, err);
    ok = ok && rdb_encoder_end(e, &head, err);
    if (ok && ret_head != NULL)
        ok = rd_buf_add(ret_head, head.ptr, head.len) || rd_err_nomem(err, head.len);
    rdb_encoder_free(e);
    return ok;
}

Test(encode, a_sink_that_fails_at_any_byte_is_reported)
{
    for (int id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        bool with_long = type->kind == RDB_KIND_LIST && id != RDB_TYPE_LIST_ZIPLIST;
        bool ok = !rdb_encoder_can(type);
        for (size_t room = 0; !ok; room += room < 60 ? 5 : 1999) {
            struct broken_sink to = {.room = room};
            struct rd_sink *sink = broken_sink_open(&to, 1);
            struct rd_err err = {0};
            ok = encode_all(type, 3, with_long, sink, NULL, &err);
            cr_assert(ok || err.code == RD_ERR_IO, "%s at %zu: %s", type->name, room, err.text);
            ok = rd_sink_close(sink, NULL) && ok;
        }
    }
}

/* Encodes with the n-th allocation failing. What is good all the same, because memory was short for
 * compression alone, must read back. False: there were not as many. */
static bool fail_allocation(const struct rdb_type *type, size_t piece, size_t n)
{
    struct rd_buf body = {0}, value = {0};
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, &body, NULL, NULL));
    cr_assert(rd_buf_add_byte(&value, type->number));
    alloc_fault_begin(n);
    bool ok = encode_all(type, piece, false, sink, &value, &err);
    struct alloc_fault_result result = alloc_fault_end();
    ok = rd_sink_close(sink, &err) && ok;
    cr_assert(ok || err.code == RD_ERR_MEMORY, "%s: %s", type->name, err.text);
    cr_assert(ok || result.failed, "%s: %s", type->name, err.text);
    if (ok) {
        cr_assert(rd_buf_add(&value, body.ptr, body.len));
        read_back(type, rd_buf_slice(&value), type->kind == RDB_KIND_STRING ? 1 : N);
    }
    rd_buf_done(&body);
    rd_buf_done(&value);
    return result.failed;
}

Test(encode, each_failing_allocation_is_an_error_or_does_no_harm)
{
    for (int id = 0; id < RDB_TYPE_COUNT; id++) {
        const struct rdb_type *type = rdb_type_get((enum rdb_type_id)id);
        for (size_t n = 1; rdb_encoder_can(type) && fail_allocation(type, TEXT_MAX, n); n++)
            ;
        for (size_t n = 1; rdb_encoder_can(type) && fail_allocation(type, 3, n); n++)
            ;
    }
}

Test(encode, what_is_not_made_of_elements_is_refused)
{
    struct rdb_encoder *e;
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(rdb_encoder_new(&e, &err) && rd_sink_open_null(&sink, NULL, &err));
    cr_expect_not(rdb_encoder_begin(e, rdb_type_get(RDB_TYPE_MODULE_2), 0, sink, &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    rd_sink_abort(sink);
    rdb_encoder_free(e);
    rdb_encoder_free(NULL);
}

/* From 254 bytes on a zipmap has lengths of five. */
Test(encode, a_zipmap_of_long_fields_reads_back)
{
    static uint8_t text[300];
    const struct rdb_type *type = rdb_type_get(RDB_TYPE_HASH_ZIPMAP);
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS);
    for (size_t len = 250; len <= sizeof text; len++) {
        struct rdb_event ev = {.kind = RDB_ELEM};
        struct rdb_encoder *e;
        struct rdb_reader *r;
        struct rd_sink *sink;
        struct rd_src *src;
        struct rd_slice head;
        struct rd_buf value = {0}, body = {0};
        struct rd_err err = {0};
        memset(text, 'x', len);
        cr_assert(rdb_encoder_new(&e, &err) && rd_sink_open_buf(&sink, &body, NULL, &err));
        cr_assert(rdb_encoder_begin(e, type, RDB_NO_EXPIRE, sink, &err));
        for (int i = 0; i < 2; i++) {
            ev.elem.role = i == 0 ? RDB_ROLE_FIELD : RDB_ROLE_VALUE;
            cr_assert(put_text(e, ev, rd_slice(text, len), len, &err), "%s", err.text);
        }
        cr_assert(rdb_encoder_end(e, &head, &err) && rd_sink_close(sink, &err));
        cr_assert(rd_buf_add_byte(&value, type->number) && rd_buf_add(&value, head.ptr, head.len) &&
                  rd_buf_add(&value, body.ptr, body.len));
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&value), NULL, &err));
        cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, type->since, &opts, &err));
        cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_VALUE);
        for (int i = 0; i < 2; i++)
            cr_assert(
                rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_ELEM &&
                    rd_slice_eq(rd_slice(ev.elem.str.ptr, ev.elem.str.len), rd_slice(text, len)),
                "%zu: %s", len, rdb_reader_err(r)->text);
        rdb_reader_free(r);
        rd_src_close(src);
        rd_buf_done(&value);
        rd_buf_done(&body);
        rdb_encoder_free(e);
    }
}
