#include "jobs/diff_impl.h"

#include "base/mem.h"

bool diff_differs(const struct diff_result *result)
{
    const struct diff_counts *n = &result->counts;
    return n->only[DIFF_A] + n->only[DIFF_B] + n->different > 0 || result->functions_differ;
}

bool diff_is_expired(const struct filter *filter, const struct diff_key *key)
{
    return key->expire_ms != RDB_NO_EXPIRE && key->expire_ms < filter->now_ms;
}

/* ---- the sides ---- */

static void take_facts(struct diff *diff, const struct diff_facts *facts)
{
    if (facts == NULL)
        return;
    diff->no_functions |= facts->no_functions;
    if (facts->tolerance_ms > diff->key_tolerance_ms)
        diff->key_tolerance_ms = facts->tolerance_ms;
}

/* Fields that the older of the two formats does not have are not compared. */
static bool open_sides(struct diff *diff, struct rd_err *err)
{
    const struct diff_opts *opts = diff->opts;
    struct rdb_content_opts *hashing = &diff->hashing;
    diff->no_functions = filter_active(opts->filter);
    diff->key_tolerance_ms = opts->tolerance_ms;
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        struct again *in = &diff->in[side];
        if (!again_open(in, diff->watch, &opts->input[side], opts->filter, err))
            return false;
        take_facts(diff, opts->facts[side]);
        hashing->no_offsets |= in->version < 10;
        hashing->no_idmp |= in->dialect == RDB_VALKEY || in->version < 13;
    }
    hashing->no_expire = opts->ignore_expire;
    memcpy(hashing->key, opts->key, sizeof hashing->key);
    diff->due_ms[DIFF_B] = opts->now_ms != NULL ? opts->now_ms() : 0;
    diff->due_ms[DIFF_A] = diff->due_ms[DIFF_B] - opts->shift_ms;
    return true;
}

/* ---- the differences ---- */

static void give(const struct diff *diff, const struct diff_found *found, struct rd_slice name,
                 const struct diff_value *value)
{
    if (diff->opts->each != NULL)
        diff->opts->each(diff->opts->ctx, found, name, value);
}

static bool give_difference(struct diff *diff, struct diff_found *found, struct rd_slice name,
                            struct rd_err *err)
{
    struct diff_value value;
    bool must = diff_must_look(diff, found);
    if ((found->flags & DIFF_VALUE) == 0 || (diff->opts->fast && !must)) {
        give(diff, found, name, NULL);
        return true;
    }
    bool ok = diff_value_compare(diff, found, &value, err);
    if (ok && must && value.changed + value.only[DIFF_A] + value.only[DIFF_B] == 0)
        found->flags &= ~(unsigned)DIFF_VALUE;
    if (ok && found->flags != 0)
        give(diff, found, name, &value);
    diff_value_done(&value);
    return ok;
}

static bool work(struct diff *diff, struct rd_err *err)
{
    const struct diff_opts *opts = diff->opts;
    if (!open_sides(diff, err) || !diff_scan(diff, err))
        return false;
    if (opts->each == NULL && opts->tolerance_ms == 0)
        return true;
    return (opts->each == NULL || opts->begin == NULL || opts->begin(opts->ctx, err)) &&
           diff_names_each(diff, give_difference, err);
}

bool diff_run(const struct diff_opts *opts, const struct rd_watch *watch, struct diff_result *ret,
              struct rd_err *err)
{
    struct diff *diff = rd_calloc(1, sizeof *diff);
    if (diff == NULL)
        return rd_err_nomem(err, sizeof *diff);
    diff->opts = opts;
    diff->watch = watch;
    bool ok = work(diff, err);
    if (ok)
        *ret = (struct diff_result){
            .counts = diff->counts,
            .n_functions = {diff->n_functions[DIFF_A], diff->n_functions[DIFF_B]},
            .functions_differ = diff->functions_differ,
            .n_due = diff->n_due,
            .is_void = filter_active(opts->filter) &&
                       diff->counts.keys[DIFF_A] + diff->counts.keys[DIFF_B] == 0};
    for (int side = DIFF_A; side <= DIFF_B; side++)
        again_close(&diff->in[side]);
    diff_read_done(diff);
    sort_done(&diff->found);
    sort_done(&diff->named);
    sort_done(&diff->parts);
    rd_buf_done(&diff->name);
    rd_free(diff);
    return ok;
}
