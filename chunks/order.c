#include "chunks/order_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"
#include "chunks/permute_impl.h"

enum { COMPLETE = 1, PERMUTED = 2 };

/* ---- writing ---- */

static bool put_head(struct rd_buf *out, unsigned flags, const struct chunks_table *table,
                     size_t n_table, uint64_t n)
{
    uint32_t before = 0;
    bool ok = rd_buf_add_byte(out, (uint8_t)flags) && chunks_put(out, n_table);
    for (size_t i = 0; ok && i < n_table; i++) {
        ok = chunks_put(out, table[i].ordinal - before) && chunks_put(out, table[i].n_items);
        before = table[i].ordinal;
    }
    return ok && chunks_put(out, n);
}

struct run {
    int64_t jump; /* from the item that would follow */
    uint64_t n, n_new;
};

static bool put_run(struct rd_buf *out, struct run *run)
{
    bool ok =
        chunks_put_signed(out, run->jump) && chunks_put(out, run->n) && chunks_put(out, run->n_new);
    *run = (struct run){.jump = 0};
    return ok;
}

/* *ret_many: there are so many runs that a permutation is shorter. */
static bool put_runs(const struct chunks_sequence *seq, struct rd_buf *out, bool *ret_many,
                     struct rd_err *err)
{
    struct run run = {.jump = 0};
    uint64_t expected = 0, n_runs = 0;
    uint32_t p;
    for (uint64_t i = 0; i < seq->n; i++) {
        if (!seq->next(seq->ctx, &p, err))
            return false;
        if (p == CHUNKS_NEW) {
            run.n_new++;
            continue;
        }
        if ((p != expected || run.n_new > 0) && run.n + run.n_new > 0) {
            if (!put_run(out, &run))
                return rd_err_nomem(err, out->len);
            n_runs++;
        }
        if (run.n == 0)
            run.jump = (int64_t)p - (int64_t)expected;
        run.n++;
        expected = (uint64_t)p + 1;
        *ret_many = n_runs > 1000 && n_runs > i - i / 4;
        if (*ret_many)
            return true;
    }
    return run.n + run.n_new == 0 || put_run(out, &run) || rd_err_nomem(err, out->len);
}

bool chunks_order_encode(const struct chunks_sequence *seq, const struct chunks_table *table,
                         size_t n_table, bool complete, struct rd_buf *ret, struct rd_err *err)
{
    size_t before = ret->len;
    unsigned flags = complete ? COMPLETE : 0;
    bool many = false;
    if (!put_head(ret, flags, table, n_table, seq->n))
        return rd_err_nomem(err, ret->len);
    if (!seq->rewind(seq->ctx, err) || !put_runs(seq, ret, &many, err))
        return false;
    if (!many)
        return true;
    ret->len = before;
    return (put_head(ret, flags | PERMUTED, table, n_table, seq->n) ||
            rd_err_nomem(err, ret->len)) &&
           chunks_permute_encode(seq, ret, err);
}

/* ---- reading ---- */

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order of the file is damaged");
}

/* The items of the table, one after another. */
static bool get_table(struct chunks_in *in, struct chunks_places *ret, struct rd_err *err)
{
    struct chunks_in first = *in;
    uint64_t n_items = 0, ordinal = 0;
    size_t n = chunks_get_count(&first, 2);
    struct chunks_in second = first;
    for (size_t i = 0; i < n; i++) {
        chunks_get(&first);
        n_items += chunks_get_max(&first, UINT32_MAX);
    }
    if (first.failed || n_items >= UINT32_MAX)
        return damaged(err);
    struct chunks_place *at = rd_calloc(n_items + 1, sizeof *at);
    if (at == NULL)
        return rd_err_nomem(err, (size_t)n_items * sizeof *at);
    uint64_t k = 0;
    for (size_t i = 0; i < n; i++) {
        ordinal += chunks_get(&second);
        uint64_t count = chunks_get(&second);
        for (uint32_t j = 0; j < count; j++)
            at[k++] = (struct chunks_place){(uint32_t)ordinal, j};
    }
    *in = second;
    *ret = (struct chunks_places){at, (size_t)n_items};
    return true;
}

static bool get_runs(struct chunks_in *in, const struct chunks_places *old,
                     const struct chunks_places *fresh, struct chunks_places *to,
                     struct rd_err *err)
{
    size_t k = 0, next_new = 0;
    int64_t expected = 0;
    while (k < to->n) {
        int64_t from = 0;
        int64_t jump = chunks_get_signed(in);
        uint64_t n = chunks_get(in), n_new = chunks_get(in);
        if (in->failed || jump > UINT32_MAX || jump < -(int64_t)UINT32_MAX || n + n_new == 0)
            return damaged(err);
        from = expected + jump;
        if (from < 0 || n > old->n || (uint64_t)from > old->n - n || n > to->n - k)
            return damaged(err);
        if (n > 0)
            memcpy(&to->at[k], &old->at[from], (size_t)n * sizeof *to->at);
        k += (size_t)n;
        expected = from + (int64_t)n;
        if (n_new > fresh->n - next_new || n_new > to->n - k)
            return damaged(err);
        if (n_new > 0)
            memcpy(&to->at[k], &fresh->at[next_new], (size_t)n_new * sizeof *to->at);
        k += (size_t)n_new;
        next_new += (size_t)n_new;
    }
    return in->at == in->end || damaged(err);
}

bool chunks_order_apply(struct rd_slice bytes, struct chunks_places *places, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(bytes);
    const uint8_t *flags = chunks_get_bytes(&in, 1);
    struct chunks_places table = {0}, to = {0};
    if (flags == NULL || *flags > (COMPLETE | PERMUTED))
        return damaged(err);
    if (!get_table(&in, &table, err))
        return false;
    const struct chunks_places none = {0};
    const struct chunks_places *old = (*flags & COMPLETE) != 0 ? &table : places;
    const struct chunks_places *fresh = (*flags & COMPLETE) != 0 ? &none : &table;
    uint64_t n = chunks_get(&in);
    bool ok = (!in.failed && n <= (uint64_t)old->n + fresh->n) || damaged(err);
    to.n = ok ? (size_t)n : 0;
    to.at = ok ? rd_calloc(to.n + 1, sizeof *to.at) : NULL;
    ok = ok && (to.at != NULL || rd_err_nomem(err, to.n));
    ok = ok && ((*flags & PERMUTED) != 0 ? chunks_permute_decode(&in, old, fresh, &to, err)
                                         : get_runs(&in, old, fresh, &to, err));
    rd_free(table.at);
    if (!ok) {
        rd_free(to.at);
        return false;
    }
    rd_free(places->at);
    *places = to;
    return true;
}
