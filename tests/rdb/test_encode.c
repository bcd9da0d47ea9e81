#include "rdb/encode.h"

#include "base/buf.h"
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <stdio.h>

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
static bool put(struct rdb_encoder *e, const struct rdb_type *type, unsigned i, size_t piece)
{
    char text[TEXT_MAX];
    size_t len = make_text(text, type, i), at = 0;
    struct rdb_event ev = {.kind = RDB_ELEM};
    struct rd_err err = {0};
    ev.elem.role = role_of(type, i);
    ev.elem.score = i / 2.0;
    ev.elem.expire_ms = expiry_of(type, i);
    do {
        size_t n = len - at < piece ? len - at : piece;
        ev.elem.str = (struct rdb_string){.ptr = (const uint8_t *)text + at,
                                          .len = n,
                                          .total = len,
                                          .first = at == 0,
                                          .more = at + n < len};
        if (!rdb_encoder_put(e, &ev, &err))
            return false;
        at += n;
    } while (at < len);
    return true;
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
        cr_assert(put(e, type, i, piece), "%s %u", type->name, i);
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
