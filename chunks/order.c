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

/* The new items, one after another. They take no memory: a chunk may claim any number of them. */
struct fresh {
    struct chunks_table *table;
    size_t n_table, at; /* at: the chunk of the next item, */
    uint32_t item;      /* and its number there */
    uint64_t n;         /* items that are left */
};

static bool get_table(struct chunks_in *in, struct fresh *ret, struct rd_err *err)
{
    size_t n = chunks_get_count(in, 2);
    uint64_t ordinal = 0, n_items = 0;
    struct chunks_table *table = rd_calloc(n + 1, sizeof *table);
    if (table == NULL)
        return rd_err_nomem(err, n * sizeof *table);
    for (size_t i = 0; i < n; i++) {
        ordinal += chunks_get_max(in, UINT32_MAX);
        table[i].ordinal = (uint32_t)ordinal;
        table[i].n_items = (uint32_t)chunks_get_max(in, UINT32_MAX);
        n_items += table[i].n_items;
        in->failed = in->failed || ordinal >= CHUNKS_SETTLED || n_items >= UINT32_MAX;
    }
    *ret = (struct fresh){.table = table, .n_table = n, .n = n_items};
    return !in->failed || damaged(err);
}

/* ---- changes of an order ---- */

struct stretches {
    struct chunks_stretch *at;
    size_t n, cap;
    uint64_t most; /* that the bytes of the order account for, as no item comes twice */
    uint32_t next; /* place in the file */
};

static uint32_t end_of(const struct chunks_places *p, size_t i)
{
    return i + 1 < p->n_stretches ? p->stretches[i + 1].place : (uint32_t)p->n;
}

static bool add_stretch(struct stretches *to, struct chunks_place from, uint32_t n,
                        struct rd_err *err)
{
    const struct chunks_stretch *last = to->n > 0 ? &to->at[to->n - 1] : NULL;
    uint32_t place = to->next;
    to->next += n;
    if (n == 0 || (last != NULL && last->from.ordinal == from.ordinal &&
                   last->from.item + (place - last->place) == from.item))
        return true;
    if (to->n >= to->most)
        return damaged(err);
    if (to->n == to->cap) {
        size_t cap = to->cap == 0 ? 1024 : 2 * to->cap;
        struct chunks_stretch *at = rd_realloc(to->at, cap * sizeof *at);
        if (at == NULL)
            return rd_err_nomem(err, cap * sizeof *at);
        to->at = at;
        to->cap = cap;
    }
    to->at[to->n++] = (struct chunks_stretch){place, from};
    return true;
}

/* The next n of the new items, of which there are so many. */
static bool add_fresh(struct fresh *fresh, uint64_t n, struct stretches *to, struct rd_err *err)
{
    fresh->n -= n;
    while (n > 0) {
        const struct chunks_table *chunk = &fresh->table[fresh->at];
        uint32_t left = chunk->n_items - fresh->item, take = left < n ? left : (uint32_t)n;
        if (!add_stretch(to, (struct chunks_place){chunk->ordinal, fresh->item}, take, err))
            return false;
        n -= take;
        fresh->item += take;
        if (take == left) {
            fresh->at++;
            fresh->item = 0;
        }
    }
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
        struct chunks_place at = old->stretches[i].from;
        uint32_t left = end_of(old, i) - from, take = left < n ? left : (uint32_t)n;
        at.item += from - old->stretches[i].place;
        *hint = i;
        if (!add_stretch(to, at, take, err))
            return false;
        from += take;
        n -= take;
    }
    return true;
}

static bool get_runs(struct chunks_in *in, const struct chunks_places *old, size_t n,
                     struct fresh *fresh, struct stretches *to, struct rd_err *err)
{
    size_t hint = 0;
    int64_t expected = 0;
    to->most = (uint64_t)old->n_stretches + fresh->n_table;
    while (to->next < n) {
        int64_t jump = chunks_get_signed(in);
        uint64_t n_old = chunks_get(in), n_new = chunks_get(in), left = n - to->next;
        if (in->failed || jump > UINT32_MAX || jump < -(int64_t)UINT32_MAX || n_old > left ||
            n_new > left - n_old || n_old + n_new == 0 || n_new > fresh->n)
            return damaged(err);
        int64_t from = expected + jump;
        if (from < 0 || n_old > old->n || (uint64_t)from > old->n - n_old)
            return damaged(err);
        to->most += 2; /* a run cuts a stretch and a chunk of the table at most once */
        if (!copy_stretches(old, (uint32_t)from, n_old, &hint, to, err) ||
            !add_fresh(fresh, n_new, to, err))
            return false;
        expected = from + (int64_t)n_old;
    }
    return in->at == in->end || damaged(err);
}

bool chunks_places_settle(struct chunks_places *p, struct rd_err *err)
{
    if (p->at != NULL && p->stretches == NULL)
        return true;
    struct chunks_place *at = rd_alloc((p->n + 1) * sizeof *at);
    if (at == NULL)
        return rd_err_nomem(err, (p->n + 1) * sizeof *at);
    for (size_t i = 0, k = 0; i < p->n_stretches; i++) {
        const struct chunks_place from = p->stretches[i].from;
        for (uint32_t item = from.item; k < end_of(p, i); item++)
            at[k++] = from.ordinal == CHUNKS_SETTLED ? p->at[item]
                                                     : (struct chunks_place){from.ordinal, item};
    }
    size_t n = p->n;
    chunks_places_done(p);
    *p = (struct chunks_places){.at = at, .n = n};
    return true;
}

/* Replaces the stretches, of which n are places of the file. */
static void set_stretches(struct chunks_places *p, const struct stretches *to)
{
    rd_free(p->stretches);
    p->stretches = to->at;
    p->n_stretches = to->n;
    p->n = to->next;
}

/* A complete order begins with all items of the table. */
static bool begin_complete(struct chunks_places *p, struct fresh *fresh, struct rd_err *err)
{
    struct stretches to = {.most = fresh->n_table};
    chunks_places_done(p);
    bool ok = add_fresh(fresh, fresh->n, &to, err);
    set_stretches(p, &to);
    fresh->n_table = 0;
    return ok;
}

static bool apply_runs(struct chunks_in *in, struct chunks_places *p, struct fresh *fresh, size_t n,
                       struct rd_err *err)
{
    struct stretches whole = {.most = 1}, to = {.n = 0};
    if (p->n_stretches > p->n / 4 + 1024 && !chunks_places_settle(p, err))
        return false;
    if (p->stretches == NULL && p->n > 0) {
        if (!add_stretch(&whole, (struct chunks_place){CHUNKS_SETTLED, 0}, (uint32_t)p->n, err))
            return false;
        set_stretches(p, &whole);
    }
    if (!get_runs(in, p, n, fresh, &to, err)) {
        rd_free(to.at);
        return false;
    }
    set_stretches(p, &to);
    return true;
}

/* Each item takes a bit, but for one of the last group: so many can be made of the bytes. */
static bool apply_permutation(struct chunks_in *in, struct chunks_places *p,
                              const struct fresh *fresh, size_t n, struct rd_err *err)
{
    uint64_t most = 8 * (uint64_t)chunks_left(in) + 1;
    if (n > most || p->n > most)
        return damaged(err);
    if (!chunks_places_settle(p, err))
        return false;
    struct chunks_places to = {.n = n};
    to.at = rd_alloc((n + 1) * sizeof *to.at);
    bool ok = (to.at != NULL || rd_err_nomem(err, n)) &&
              chunks_permute_decode(in, p, fresh->table, fresh->n, &to, err);
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
    struct fresh fresh = {.n = 0};
    if (flags == NULL || *flags > (COMPLETE | PERMUTED))
        return damaged(err);
    bool ok = get_table(&in, &fresh, err) &&
              ((*flags & COMPLETE) == 0 || begin_complete(places, &fresh, err));
    uint64_t n = chunks_get(&in);
    ok = ok && ((!in.failed && n <= places->n + fresh.n && n < UINT32_MAX) || damaged(err)) &&
         ((*flags & PERMUTED) != 0 ? apply_permutation(&in, places, &fresh, (size_t)n, err)
                                   : apply_runs(&in, places, &fresh, (size_t)n, err));
    rd_free(fresh.table);
    return ok;
}

void chunks_places_done(struct chunks_places *places)
{
    rd_free(places->at);
    rd_free(places->stretches);
    *places = (struct chunks_places){.n = 0};
}
