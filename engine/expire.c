/* The active expire cycle.
 *
 * Each database is scanned bucket by bucket, as long as more than a tenth of the keys were expired.
 * Time is estimated from the work: a bucket counts as 0.2 microseconds, since most buckets of a
 * sparse table are empty; a visited key as 0.1; a removed key as 1, plus the cost of freeing its
 * value.
 *
 * Hash fields are handled in the same way: the hashes with field expiries are scanned, large ones
 * in parts. A hash counts as expired as long as its scan finds enough.
 */
#include "engine/state_impl.h"
#include "engine/value/hash.h"

enum {
    KEYS_A_ROUND = 20,
    STALE_PERCENT = 10, /* percentage of expired keys below which the scan of a database ends */
    BUCKETS_A_ROUND = 400,
    BUCKET_COST = 2, /* in tenths of a microsecond */
    LOOK_COST = 1,
    TAKE_COST = 10
};

struct round {
    struct engine_call *call;
    uint64_t n_seen;
    uint64_t n_due;
    uint64_t cost;
    int64_t ttl_sum;
};

static void look(void *ctx, void *item)
{
    struct round *round = ctx;
    struct engine_entry *entry = item;
    round->n_seen++;
    round->cost += LOOK_COST;
    if (round->call->now_ms <= entry->expire_ms) {
        if (__builtin_add_overflow(round->ttl_sum, entry->expire_ms - round->call->now_ms,
                                   &round->ttl_sum))
            round->ttl_sum = INT64_MAX;
        return;
    }
    round->n_due++;
    round->cost += TAKE_COST * (1 + engine_value_effort(&entry->value));
    engine_call_expire_now(round->call, entry);
}

/* The new sample has a weight of a fiftieth in the average. */
static void note_ttl(struct engine_db *db, const struct round *round)
{
    uint64_t n_alive = round->n_seen - round->n_due;
    if (n_alive == 0)
        return;
    int64_t avg = round->ttl_sum / (int64_t)n_alive;
    db->avg_ttl_ms = db->avg_ttl_ms == 0 ? avg : db->avg_ttl_ms / 50 * 49 + avg / 50;
}

static void look_at_parts(void *ctx, void *item)
{
    struct round *round = ctx;
    struct engine_entry *entry = item;
    struct engine_hash_pass pass = {0};
    int64_t next_ms = engine_value_next_expire(&entry->value);
    round->n_seen++;
    round->cost += LOOK_COST;
    if (next_ms == RDB_NO_EXPIRE)
        engine_db_forget_parts(round->call->db, entry);
    else if (next_ms < round->call->now_ms)
        engine_call_expire_fields(round->call, entry, BUCKETS_A_ROUND, &pass);
    round->n_due += pass.n_taken > 0 && (pass.whole || pass.n_taken * 100 > pass.n_seen * 10);
    round->cost += LOOK_COST * pass.n_seen + TAKE_COST * pass.n_taken;
}

/* False: too few keys are expired here to continue. */
static bool one_round(struct round *round, struct engine_table *t, uint64_t *cursor,
                      engine_table_item_fn fn, unsigned effort)
{
    uint64_t wanted = KEYS_A_ROUND + KEYS_A_ROUND / 4 * effort;
    round->n_seen = round->n_due = 0;
    round->ttl_sum = 0;
    for (int i = 0; i < BUCKETS_A_ROUND && round->n_seen < wanted; i++) {
        *cursor = engine_table_scan(t, *cursor, fn, round);
        round->cost += BUCKET_COST;
        if (*cursor == 0)
            break;
    }
    return round->n_due * 100 > round->n_seen * (STALE_PERCENT - effort);
}

static void one_db(struct engine_call *call, unsigned effort, uint64_t budget, struct round *round)
{
    struct engine_db *db = call->db;
    bool go_on = true;
    while (go_on && engine_table_count(&db->expires) > 0 && round->cost < budget) {
        go_on = one_round(round, &db->expires, &db->expire_cursor, look, effort);
        note_ttl(db, round);
    }
}

static void parts_of_db(struct engine_call *call, unsigned effort, uint64_t budget,
                        struct round *round)
{
    struct engine_db *db = call->db;
    bool go_on = true;
    while (go_on && engine_table_count(&db->parts) > 0 && round->cost < budget)
        go_on = one_round(round, &db->parts, &db->parts_cursor, look_at_parts, effort);
}

uint64_t engine_expire_cycle(struct engine *e, const struct engine_env *env, bool fast,
                             uint64_t budget_us, struct engine_effects *fx)
{
    struct engine_session session = {.engine = e};
    struct engine_reply reply = {.off = true};
    struct engine_call call;
    struct engine_scope scope = engine_enter(e);
    uint64_t before = e->stats.expired;
    unsigned effort = fast ? 0 : (unsigned)(e->config.active_expire_effort - 1);
    engine_mem.kind = ENGINE_MEM_KEYS;
    engine_call_init(&call, e, &session, env, &reply, fx);
    struct round round = {.call = &call};
    engine_effects_reset(fx);
    for (unsigned i = 0; i < e->n_dbs && round.cost < budget_us * 10; i++) {
        call.db = e->dbs[e->next_expire_db++ % e->n_dbs];
        one_db(&call, effort, budget_us * 10, &round);
        if (!fast)
            parts_of_db(&call, effort, budget_us * 10, &round);
    }
    engine_leave(e, scope);
    return e->stats.expired - before;
}
