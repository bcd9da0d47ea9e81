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
    *ret = (struct chunks_places){.at = at, .n = (size_t)n_items, .n_table = (size_t)n_items};
    return true;
}

/* ---- changes of an order ---- */

struct stretches {
    struct chunks_stretch *at;
    size_t n, cap;
    uint32_t next; /* place in the file */
};

static bool add_stretch(struct stretches *to, uint32_t from, uint32_t n, struct rd_err *err)
{
    struct chunks_stretch *last = to->n > 0 ? &to->at[to->n - 1] : NULL;
    if (last != NULL && last->from + last->n == from) {
        last->n += n;
        to->next += n;
        return true;
    }
    if (to->n == to->cap) {
        size_t cap = to->cap == 0 ? 1024 : 2 * to->cap;
        struct chunks_stretch *at = rd_realloc(to->at, cap * sizeof *at);
        if (at == NULL)
            return rd_err_nomem(err, cap * sizeof *at);
        to->at = at;
        to->cap = cap;
    }
    to->at[to->n++] = (struct chunks_stretch){to->next, from, n};
    to->next += n;
    return true;
}

/* The stretch that has a place of the file. It is mostly that of *hint or one soon after it. */
static size_t find_stretch(const struct chunks_places *p, uint32_t place, size_t hint)
{
    size_t low = 0, high = p->n_stretches;
    if (p->stretches[hint].place <= place) {
        low = hint;
        high = hint + 4 < high ? hint + 4 : high;
        if (high < p->n_stretches && p->stretches[high].place <= place)
            high = p->n_stretches;
    }
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (p->stretches[mid].place <= place)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* n places of the earlier order from `from` on. */
static bool copy_stretches(const struct chunks_places *old, uint32_t from, uint64_t n, size_t *hint,
                           struct stretches *to, struct rd_err *err)
{
    if (n == 0)
        return true;
    for (size_t i = find_stretch(old, from, *hint); n > 0; i++) {
        const struct chunks_stretch *s = &old->stretches[i];
        uint32_t skip = from - s->place;
        uint32_t take = s->n - skip < n ? s->n - skip : (uint32_t)n;
        *hint = i;
        if (!add_stretch(to, s->from + skip, take, err))
            return false;
        from += take;
        n -= take;
    }
    return true;
}

/* fresh: the first new item in the table, in which there are n_fresh. */
static bool get_runs(struct chunks_in *in, const struct chunks_places *old, size_t n, size_t fresh,
                     size_t n_fresh, struct stretches *to, struct rd_err *err)
{
    size_t hint = 0;
    int64_t expected = 0;
    while (to->next < n) {
        int64_t jump = chunks_get_signed(in);
        uint64_t n_old = chunks_get(in), n_new = chunks_get(in), left = n - to->next;
        if (in->failed || jump > UINT32_MAX || jump < -(int64_t)UINT32_MAX || n_old > left ||
            n_new > left - n_old || n_old + n_new == 0 || n_new > n_fresh)
            return damaged(err);
        int64_t from = expected + jump;
        if (from < 0 || n_old > old->n || (uint64_t)from > old->n - n_old)
            return damaged(err);
        if (!copy_stretches(old, (uint32_t)from, n_old, &hint, to, err) ||
            (n_new > 0 && !add_stretch(to, (uint32_t)fresh, (uint32_t)n_new, err)))
            return false;
        expected = from + (int64_t)n_old;
        fresh += (size_t)n_new;
        n_fresh -= (size_t)n_new;
    }
    return in->at == in->end || damaged(err);
}

bool chunks_places_settle(struct chunks_places *p, struct rd_err *err)
{
    if (p->stretches == NULL)
        return true;
    struct chunks_place *at = rd_alloc((p->n + 1) * sizeof *at);
    if (at == NULL)
        return rd_err_nomem(err, (p->n + 1) * sizeof *at);
    for (size_t i = 0; i < p->n_stretches; i++)
        memcpy(&at[p->stretches[i].place], &p->at[p->stretches[i].from],
               p->stretches[i].n * sizeof *at);
    rd_free(p->at);
    rd_free(p->stretches);
    *p = (struct chunks_places){.at = at, .n = p->n, .n_table = p->n};
    return true;
}

/* The file as one stretch, and the new items at the end of the table. */
static bool add_table(struct chunks_places *p, const struct chunks_places *fresh,
                      struct rd_err *err)
{
    if ((p->n_stretches > p->n / 4 + 1024 || (uint64_t)p->n_table + fresh->n >= UINT32_MAX) &&
        !chunks_places_settle(p, err))
        return false;
    if ((uint64_t)p->n_table + fresh->n >= UINT32_MAX)
        return damaged(err);
    size_t n = p->n_table + fresh->n;
    if (n > p->cap) {
        size_t cap = n + n / 2;
        struct chunks_place *at = rd_realloc(p->at, cap * sizeof *at);
        if (at == NULL)
            return rd_err_nomem(err, cap * sizeof *at);
        p->at = at;
        p->cap = cap;
    }
    if (p->stretches == NULL) {
        struct stretches whole = {.n = 0};
        if (p->n > 0 && !add_stretch(&whole, 0, (uint32_t)p->n, err))
            return false;
        p->stretches = whole.at;
        p->n_stretches = whole.n;
    }
    if (fresh->n > 0)
        memcpy(&p->at[p->n_table], fresh->at, fresh->n * sizeof *fresh->at);
    p->n_table = n;
    return true;
}

static bool apply_runs(struct chunks_in *in, struct chunks_places *p,
                       const struct chunks_places *fresh, size_t n, struct rd_err *err)
{
    size_t before = 0;
    struct stretches to = {.n = 0};
    if (!add_table(p, fresh, err))
        return false;
    before = p->n_table - fresh->n;
    if (!get_runs(in, p, n, before, fresh->n, &to, err)) {
        rd_free(to.at);
        return false;
    }
    rd_free(p->stretches);
    p->stretches = to.at;
    p->n_stretches = to.n;
    p->n = n;
    return to.at != NULL || chunks_places_settle(p, err);
}

static bool apply_permutation(struct chunks_in *in, struct chunks_places *p,
                              const struct chunks_places *fresh, size_t n, struct rd_err *err)
{
    if (!chunks_places_settle(p, err))
        return false;
    struct chunks_places to = {.n = n, .n_table = n};
    to.at = rd_alloc((n + 1) * sizeof *to.at);
    bool ok =
        (to.at != NULL || rd_err_nomem(err, n)) && chunks_permute_decode(in, p, fresh, &to, err);
    if (!ok) {
        rd_free(to.at);
        return false;
    }
    chunks_places_done(p);
    *p = to;
    return true;
}

bool chunks_order_apply(struct rd_slice bytes, struct chunks_places *places, struct rd_err *err)
{
    struct chunks_in in = chunks_in_of(bytes);
    const uint8_t *flags = chunks_get_bytes(&in, 1);
    struct chunks_places table = {0}, none = {0};
    if (flags == NULL || *flags > (COMPLETE | PERMUTED))
        return damaged(err);
    if (!get_table(&in, &table, err))
        return false;
    bool complete = (*flags & COMPLETE) != 0;
    if (complete) {
        chunks_places_done(places);
        *places = table;
        table = none;
    }
    uint64_t n = chunks_get(&in);
    bool ok = (!in.failed && n <= (uint64_t)places->n + table.n) || damaged(err);
    ok = ok && ((*flags & PERMUTED) != 0 ? apply_permutation(&in, places, &table, (size_t)n, err)
                                         : apply_runs(&in, places, &table, (size_t)n, err));
    rd_free(table.at);
    return ok;
}

void chunks_places_done(struct chunks_places *places)
{
    rd_free(places->at);
    rd_free(places->stretches);
    *places = (struct chunks_places){.n = 0};
}
