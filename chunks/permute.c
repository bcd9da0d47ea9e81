#include "chunks/permute_impl.h"

#include "base/mem.h"

enum { GROUP_MIN = 8, GROUP_MAX = 20 };

static uint64_t factorial(unsigned n)
{
    uint64_t product = 1;
    for (unsigned i = 2; i <= n; i++)
        product *= i;
    return product;
}

/* Bits for numbers below n. */
static unsigned bits_for(uint64_t n)
{
    unsigned bits = 0;
    while (bits < 63 && ((uint64_t)1 << bits) < n)
        bits++;
    return bits;
}

static uint64_t groups_of(uint64_t n, unsigned size)
{
    return (n + size - 1) / size;
}

static unsigned choose_size(uint64_t n)
{
    unsigned best = GROUP_MAX;
    double least = 1e9;
    for (unsigned size = GROUP_MIN; size <= GROUP_MAX; size++) {
        double cost = bits_for(groups_of(n, size)) + bits_for(factorial(size)) / (double)size;
        if (cost < least) {
            least = cost;
            best = size;
        }
    }
    return best;
}

/* ---- bits ---- */

struct bits_out {
    struct rd_buf *out;
    uint64_t word;
    unsigned n;
};

static bool put_bits(struct bits_out *b, uint64_t number, unsigned n)
{
    while (n > 0) {
        unsigned take = 64 - b->n < n ? 64 - b->n : n;
        uint64_t part = take == 64 ? number : number & (((uint64_t)1 << take) - 1);
        b->word |= part << b->n;
        b->n += take;
        number = take == 64 ? 0 : number >> take;
        n -= take;
        if (b->n == 64) {
            if (!chunks_put_u64(b->out, b->word))
                return false;
            b->word = 0;
            b->n = 0;
        }
    }
    return true;
}

static bool end_bits(struct bits_out *b)
{
    return b->n == 0 || chunks_put_u64(b->out, b->word);
}

struct bits_in {
    struct chunks_in *in;
    uint64_t word;
    unsigned left;
};

static uint64_t get_bits(struct bits_in *b, unsigned n)
{
    uint64_t number = 0;
    unsigned have = 0;
    while (have < n) {
        if (b->left == 0) {
            b->word = chunks_get_u64(b->in);
            b->left = 64;
        }
        unsigned take = n - have < b->left ? n - have : b->left;
        uint64_t part = take == 64 ? b->word : b->word & (((uint64_t)1 << take) - 1);
        number |= part << have;
        b->word = take == 64 ? 0 : b->word >> take;
        b->left -= take;
        have += take;
    }
    return number;
}

/* ---- writing ---- */

/* rank[i]: where the i-th item in the new order is among those of its group in the earlier order.
  */
static uint64_t number_of(const uint32_t *rank, unsigned n)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned smaller = 0;
        for (unsigned j = i + 1; j < n; j++)
            smaller += rank[j] < rank[i];
        number = number * (n - i) + smaller;
    }
    return number;
}

static void order_of(uint64_t number, unsigned n, uint32_t *rank)
{
    uint32_t left[GROUP_MAX], digits[GROUP_MAX];
    for (unsigned i = 0; i < n; i++) {
        left[i] = i;
        digits[n - 1 - i] = (uint32_t)(number % (i + 1));
        number /= i + 1;
    }
    for (unsigned i = 0; i < n; i++) {
        rank[i] = left[digits[i]];
        memmove(&left[digits[i]], &left[digits[i] + 1], (n - 1 - i - digits[i]) * sizeof *left);
    }
}

/* Gaps between the numbers of the items that are new, or (stay[i] is false) gone. */
struct gaps {
    struct rd_buf bytes;
    uint64_t n, next;
};

static bool add_gap(struct gaps *gaps, uint64_t at)
{
    bool ok = chunks_put(&gaps->bytes, at - gaps->next);
    gaps->next = at + 1;
    gaps->n++;
    return ok;
}

static bool put_gaps(struct rd_buf *out, const struct gaps *gaps)
{
    return chunks_put(out, gaps->n) && rd_buf_add(out, gaps->bytes.ptr, gaps->bytes.len);
}

/* at[p]: 1 + the number of the item in the new order, among those that stay. */
static bool read_positions(const struct chunks_sequence *seq, uint32_t *at, struct gaps *fresh,
                           uint32_t *ret_n, struct rd_err *err)
{
    uint32_t p, n = 0;
    if (!seq->rewind(seq->ctx, err))
        return false;
    for (uint64_t i = 0; i < seq->n; i++) {
        if (!seq->next(seq->ctx, &p, err))
            return false;
        if (p == CHUNKS_NEW) {
            if (!add_gap(fresh, i))
                return rd_err_nomem(err, fresh->bytes.len);
        } else {
            at[p] = ++n;
        }
    }
    *ret_n = n;
    return true;
}

static bool put_groups(const struct chunks_sequence *seq, const uint32_t *at, uint32_t n,
                       unsigned size, struct rd_buf *ret)
{
    struct bits_out bits = {.out = ret};
    unsigned width = bits_for(groups_of(n, size));
    bool ok = true;
    for (uint64_t p = 0; ok && p < seq->n_old; p++)
        ok = at[p] == 0 || put_bits(&bits, (at[p] - 1) / size, width);
    return ok && end_bits(&bits);
}

/* The sequence again: each group is complete in it. */
static bool put_permutations(const struct chunks_sequence *seq, uint32_t n, unsigned size,
                             struct rd_buf *ret, struct rd_err *err)
{
    struct bits_out bits = {.out = ret};
    uint32_t group[GROUP_MAX], p, done = 0;
    unsigned k = 0;
    if (!seq->rewind(seq->ctx, err))
        return false;
    for (uint64_t i = 0; i < seq->n; i++) {
        if (!seq->next(seq->ctx, &p, err))
            return false;
        if (p == CHUNKS_NEW)
            continue;
        group[k++] = p;
        done++;
        if (k < size && done < n)
            continue;
        if (!put_bits(&bits, number_of(group, k), bits_for(factorial(k))))
            return rd_err_nomem(err, ret->len);
        k = 0;
    }
    return end_bits(&bits) || rd_err_nomem(err, ret->len);
}

bool chunks_permute_encode(const struct chunks_sequence *seq, struct rd_buf *ret,
                           struct rd_err *err)
{
    struct gaps fresh = {.n = 0}, gone = {.n = 0};
    uint32_t n = 0;
    uint32_t *at = rd_calloc((size_t)seq->n_old + 1, sizeof *at);
    bool ok = (at != NULL || rd_err_nomem(err, (size_t)seq->n_old * sizeof *at)) &&
              read_positions(seq, at, &fresh, &n, err);
    for (uint64_t p = 0; ok && p < seq->n_old; p++)
        ok = at[p] != 0 || add_gap(&gone, p) || rd_err_nomem(err, gone.bytes.len);
    unsigned size = choose_size(n);
    ok = ok && ((put_gaps(ret, &fresh) && put_gaps(ret, &gone) && chunks_put(ret, size) &&
                 put_groups(seq, at, n, size, ret)) ||
                rd_err_nomem(err, ret->len));
    rd_free(at);
    ok = ok && put_permutations(seq, n, size, ret, err);
    rd_buf_done(&fresh.bytes);
    rd_buf_done(&gone.bytes);
    return ok;
}

/* ---- reading ---- */

static bool damaged(struct rd_err *err)
{
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the order of the file is damaged");
}

/* Sets marks[i] of the numbers that gaps give, which are below n. */
static bool get_gaps(struct chunks_in *in, uint64_t n, bool *marks, uint64_t *ret_n)
{
    uint64_t next = 0;
    uint64_t count = chunks_get_count(in, 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t gap = chunks_get_max(in, n);
        if (in->failed || next + gap >= n)
            return false;
        marks[next + gap] = true;
        next += gap + 1;
    }
    *ret_n = count;
    return !in->failed;
}

/* member[g * size …]: numbers in the earlier order of the items of group g, ascending. */
static bool get_groups(struct chunks_in *in, const bool *gone, uint64_t n_old, uint32_t n,
                       unsigned size, uint32_t *member)
{
    struct bits_in bits = {.in = in};
    uint64_t n_groups = groups_of(n, size);
    unsigned width = bits_for(n_groups);
    uint8_t *filled = rd_calloc((size_t)n_groups + 1, 1);
    bool ok = filled != NULL;
    for (uint64_t p = 0; ok && p < n_old; p++) {
        if (gone[p])
            continue;
        uint64_t g = get_bits(&bits, width);
        ok = g < n_groups && filled[g] < size && g * size + filled[g] < n;
        if (ok)
            member[g * size + filled[g]++] = (uint32_t)p;
    }
    rd_free(filled);
    return ok && !in->failed;
}

static bool get_permutations(struct chunks_in *in, uint32_t n, unsigned size, uint32_t *member)
{
    struct bits_in bits = {.in = in};
    uint32_t group[GROUP_MAX], rank[GROUP_MAX];
    for (uint32_t done = 0; done < n; done += size) {
        unsigned k = n - done < size ? n - done : size;
        uint64_t number = get_bits(&bits, bits_for(factorial(k)));
        if (number >= factorial(k))
            return false;
        order_of(number, k, rank);
        memcpy(group, &member[done], k * sizeof *group);
        for (unsigned i = 0; i < k; i++)
            member[done + i] = group[rank[i]];
    }
    return !in->failed && in->at == in->end;
}

static struct chunks_place next_new(const struct chunks_table **fresh, uint32_t *item)
{
    while (*item == (*fresh)->n_items) {
        ++*fresh;
        *item = 0;
    }
    return (struct chunks_place){(*fresh)->ordinal, (*item)++};
}

static bool decode(struct chunks_in *in, const struct chunks_places *old,
                   const struct chunks_table *fresh, uint64_t n_fresh, struct chunks_places *to,
                   bool *is_new, bool *gone, uint32_t **member)
{
    uint64_t n_new, n_gone;
    if (!get_gaps(in, to->n, is_new, &n_new) || !get_gaps(in, old->n, gone, &n_gone) ||
        n_new > n_fresh || to->n - n_new != old->n - n_gone)
        return false;
    uint32_t n = (uint32_t)(to->n - n_new);
    unsigned size = (unsigned)chunks_get_max(in, GROUP_MAX);
    *member = rd_calloc((size_t)n + 1, sizeof **member);
    if (*member == NULL || size < GROUP_MIN || !get_groups(in, gone, old->n, n, size, *member) ||
        !get_permutations(in, n, size, *member))
        return false;
    size_t k = 0;
    uint32_t item = 0;
    for (size_t i = 0; i < to->n; i++)
        to->at[i] = is_new[i] ? next_new(&fresh, &item) : old->at[(*member)[k++]];
    return true;
}

bool chunks_permute_decode(struct chunks_in *in, const struct chunks_places *old,
                           const struct chunks_table *fresh, uint64_t n_fresh,
                           struct chunks_places *to, struct rd_err *err)
{
    bool *is_new = rd_calloc(to->n + 1, sizeof *is_new);
    bool *gone = rd_calloc(old->n + 1, sizeof *gone);
    uint32_t *member = NULL;
    bool ok = is_new != NULL && gone != NULL
                  ? decode(in, old, fresh, n_fresh, to, is_new, gone, &member) || damaged(err)
                  : rd_err_nomem(err, old->n);
    rd_free(is_new);
    rd_free(gone);
    rd_free(member);
    return ok;
}
