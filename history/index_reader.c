#include "history/index_reader.h"

#include "base/buf.h"
#include "base/endian.h"
#include "base/mem.h"
#include "history/index_format.h"

enum { SUM = 8 };

struct history_index_reader {
    struct rd_fs fs;
    int fd;
    struct index_section section; /* the one that was read last */
    struct rd_buf buf;
};

/* ---- bytes ---- */

static bool read_at(struct history_index_reader *r, void *dst, size_t size, uint64_t at,
                    struct rd_err *err)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = r->fs.read_at(r->fs.ctx, r->fd, (uint8_t *)dst + got, size - got, at + got);
        if (n < 0)
            return rd_err_sys(err, (int)-n, "cannot read an index of keys");
        if (n == 0)
            return rd_err_set(err, RD_ERR_TRUNCATED, at + got, "the end of an index of keys");
        got += (size_t)n;
    }
    return true;
}

static bool read_section(struct history_index_reader *r, uint64_t at, struct rd_err *err)
{
    uint8_t header[INDEX_HEADER];
    return read_at(r, header, sizeof header, at, err) &&
           history_index_header_get(header, at, &r->section, err);
}

static bool verify_chunk(struct history_index_reader *r, uint64_t chunk, const uint8_t *bytes,
                         size_t len, struct rd_err *err)
{
    const struct index_section *section = &r->section;
    uint64_t at = section->at + INDEX_HEADER + history_index_body_len(section) + chunk * SUM;
    uint8_t sum[SUM];
    if (!read_at(r, sum, sizeof sum, at, err))
        return false;
    if (rd_get_le64(sum) == history_index_chunk_sum(section, chunk, bytes, len))
        return true;
    return rd_err_set(err, RD_ERR_CHECKSUM, section->at + INDEX_HEADER + chunk * INDEX_CHUNK,
                      "an index of keys is damaged");
}

/* Bytes of the body, verified, borrowed until the next call. */
static bool read_body(struct history_index_reader *r, uint64_t at, size_t len, const uint8_t **ret,
                      struct rd_err *err)
{
    uint64_t end = history_index_body_len(&r->section);
    uint64_t chunk = at / INDEX_CHUNK, from = chunk * INDEX_CHUNK;
    uint64_t upto = (at + len + INDEX_CHUNK - 1) / INDEX_CHUNK * INDEX_CHUNK;
    if (upto > end)
        upto = end;
    rd_buf_reset(&r->buf);
    if (at + len > end)
        return rd_err_set(err, RD_ERR_CORRUPT, r->section.at, "an index of keys is damaged");
    if (!rd_buf_reserve(&r->buf, upto - from + 1))
        return rd_err_nomem(err, upto - from);
    if (!read_at(r, r->buf.ptr, upto - from, r->section.at + INDEX_HEADER + from, err))
        return false;
    for (uint64_t done = from; done < upto; done += INDEX_CHUNK, chunk++) {
        uint64_t n = upto - done < INDEX_CHUNK ? upto - done : INDEX_CHUNK;
        if (!verify_chunk(r, chunk, r->buf.ptr + (done - from), n, err))
            return false;
    }
    *ret = r->buf.ptr + (at - from);
    return true;
}

/* ---- opening ---- */

bool history_index_reader_open(struct history_index_reader **ret, const struct rd_fs *fs,
                               const char *name, struct rd_err *err)
{
    struct history_index_reader *r = rd_calloc(1, sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    r->fs = *fs;
    r->fd = fs->open(fs->ctx, name, RD_FS_READ_AT);
    bool ok = r->fd >= 0 || rd_err_sys(err, -r->fd, "cannot open it");
    ok = ok && read_section(r, 0, err);
    if (!ok) {
        rd_err_origin(err, name);
        history_index_reader_close(r);
        return false;
    }
    *ret = r;
    return true;
}

void history_index_reader_close(struct history_index_reader *r)
{
    if (r == NULL)
        return;
    if (r->fd >= 0)
        r->fs.close(r->fs.ctx, r->fd);
    rd_buf_done(&r->buf);
    rd_free(r);
}

const struct history_index_about *history_index_reader_about(const struct history_index_reader *r)
{
    return &r->section.about;
}

bool history_index_is_of(const struct history_index_about *index,
                         const struct history_index_about *data)
{
    return index->kind == data->kind && index->size == data->size &&
           memcmp(index->digest, data->digest, sizeof data->digest) == 0;
}

/* ---- spans ---- */

void history_spans_done(struct history_spans *spans)
{
    rd_free(spans->list);
    *spans = (struct history_spans){0};
}

/* Keeps the order; the spans of a lookup come in it, so that they are mostly added at the end. */
static bool add_span(struct history_spans *spans, const struct history_span *span,
                     struct rd_err *err)
{
    size_t at = spans->n;
    while (at > 0 && spans->list[at - 1].offset > span->offset)
        at--;
    if (at > 0 && spans->list[at - 1].offset == span->offset)
        return true;
    if (spans->n == spans->cap) {
        size_t cap = spans->cap == 0 ? 16 : spans->cap * 2;
        struct history_span *list = rd_realloc(spans->list, cap * sizeof *list);
        if (list == NULL)
            return rd_err_nomem(err, cap * sizeof *list);
        spans->list = list;
        spans->cap = cap;
    }
    memmove(spans->list + at + 1, spans->list + at, (spans->n - at) * sizeof *spans->list);
    spans->list[at] = *span;
    spans->n++;
    return true;
}

static bool add_number(struct history_index_reader *r, uint64_t number, struct history_spans *spans,
                       struct rd_err *err)
{
    const struct index_section *section = &r->section;
    const uint8_t *bytes;
    struct history_span span, next;
    bool is_last = number + 1 >= section->spans;
    if (number >= section->spans)
        return rd_err_set(err, RD_ERR_CORRUPT, section->at, "an index of keys is damaged");
    if (!read_body(r, number * INDEX_SPAN, is_last ? INDEX_SPAN : 2 * INDEX_SPAN, &bytes, err))
        return false;
    history_index_span_get(bytes, &span);
    span.end = section->end;
    if (!is_last) {
        history_index_span_get(bytes + INDEX_SPAN, &next);
        span.end = next.offset;
    }
    return add_span(spans, &span, err);
}

/* ---- lookups ---- */

struct bits {
    const uint8_t *ptr;
    uint64_t at, end; /* in bits */
};

/* Bits after the end are ones, which no number has: the caller sees that it went too far. */
static unsigned get_bit(struct bits *bits)
{
    unsigned bit =
        bits->at >= bits->end ? 1U : (unsigned)bits->ptr[bits->at / 8] >> bits->at % 8 & 1;
    bits->at++;
    return bit;
}

static uint64_t get_bits(struct bits *bits, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)get_bit(bits) << i;
    return value;
}

static uint64_t get_number(struct bits *bits)
{
    enum { GROUP = 7, MAX = 35 };
    uint64_t value = 0, more = 1;
    for (unsigned shift = 0; more && shift < MAX; shift += GROUP) {
        uint64_t group = get_bits(bits, GROUP);
        more = get_bit(bits);
        value |= group << shift;
    }
    return value;
}

/* The numbers of the spans at a place of a bucket. */
static bool search_bucket(struct bits *bits, const struct index_shape *shape, uint64_t wanted,
                          struct rd_buf *ret)
{
    uint64_t place = 0, n = get_number(bits);
    for (uint64_t i = 0; i < n && bits->at < bits->end; i++) {
        uint64_t unary = 0;
        while (bits->at < bits->end && get_bit(bits) != 0)
            unary++;
        place += unary << shape->rest | get_bits(bits, shape->rest);
        uint16_t span = (uint16_t)get_bits(bits, shape->span_bits);
        if (place > wanted)
            return true;
        if (place == wanted && !rd_buf_add(ret, &span, sizeof span))
            return false;
    }
    return true;
}

/* The bounds of a bucket in the postings. */
static bool find_bucket(struct history_index_reader *r, uint64_t bucket, uint64_t *ret_from,
                        uint64_t *ret_end, struct rd_err *err)
{
    const uint8_t *bytes;
    uint64_t at = history_index_buckets_at(&r->section) + bucket * 4;
    if (!read_body(r, bucket == 0 ? at : at - 4, bucket == 0 ? 4 : 8, &bytes, err))
        return false;
    *ret_from = bucket == 0 ? 0 : rd_get_le32(bytes);
    *ret_end = rd_get_le32(bytes + (bucket == 0 ? 0 : 4));
    if (*ret_from <= *ret_end && *ret_end <= r->section.postings)
        return true;
    return rd_err_set(err, RD_ERR_CORRUPT, r->section.at, "an index of keys is damaged");
}

static bool find_in_section(struct history_index_reader *r, uint64_t hash,
                            struct history_spans *spans, struct rd_err *err)
{
    const struct index_shape *shape = &r->section.shape;
    uint64_t place = history_index_place(shape, hash), from, end;
    const uint8_t *bytes;
    struct rd_buf numbers = {0};
    if (r->section.pairs == 0)
        return true;
    if (!find_bucket(r, place >> shape->width, &from, &end, err) ||
        !read_body(r, history_index_postings_at(&r->section) + from, end - from, &bytes, err))
        return false;
    struct bits bits = {.ptr = bytes, .end = (end - from) * 8};
    uint64_t within = place & ((UINT64_C(1) << shape->width) - 1);
    bool ok = search_bucket(&bits, shape, within, &numbers) || rd_err_nomem(err, numbers.len);
    for (size_t i = 0; ok && i < numbers.len; i += sizeof(uint16_t)) {
        uint16_t number;
        memcpy(&number, numbers.ptr + i, sizeof number);
        ok = add_number(r, number, spans, err);
    }
    rd_buf_done(&numbers);
    return ok;
}

static bool next_section(struct history_index_reader *r, bool *ret_more, struct rd_err *err)
{
    *ret_more = !r->section.last;
    return r->section.last ||
           read_section(r, r->section.at + history_index_section_len(&r->section), err);
}

static bool first_section(struct history_index_reader *r, struct rd_err *err)
{
    return r->section.at == 0 || read_section(r, 0, err);
}

bool history_index_reader_find(struct history_index_reader *r, struct rd_slice name,
                               struct history_spans *spans, struct rd_err *err)
{
    uint64_t hash = history_index_hash(r->section.about.salt, name);
    bool more = true, ok = first_section(r, err);
    while (ok && more)
        ok = find_in_section(r, hash, spans, err) && next_section(r, &more, err);
    return ok;
}

static bool apart_in_section(struct history_index_reader *r, struct history_spans *spans,
                             struct rd_err *err)
{
    for (uint32_t i = 0; i < r->section.apart; i++) {
        const uint8_t *bytes;
        if (!read_body(r, history_index_apart_at(&r->section) + (uint64_t)i * 4, 4, &bytes, err) ||
            !add_number(r, rd_get_le32(bytes), spans, err))
            return false;
    }
    return true;
}

bool history_index_reader_apart(struct history_index_reader *r, struct history_spans *spans,
                                struct rd_err *err)
{
    bool more = true, ok = first_section(r, err);
    while (ok && more)
        ok = apart_in_section(r, spans, err) && next_section(r, &more, err);
    return ok;
}

bool history_index_reader_tail(struct history_index_reader *r, struct history_spans *spans,
                               struct rd_err *err)
{
    bool more = true, ok = true;
    while (ok && more)
        ok = next_section(r, &more, err);
    if (!ok || !add_number(r, (uint64_t)r->section.spans - 1, spans, err))
        return false;
    spans->list[spans->n - 1].end = RD_NO_OFFSET;
    return true;
}

bool history_index_reader_verify(struct history_index_reader *r, struct rd_err *err)
{
    bool more = true, ok = first_section(r, err);
    while (ok && more) {
        const uint8_t *bytes;
        uint64_t len = history_index_body_len(&r->section);
        for (uint64_t at = 0; ok && at < len; at += INDEX_CHUNK)
            ok = read_body(r, at, len - at < INDEX_CHUNK ? len - at : INDEX_CHUNK, &bytes, err);
        ok = ok && next_section(r, &more, err);
    }
    return ok;
}
