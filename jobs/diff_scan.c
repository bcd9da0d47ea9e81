/* Joins the keys of both sides and collects those that differ.
 *
 *     found   key: side (1)  record (8)      value: a difference (diff_found_put)
 */
#include "jobs/diff_impl.h"

#include "base/endian.h"

static bool is_near(int64_t a, int64_t b, uint64_t tolerance_ms)
{
    if (a == b)
        return true;
    if (a == RDB_NO_EXPIRE || b == RDB_NO_EXPIRE)
        return false;
    uint64_t apart = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return apart <= tolerance_ms;
}

bool diff_same_expiry(const struct diff *diff, int64_t a, int64_t b)
{
    return diff->opts->ignore_expire || is_near(a, b, diff->opts->tolerance_ms);
}

bool diff_same_key_expiry(const struct diff *diff, int64_t a, int64_t b)
{
    return diff->opts->ignore_expire || is_near(a, b, diff->key_tolerance_ms);
}

bool diff_is_due(const struct diff *diff, enum diff_side side, int64_t expire_ms)
{
    return diff->opts->judge_due && expire_ms != RDB_NO_EXPIRE && expire_ms <= diff->due_ms[side];
}

bool diff_must_look(const struct diff *diff, const struct diff_found *found)
{
    return (diff->opts->tolerance_ms > 0 || diff->opts->judge_due) &&
           (found->flags & DIFF_VALUE) != 0 && found->key[DIFF_A].kind == RDB_KIND_HASH;
}

static void count(struct diff *diff, const struct diff_found *found)
{
    struct diff_counts *counts = &diff->counts;
    if (!found->key[DIFF_A].present || !found->key[DIFF_B].present) {
        enum diff_side side = found->key[DIFF_A].present ? DIFF_A : DIFF_B;
        counts->only[side]++;
        counts->expired[side] += diff_is_expired(diff->opts->filter, &found->key[side]);
        return;
    }
    counts->different++;
    counts->type += (found->flags & DIFF_TYPE) != 0;
    counts->expiry += (found->flags & DIFF_EXPIRY) != 0;
    counts->value += (found->flags & DIFF_VALUE) != 0;
}

void diff_count_looked(struct diff *diff, const struct diff_found *found)
{
    if (found->flags != 0)
        count(diff, found);
}

/* ---- the keys of one side, in the order of their hashes ---- */

struct cursor {
    struct diff *diff;
    enum diff_side side;
    bool ended;
    struct diff_record record;
    bool next_ended;
    struct diff_record next;
};

static bool look_ahead(struct cursor *at, struct rd_err *err)
{
    return diff_next_record(at->diff, at->side, &at->next, &at->next_ended, err);
}

/* If a key occurs twice (SCAN may return a key again), the later record counts. */
static bool advance(struct cursor *at, struct rd_err *err)
{
    at->ended = at->next_ended;
    if (at->ended)
        return true;
    at->record = at->next;
    while (look_ahead(at, err)) {
        if (at->next_ended || memcmp(at->next.hash, at->record.hash, RD_HASH128_LEN) != 0)
            return true;
        at->diff->counts.keys[at->side]--;
        if (at->next.key.record > at->record.key.record)
            at->record = at->next;
    }
    return false;
}

static bool open_cursor(struct cursor *at, struct diff *diff, enum diff_side side,
                        struct rd_err *err)
{
    *at = (struct cursor){.diff = diff, .side = side};
    return look_ahead(at, err) && advance(at, err);
}

/* ---- comparison ---- */

static bool add_found(struct diff *diff, const struct diff_found *found, struct rd_err *err)
{
    enum diff_side side = found->key[DIFF_A].present ? DIFF_A : DIFF_B;
    uint8_t key[9], value[DIFF_FOUND_LEN];
    if (!diff_must_look(diff, found))
        count(diff, found);
    key[0] = (uint8_t)side;
    rd_put_be64(key + 1, found->key[side].record);
    diff_found_put(value, found);
    return sort_add(&diff->found, rd_slice(key, sizeof key), rd_slice(value, sizeof value), err);
}

/* Whether only the contents can tell if the values are the same: their bytes differ. */
static bool is_open(const struct diff *diff, const struct diff_key *a, const struct diff_key *b)
{
    return diff->stored && a->kind == b->kind && !rd_hash128_eq(a->content, b->content);
}

static bool compare_both(struct diff *diff, const uint8_t *hash, struct diff_found *found,
                         struct rd_err *err)
{
    const struct diff_key *a = &found->key[DIFF_A], *b = &found->key[DIFF_B];
    if (is_open(diff, a, b)) {
        diff->n_closer++;
        return diff_read_closer(diff, DIFF_A, hash, found, err) &&
               diff_read_closer(diff, DIFF_B, hash, found, err);
    }
    if (a->kind != b->kind)
        found->flags |= DIFF_TYPE;
    else if (!rd_hash128_eq(a->content, b->content))
        found->flags |= DIFF_VALUE;
    if (!diff_same_key_expiry(diff, a->expire_ms, b->expire_ms))
        found->flags |= DIFF_EXPIRY;
    return found->flags == 0 || add_found(diff, found, err);
}

static bool compare_one(struct diff *diff, const struct diff_found *found, struct rd_err *err)
{
    enum diff_side side = found->key[DIFF_A].present ? DIFF_A : DIFF_B;
    if (!diff_is_due(diff, side, found->key[side].expire_ms))
        return add_found(diff, found, err);
    diff->n_due++;
    return true;
}

static bool join(struct diff *diff, struct rd_err *err)
{
    struct cursor a, b;
    if (!open_cursor(&a, diff, DIFF_A, err) || !open_cursor(&b, diff, DIFF_B, err))
        return false;
    while (!a.ended || !b.ended) {
        struct diff_found found = {0};
        int order = a.ended   ? 1
                    : b.ended ? -1
                              : memcmp(a.record.hash, b.record.hash, RD_HASH128_LEN);
        found.db = order <= 0 ? a.record.db : b.record.db;
        if (order <= 0)
            found.key[DIFF_A] = a.record.key;
        if (order >= 0)
            found.key[DIFF_B] = b.record.key;
        bool ok = order == 0 ? compare_both(diff, a.record.hash, &found, err)
                             : compare_one(diff, &found, err);
        if (!ok || (order <= 0 && !advance(&a, err)) || (order >= 0 && !advance(&b, err)))
            return false;
    }
    return true;
}

bool diff_scan(struct diff *diff, struct rd_err *err)
{
    if (!diff_read(diff, err) || !sort_init(&diff->found, DIFF_MEMORY / 4, err) || !join(diff, err))
        return false;
    if (diff->n_closer > 0 && (!diff_read_contents(diff, err) || !join(diff, err)))
        return false;
    diff_read_done(diff);
    diff->functions_differ =
        !diff->no_functions && !rd_hash128_eq(diff->functions[DIFF_A], diff->functions[DIFF_B]);
    return true;
}
