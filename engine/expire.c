/* The active expire cycle.
 *
 * Each database is looked through bucket by bucket; as long as more than a tenth of what was seen
 * was due, the look goes on. How long is judged by the work: a bucket counts as two tenths of a
 * microsecond, for in a table that has become sparse most are empty, a key that is looked at as one
 * tenth, a key that is taken out as ten and what its value takes to free.
 */
#include "engine/state.h"

enum {
    KEYS_A_ROUND = 20,
    STALE_PERCENT = 10, /* of what was seen, below which a database is left */
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
        round->ttl_sum += entry->expire_ms - round->call->now_ms;
        return;
    }
    round->n_due++;
    round->cost += TAKE_COST * (1 + engine_value_effort(&entry->value));
    engine_call_expire_now(round->call, entry);
}

/* The average of what was seen counts for a fiftieth of what is known. */
static void note_ttl(struct engine_db *db, const struct round *round)
{
    uint64_t n_alive = round->n_seen - round->n_due;
    if (n_alive == 0)
        return;
    int64_t avg = round->ttl_sum / (int64_t)n_alive;
    db->avg_ttl_ms = db->avg_ttl_ms == 0 ? avg : db->avg_ttl_ms / 50 * 49 + avg / 50;
}

/* False: too few keys are due here to go on. */
static bool one_round(struct engine_call *call, unsigned effort, struct round *round)
{
    struct engine_db *db = call->db;
    uint64_t wanted = KEYS_A_ROUND + KEYS_A_ROUND / 4 * effort;
    round->n_seen = round->n_due = 0;
    round->ttl_sum = 0;
    for (int i = 0; i < BUCKETS_A_ROUND && round->n_seen < wanted; i++) {
        db->expire_cursor = engine_table_scan(&db->expires, db->expire_cursor, look, round);
        round->cost += BUCKET_COST;
        if (db->expire_cursor == 0)
            break;
    }
    note_ttl(db, round);
    return round->n_due * 100 > round->n_seen * (STALE_PERCENT - effort);
}

static void one_db(struct engine_call *call, unsigned effort, uint64_t budget, struct round *round)
{
    while (engine_table_count(&call->db->expires) > 0 && round->cost < budget)
        if (!one_round(call, effort, round))
            break;
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
    engine_call_init(&call, e, &session, env, &reply, fx);
    struct round round = {.call = &call};
    engine_effects_reset(fx);
    for (unsigned i = 0; i < e->n_dbs && round.cost < budget_us * 10; i++) {
        call.db = e->dbs[e->next_expire_db++ % e->n_dbs];
        one_db(&call, effort, budget_us * 10, &round);
    }
    engine_leave(e, scope);
    return e->stats.expired - before;
}
