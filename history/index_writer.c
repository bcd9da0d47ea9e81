/* A section is collected in memory, as numbers that hold the hash of a key and the number of a
 * span, and is sorted and packed when it is complete. */
#include "history/index_writer.h"

#include "base/buf.h"
#include "base/endian.h"
#include "base/mem.h"
#include "history/index_format.h"

enum {
    SPAN_BITS = 16, /* of a pair: the rest is the hash */
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS,
    SUM = 8,
    RECENT = 256
};

struct history_index_writer {
    struct history_index_about about;
    struct rd_sink *sink;
    uint64_t at; /* written to the sink */
    uint64_t start;
    bool apart; /* of the last span */
    uint64_t *pairs, *other;
    size_t n, cap;
    struct history_span *spans;
    size_t n_spans;
    uint64_t recent[RECENT]; /* pairs that were added, by hash */
};

/* In the flags of a span, until the section is written. */
#define APART (UINT32_C(1) << 31)

static void forget_recent(struct history_index_writer *w)
{
    memset(w->recent, 0xff, sizeof w->recent);
}

bool history_index_writer_new(struct history_index_writer **ret,
                              const struct history_index_about *about, struct rd_sink *sink,
                              struct rd_err *err)
{
    struct history_index_writer *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->about = *about;
    w->sink = sink;
    forget_recent(w);
    w->spans = rd_alloc(INDEX_SPANS_MAX * sizeof *w->spans);
    *ret = w;
    if (w->spans != NULL)
        return true;
    history_index_writer_free(w);
    *ret = NULL;
    return rd_err_nomem(err, INDEX_SPANS_MAX * sizeof *w->spans);
}

void history_index_writer_free(struct history_index_writer *w)
{
    if (w == NULL)
        return;
    rd_free(w->pairs);
    rd_free(w->other);
    rd_free(w->spans);
    rd_free(w);
}

/* ---- packing ---- */

static void sort_pairs(struct history_index_writer *w)
{
    static const unsigned shifts[] = {0, 11, 22, 33, 44, 55};
    size_t counts[RADIX];
    for (size_t pass = 0; pass < sizeof shifts / sizeof *shifts; pass++) {
        unsigned shift = shifts[pass];
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; i < w->n; i++)
            counts[w->pairs[i] >> shift & (RADIX - 1)]++;
        size_t sum = 0;
        for (size_t i = 0; i < RADIX; i++) {
            size_t count = counts[i];
            counts[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < w->n; i++)
            w->other[counts[w->pairs[i] >> shift & (RADIX - 1)]++] = w->pairs[i];
        uint64_t *sorted = w->other;
        w->other = w->pairs;
        w->pairs = sorted;
    }
}

static void drop_repeated(struct history_index_writer *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (n == 0 || w->pairs[i] != w->pairs[n - 1])
            w->pairs[n++] = w->pairs[i];
    w->n = n;
}

/* Two neighbouring spans become one. */
static void halve_spans(struct history_index_writer *w)
{
    for (size_t i = 0; i < w->n_spans; i += 2) {
        w->spans[i / 2] = w->spans[i];
        if (i + 1 < w->n_spans)
            w->spans[i / 2].flags |= w->spans[i + 1].flags & APART;
    }
    w->n_spans = (w->n_spans + 1) / 2;
    for (size_t i = 0; i < w->n; i++) {
        uint64_t span = (w->pairs[i] & (INDEX_SPANS_MAX - 1)) / 2;
        w->pairs[i] = (w->pairs[i] >> SPAN_BITS << SPAN_BITS) | span;
    }
    drop_repeated(w); /* the order is the same */
}

static unsigned bits_of(size_t n)
{
    unsigned bits = 0;
    while (bits < SPAN_BITS && (size_t)1 << bits < n)
        bits++;
    return bits;
}

/* Bits that a pair may have, in hundredths. What does not belong to a pair is small. */
static int64_t room(const struct history_index_writer *w, uint64_t end)
{
    enum { BYTE = 8, HUNDRED = 100 };
    int64_t bytes = (int64_t)((end - w->start) / 1000 * HISTORY_INDEX_PERMILLE);
    bytes -= (int64_t)w->n_spans * (INDEX_SPAN + 4);
    return w->n == 0 ? 0 : bytes * BYTE * HUNDRED / (int64_t)w->n;
}

/* The unary part of a distance has 1.5 bits, the end of a bucket 32 bits, the number of pairs in it
 * up to 16, checksums one in 128. */
static bool choose_shape(const struct history_index_writer *w, uint64_t end,
                         struct index_shape *ret)
{
    enum { FIXED = 230, HUNDRED = 100, BUCKET_BITS = 7 };
    size_t buckets = w->n / INDEX_PER_BUCKET;
    *ret = (struct index_shape){.buckets = buckets == 0 ? 1 : (uint32_t)buckets,
                                .span_bits = bits_of(w->n_spans)};
    int64_t rest = (room(w, end) * 127 / 128 - FIXED) / HUNDRED - (int64_t)ret->span_bits;
    bool fits = rest >= 0;
    ret->rest = !fits ? 0 : rest > INDEX_REST_MAX ? INDEX_REST_MAX : (unsigned)rest;
    ret->width = ret->rest + BUCKET_BITS;
    return fits || w->n_spans <= 1;
}

struct bits {
    struct rd_buf *buf;
    uint64_t word;
    unsigned n;
};

static bool put_bits(struct bits *bits, uint64_t value, unsigned n)
{
    bits->word |= value << bits->n;
    bits->n += n;
    while (bits->n >= 8) {
        if (!rd_buf_add_byte(bits->buf, (uint8_t)bits->word))
            return false;
        bits->word >>= 8;
        bits->n -= 8;
    }
    return true;
}

/* A number in groups of seven bits, the lowest first; the eighth says that more follow. */
static bool put_number(struct rd_buf *buf, uint64_t value)
{
    while (value >= 0x80) {
        if (!rd_buf_add_byte(buf, (uint8_t)(value | 0x80)))
            return false;
        value >>= 7;
    }
    return rd_buf_add_byte(buf, (uint8_t)value);
}

/* For each pair: the distance from the place of the one before, its upper bits unary and its lower
 * ones as they are, and the number of the span. */
static bool put_bucket(const struct history_index_writer *w, const struct index_shape *shape,
                       size_t first, size_t end, struct rd_buf *out)
{
    struct bits bits = {.buf = out};
    uint64_t place = 0, within = (UINT64_C(1) << shape->width) - 1;
    bool ok = put_number(out, end - first);
    for (size_t i = first; ok && i < end; i++) {
        uint64_t next = history_index_place(shape, w->pairs[i] >> SPAN_BITS) & within;
        uint64_t distance = next - place;
        for (uint64_t unary = distance >> shape->rest; ok && unary > 0; unary--)
            ok = put_bits(&bits, 1, 1);
        ok = ok && put_bits(&bits, 0, 1) &&
             put_bits(&bits, distance & ((UINT64_C(1) << shape->rest) - 1), shape->rest) &&
             put_bits(&bits, w->pairs[i] & (INDEX_SPANS_MAX - 1), shape->span_bits);
        place = next;
    }
    return ok && (bits.n == 0 || put_bits(&bits, 0, 8 - bits.n));
}

static bool put_buckets(const struct history_index_writer *w, const struct index_shape *shape,
                        struct rd_buf *ends, struct rd_buf *postings)
{
    size_t i = 0;
    for (uint32_t bucket = 0; bucket < shape->buckets; bucket++) {
        uint8_t end[4];
        size_t first = i;
        while (i < w->n &&
               history_index_place(shape, w->pairs[i] >> SPAN_BITS) >> shape->width == bucket)
            i++;
        if (!put_bucket(w, shape, first, i, postings))
            return false;
        rd_put_le32(end, (uint32_t)postings->len);
        if (!rd_buf_add(ends, end, sizeof end))
            return false;
    }
    return true;
}

static bool put_spans(const struct history_index_writer *w, struct rd_buf *body,
                      uint32_t *ret_apart)
{
    *ret_apart = 0;
    for (size_t i = 0; i < w->n_spans; i++) {
        uint8_t bytes[INDEX_SPAN];
        struct history_span span = w->spans[i];
        span.flags &= ~APART;
        history_index_span_put(bytes, &span);
        if (!rd_buf_add(body, bytes, sizeof bytes))
            return false;
    }
    for (size_t i = 0; i < w->n_spans; i++) {
        uint8_t number[4];
        if ((w->spans[i].flags & APART) == 0)
            continue;
        ++*ret_apart;
        rd_put_le32(number, (uint32_t)i);
        if (!rd_buf_add(body, number, sizeof number))
            return false;
    }
    return true;
}

static bool put_sums(const struct index_section *section, struct rd_buf *body)
{
    size_t len = body->len;
    for (size_t at = 0, chunk = 0; at < len; at += INDEX_CHUNK, chunk++) {
        uint8_t sum[SUM];
        size_t n = len - at < INDEX_CHUNK ? len - at : INDEX_CHUNK;
        rd_put_le64(sum, history_index_chunk_sum(section, chunk, body->ptr + at, n));
        if (!rd_buf_add(body, sum, sizeof sum))
            return false;
    }
    return true;
}

static bool make_body(struct history_index_writer *w, struct index_section *section,
                      struct rd_buf *body, uint8_t header[INDEX_HEADER])
{
    struct rd_buf postings = {0};
    bool ok = put_spans(w, body, &section->apart) &&
              put_buckets(w, &section->shape, body, &postings) &&
              rd_buf_add(body, postings.ptr, postings.len);
    section->spans = (uint32_t)w->n_spans;
    section->postings = (uint32_t)postings.len;
    rd_buf_done(&postings);
    history_index_header_put(header, section);
    return ok && put_sums(section, body);
}

static bool write_section(struct history_index_writer *w, uint64_t end, bool last,
                          struct rd_err *err)
{
    struct index_section section = {
        .about = w->about, .at = w->at, .start = w->start, .end = end, .last = last};
    struct rd_buf body = {0};
    uint8_t header[INDEX_HEADER];
    if (w->n > 0) {
        sort_pairs(w);
        drop_repeated(w);
    }
    while (!choose_shape(w, end, &section.shape))
        halve_spans(w);
    section.pairs = w->n;
    bool ok = make_body(w, &section, &body, header) || rd_err_nomem(err, body.len);
    if (ok) { /* what fails, fails again when the sink is closed */
        rd_sink_write(w->sink, header, sizeof header);
        rd_sink_write(w->sink, body.ptr, body.len);
    }
    w->at += sizeof header + body.len;
    rd_buf_done(&body);
    w->n = w->n_spans = 0;
    w->start = end;
    forget_recent(w);
    return ok;
}

/* ---- collecting ---- */

bool history_index_writer_span(struct history_index_writer *w, const struct history_span *span,
                               struct rd_err *err)
{
    enum { ENOUGH = INDEX_PAIRS_MAX / 4 * 3 };
    if ((w->n_spans == INDEX_SPANS_MAX || w->n >= ENOUGH) &&
        !write_section(w, span->offset, false, err))
        return false;
    if (w->n_spans == 0 && w->at == 0)
        w->start = span->offset;
    w->spans[w->n_spans++] = *span;
    return true;
}

static bool grow(struct history_index_writer *w, struct rd_err *err)
{
    enum { FIRST = 4096 };
    size_t cap = w->cap == 0 ? FIRST : w->cap * 2;
    uint64_t *pairs = rd_realloc(w->pairs, cap * sizeof *pairs);
    if (pairs == NULL)
        return rd_err_nomem(err, cap * sizeof *pairs);
    w->pairs = pairs;
    rd_free(w->other);
    w->cap = 0;
    w->other = rd_alloc(cap * sizeof *w->other);
    if (w->other == NULL)
        return rd_err_nomem(err, cap * sizeof *w->other);
    w->cap = cap;
    return true;
}

/* A span with more pairs than a section can have is one for all keys. */
bool history_index_writer_key(struct history_index_writer *w, struct rd_slice name,
                              struct rd_err *err)
{
    uint64_t hash = history_index_hash(w->about.salt, name);
    uint64_t pair = hash << SPAN_BITS | (w->n_spans - 1);
    if (w->recent[hash % RECENT] == pair)
        return true;
    w->recent[hash % RECENT] = pair;
    if (w->n == INDEX_PAIRS_MAX) {
        history_index_writer_apart(w);
        return true;
    }
    if (w->n == w->cap && !grow(w, err))
        return false;
    w->pairs[w->n++] = pair;
    return true;
}

void history_index_writer_apart(struct history_index_writer *w)
{
    w->spans[w->n_spans - 1].flags |= APART;
}

void history_index_writer_digest(struct history_index_writer *w,
                                 const uint8_t digest[HISTORY_DIGEST])
{
    memcpy(w->about.digest, digest, sizeof w->about.digest);
}

bool history_index_writer_end(struct history_index_writer *w, uint64_t end, struct rd_err *err)
{
    return write_section(w, end, true, err);
}
