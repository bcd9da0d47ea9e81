/* Indexes of keys: what they find, their size, and damage. */
#include <criterion/criterion.h>

#include "base/buf.h"
#include "history/index_reader.h"
#include "history/index_writer.h"
#include "tests/support/sim_fs.h"

#include <stdio.h>

static const struct history_index_about about = {
    .kind = HISTORY_SEGMENT, .size = 4711, .digest = {1, 2, 3}, .salt = {9, 8, 7, 6}};

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct model {
    unsigned spans, keys, per_span;
    uint64_t span_len;
    bool *in; /* span * keys + key */
};

static struct rd_slice name_of(unsigned key, char text[24])
{
    return rd_slice(text, (size_t)snprintf(text, 24, "key:%u", key));
}

static void fill(struct model *m, uint64_t seed, struct rd_buf *ret)
{
    struct history_index_writer *w;
    struct rd_sink *sink;
    struct rd_err err = {0};
    char text[24];
    m->in = calloc((size_t)m->spans * m->keys, sizeof *m->in);
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, &err));
    cr_assert(history_index_writer_new(&w, &about, sink, &err));
    for (unsigned i = 0; i < m->spans; i++) {
        const struct history_span span = {
            .offset = 1000 + i * m->span_len, .time_us = i, .db = i % 3, .flags = i & 1};
        cr_assert(history_index_writer_span(w, &span, &err));
        for (unsigned j = 0; j < m->per_span; j++) {
            unsigned key = (unsigned)(draw(&seed) % m->keys);
            m->in[(size_t)i * m->keys + key] = true;
            cr_assert(history_index_writer_key(w, name_of(key, text), &err));
        }
        if (i % 7 == 3)
            history_index_writer_apart(w);
    }
    cr_assert(history_index_writer_end(w, 1000 + m->spans * m->span_len, &err));
    history_index_writer_free(w);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
}

static bool covers(const struct history_spans *spans, uint64_t offset)
{
    for (size_t i = 0; i < spans->n; i++)
        if (spans->list[i].offset <= offset && offset < spans->list[i].end)
            return true;
    return false;
}

static void assert_ordered(const struct history_spans *spans)
{
    for (size_t i = 0; i < spans->n; i++) {
        cr_assert_lt(spans->list[i].offset, spans->list[i].end);
        cr_assert(i == 0 || spans->list[i - 1].end <= spans->list[i].offset);
    }
}

/* The share of the data that is read for nothing, on average, in millionths. */
static uint64_t check(const struct model *m, const struct rd_fs *fs, const char *name)
{
    struct history_index_reader *r;
    struct rd_err err = {0};
    char text[24];
    uint64_t extra = 0;
    cr_assert(history_index_reader_open(&r, fs, name, &err), "%s", err.text);
    cr_assert(history_index_is_of(history_index_reader_about(r), &about));
    cr_assert(history_index_reader_verify(r, &err), "%s", err.text);
    for (unsigned key = 0; key < m->keys; key++) {
        struct history_spans found = {0};
        cr_assert(history_index_reader_find(r, name_of(key, text), &found, &err), "%s", err.text);
        assert_ordered(&found);
        for (unsigned i = 0; i < m->spans; i++) {
            bool is_covered = covers(&found, 1000 + i * m->span_len);
            bool is_in = m->in[(size_t)i * m->keys + key];
            cr_assert(is_covered || !is_in, "key %u in span %u", key, i);
            extra += is_covered && !is_in;
        }
        history_spans_done(&found);
    }
    struct history_spans apart = {0};
    cr_assert(history_index_reader_apart(r, &apart, &err));
    for (unsigned i = 0; i < m->spans; i++)
        if (i % 7 == 3)
            cr_assert(covers(&apart, 1000 + i * m->span_len));
    history_spans_done(&apart);
    history_index_reader_close(r);
    return extra * 1000000 / m->keys / m->spans;
}

static const struct size_case {
    const char *what;
    unsigned spans, keys, per_span;
    uint64_t span_len;
    uint64_t extra; /* at most, in millionths */
} sizes[] = {
    {"one key", 1, 1, 1, 100000, 0},
    {"few keys, many spans", 500, 10, 3, 65536, 1000},
    {"commands of 200 bytes", 200, 3000, 330, 65536, 200},
    {"commands of 60 bytes", 200, 3000, 1100, 65536, 3000},
    {"commands of 30 bytes", 200, 3000, 2200, 65536, 500000},
    {"many tiny spans", 3000, 50, 2, 90, 900000},
};

Test(index, finds_every_key)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct size_case *c = &sizes[i];
        struct model m = {c->spans, c->keys, c->per_span, c->span_len, NULL};
        struct rd_buf bytes = {0};
        struct sim_fs *sim = sim_fs_new();
        struct rd_fs fs = sim_fs_calls(sim);
        fill(&m, 77 + i, &bytes);
        sim_fs_put(sim, "keys", rd_buf_slice(&bytes));
        uint64_t extra = check(&m, &fs, "keys");
        cr_assert_leq(extra, c->extra, "%s: %u", c->what, (unsigned)extra);
        enum { HEADER_AND_A_SPAN = 400 };
        cr_assert_leq(bytes.len,
                      c->spans * c->span_len * HISTORY_INDEX_PERMILLE / 1000 + HEADER_AND_A_SPAN,
                      "%s: %zu bytes", c->what, bytes.len);
        free(m.in);
        rd_buf_done(&bytes);
        sim_fs_free(sim);
    }
}

/* More pairs than a section has. */
Test(index, sections)
{
    struct model m = {1300, 4000, 4000, 500000, NULL};
    struct rd_buf bytes = {0};
    struct sim_fs *sim = sim_fs_new();
    struct rd_fs fs = sim_fs_calls(sim);
    fill(&m, 5, &bytes);
    sim_fs_put(sim, "keys", rd_buf_slice(&bytes));
    check(&m, &fs, "keys");
    free(m.in);
    rd_buf_done(&bytes);
    sim_fs_free(sim);
}

static bool look(const struct rd_fs *fs, struct rd_err *err)
{
    struct history_index_reader *r;
    char text[24];
    if (!history_index_reader_open(&r, fs, "keys", err))
        return false;
    bool ok = history_index_reader_verify(r, err);
    for (unsigned key = 0; key < 20; key++) {
        struct history_spans found = {0};
        struct rd_err lookup = {0};
        cr_assert(history_index_reader_find(r, name_of(key, text), &found, &lookup) || !ok);
        assert_ordered(&found);
        history_spans_done(&found);
    }
    history_index_reader_close(r);
    return ok;
}

/* Every byte flipped, and every length. */
Test(index, damage_is_found)
{
    struct model m = {20, 20, 10, 5000, NULL};
    struct rd_buf bytes = {0};
    struct rd_err err = {0};
    fill(&m, 3, &bytes);
    for (size_t i = 0; i < 2 * bytes.len; i++) {
        struct sim_fs *sim = sim_fs_new();
        struct rd_fs fs = sim_fs_calls(sim);
        bool is_cut = i >= bytes.len;
        rd_err_reset(&err);
        if (!is_cut)
            bytes.ptr[i] ^= (uint8_t)(1U << i % 8);
        sim_fs_put(sim, "keys", rd_slice(bytes.ptr, is_cut ? i - bytes.len : bytes.len));
        cr_assert(!look(&fs, &err), "byte %zu", i);
        cr_assert(err.code == RD_ERR_CHECKSUM || err.code == RD_ERR_CORRUPT ||
                      err.code == RD_ERR_TRUNCATED || err.code == RD_ERR_UNSUPPORTED,
                  "byte %zu: %s", i, err.text);
        if (!is_cut)
            bytes.ptr[i] ^= (uint8_t)(1U << i % 8);
        sim_fs_free(sim);
    }
    free(m.in);
    rd_buf_done(&bytes);
}
