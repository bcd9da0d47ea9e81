#include "data/parts.h"

#include "base/buf.h"
#include "base/num.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/base/system.h"

/* A part becomes its number, again and again, to - from times. */
struct made {
    struct parts *parts;
    struct rd_sink *out;
    struct rd_buf bytes;
    uint64_t fails_at; /* from of the part that fails in its middle */
    bool marks;        /* begin() writes, too */
    uint64_t n_begun;
    unsigned by[PARTS_WORKERS];
};

static void add_number(struct rd_sink *to, uint64_t number)
{
    char text[RD_NUM_I64_MAX + 1];
    size_t len = rd_num_put_u64(text, number);
    text[len++] = ' ';
    rd_sink_write(to, text, len);
}

static bool make(void *ctx, unsigned worker, const struct part *part, struct rd_err *err)
{
    struct made *made = ctx;
    struct rd_sink *to = parts_sink(made->parts, worker);
    made->by[worker]++;
    for (uint64_t i = part->from; i < part->to; i++) {
        if (part->from == made->fails_at && i == part->from + 3)
            return rd_err_set(err, RD_ERR_CORRUPT, part->from, "as it should");
        add_number(to, part->from);
    }
    return !to->failed;
}

static bool mark(void *ctx, const struct part *part, struct rd_err *err)
{
    struct made *made = ctx;
    (void)err, (void)part;
    made->n_begun++;
    return !made->marks || rd_sink_byte(made->out, '|');
}

static const struct parts_ops ops = {make, mark};

static void begin(struct made *made)
{
    struct rd_err err = {0};
    *made = (struct made){.fails_at = UINT64_MAX};
    system_processors = 2;
    cr_assert(rd_sink_open_buf(&made->out, &made->bytes, NULL, &err));
    cr_assert(parts_new(&made->parts, &ops, made, made->out, &err), "%s", err.text);
}

static void end(struct made *made)
{
    parts_free(made->parts);
    rd_sink_abort(made->out);
    rd_buf_done(&made->bytes);
}

/* The lengths of parts: small ones, empty ones, and some longer than all memory for them. */
static uint64_t length_of(unsigned i)
{
    if (i % 97 == 50)
        return PARTS_BIG + PARTS_BIG / 2; /* some 10 MB of output */
    return i % 13 == 0 ? 0 : (i * 7919) % 3000;
}

/* What must be there before the part that fails, and of it. */
static void expect(struct made *made, unsigned n_parts, uint64_t fails_at)
{
    struct rd_buf wanted = {0};
    struct rd_sink *to;
    struct rd_err err = {0};
    uint64_t at = 0;
    cr_assert(rd_sink_open_buf(&to, &wanted, NULL, &err));
    for (unsigned i = 0; i < n_parts; i++) {
        uint64_t n = length_of(i);
        bool fails = n > 0 && at == fails_at;
        if (n > 0 && made->marks)
            rd_sink_byte(to, '|');
        for (uint64_t k = 0; k < (fails ? 3 : n); k++)
            add_number(to, at);
        at += n;
        if (fails)
            break;
    }
    cr_assert(rd_sink_flush(to));
    cr_assert(rd_sink_flush(made->out));
    cr_assert_eq(made->bytes.len, wanted.len, "%zu of %zu bytes", made->bytes.len, wanted.len);
    cr_assert_eq(memcmp(made->bytes.ptr, wanted.ptr, wanted.len), 0);
    rd_sink_abort(to);
    rd_buf_done(&wanted);
}

static bool add_all(struct made *made, unsigned n_parts, struct rd_err *err)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < n_parts; i++) {
        const struct part part = {.from = at, .to = at + length_of(i)};
        at = part.to;
        if (!parts_add(made->parts, &part, err))
            return false;
    }
    return parts_end(made->parts, err);
}

Test(parts, what_is_made_is_written_in_order)
{
    struct made made;
    struct rd_err err = {0};
    begin(&made);
    made.marks = true;
    cr_assert(add_all(&made, 160, &err), "%s", err.text);
    expect(&made, 160, UINT64_MAX);
    cr_expect_gt(made.n_begun, 0);
    end(&made);
}

Test(parts, a_part_without_output_is_not_begun)
{
    struct made made;
    struct rd_err err = {0};
    begin(&made);
    for (uint64_t i = 0; i < 100; i++)
        cr_assert(parts_add(made.parts, &(struct part){.from = i, .to = i}, &err));
    cr_assert(parts_end(made.parts, &err));
    cr_expect_eq(made.n_begun, 0);
    cr_expect_eq(made.by[0] + made.by[1], 100);
    end(&made);
}

/* The first part fails while the second one waits, in the first thread, for its turn. */
struct waiting {
    struct made made;
    atomic_bool taken, begun;
};

static bool make_waiting(void *ctx, unsigned worker, const struct part *part, struct rd_err *err)
{
    struct waiting *w = ctx;
    struct rd_sink *to = parts_sink(w->made.parts, worker);
    if (part->from == 0) {
        atomic_store(&w->taken, true);
        while (!atomic_load(&w->begun))
            sched_yield();
        return rd_err_set(err, RD_ERR_CORRUPT, 0, "as it should");
    }
    atomic_store(&w->begun, true);
    for (uint64_t i = part->from; i < part->to && !to->failed; i++)
        add_number(to, i);
    return !to->failed;
}

Test(parts, a_failure_is_reported_while_the_first_thread_waits_for_its_turn)
{
    static const struct parts_ops waiting_ops = {make_waiting, NULL};
    struct waiting w = {.taken = false};
    struct rd_err err = {0};
    system_processors = 2;
    cr_assert(rd_sink_open_buf(&w.made.out, &w.made.bytes, NULL, &err));
    cr_assert(parts_new(&w.made.parts, &waiting_ops, &w, w.made.out, &err), "%s", err.text);
    cr_assert(parts_add(w.made.parts, &(struct part){.from = 0, .to = 1}, &err));
    while (!atomic_load(&w.taken))
        sched_yield();
    cr_assert(parts_add(w.made.parts, &(struct part){.from = 1, .to = 2 * PARTS_BIG}, &err));
    cr_assert_not(parts_end(w.made.parts, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    cr_expect_str_eq(err.text, "as it should");
    end(&w.made);
}

Test(parts, a_failure_is_reported_after_the_output_before_it)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < 80; i++, at += length_of(i - 1)) {
        struct made made;
        struct rd_err err = {0};
        if (i % 17 != 3 || length_of(i) < 4)
            continue;
        begin(&made);
        made.fails_at = at;
        cr_assert_not(add_all(&made, 80, &err));
        cr_expect_eq(err.code, RD_ERR_CORRUPT);
        cr_expect_eq(err.offset, at);
        expect(&made, 80, at);
        end(&made);
    }
}

Test(parts, more_may_follow_the_end)
{
    struct made made;
    struct rd_err err = {0};
    begin(&made);
    for (uint64_t i = 0; i < 10; i++) {
        cr_assert(parts_add(made.parts, &(struct part){.from = i, .to = i + 1}, &err));
        cr_assert(parts_end(made.parts, &err));
        cr_assert(rd_sink_byte(made.out, '\n'));
    }
    cr_assert(rd_sink_flush(made.out));
    cr_expect_eq(made.bytes.len, 30);
    end(&made);
}

static bool full(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    (void)impl, (void)ptr, (void)len;
    return rd_err_sys(err, 28, "cannot write");
}

static bool shut(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

Test(parts, output_that_cannot_be_written_ends_everything)
{
    static const struct rd_sink_ops never = {full, NULL, shut};
    struct made made;
    struct rd_err err = {0};
    begin(&made);
    parts_free(made.parts);
    rd_sink_abort(made.out);
    cr_assert(rd_sink_new(&made.out, &never, NULL, NULL, &err));
    cr_assert(parts_new(&made.parts, &ops, &made, made.out, &err));
    cr_expect_not(add_all(&made, 400, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    end(&made);
}

Test(parts, without_parts_there_is_nothing_to_free)
{
    parts_free(NULL);
}
