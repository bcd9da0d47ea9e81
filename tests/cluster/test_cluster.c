#include "cluster/cluster.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/endian.h"
#include "tests/cluster/rig.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/chance.h"

static bool is_master(struct rig *r, int node)
{
    return (cluster_myself(r->c[node])->flags & CLUSTER_BUS_MASTER) != 0;
}

static bool has_failed(struct rig *r, int by, int of)
{
    return (rig_seen(r, by, of)->flags & CLUSTER_BUS_FAILED) != 0;
}

/* ---- getting to know each other ---- */

Test(cluster, a_meeting_makes_both_known_and_gossip_all)
{
    struct rig r;
    rig_make(&r, 4);
    for (int i = 0; i < r.n; i++) {
        cr_expect_eq(cluster_size(r.c[i]), 4);
        for (int k = 0; k < r.n; k++) {
            const struct cluster_node *n = rig_seen(&r, i, k);
            cr_expect_str_eq(n->host, "10.0.0.1");
            cr_expect_eq(n->port, 7000 + k);
            cr_expect_eq(n->epoch, (uint64_t)k + 1);
            cr_expect_eq(n->n_slots, RD_HASH_SLOTS / 4);
        }
    }
    rig_done(&r);
}

Test(cluster, names_shards_and_announced_addresses_are_told)
{
    struct rig r;
    rig_make(&r, 3);
    struct cluster_settings *s = cluster_settings(r.c[1]);
    strcpy(s->hostname, "one.example");
    strcpy(s->human_name, "one");
    strcpy(s->address, "192.0.2.7");
    rig_until(&r, strcmp(rig_seen(&r, 0, 1)->hostname, "one.example") == 0 &&
                      strcmp(rig_seen(&r, 2, 1)->human_name, "one") == 0 &&
                      strcmp(rig_seen(&r, 2, 1)->host, "192.0.2.7") == 0);
    cr_expect_str_eq(rig_seen(&r, 0, 1)->shard.s, cluster_myself(r.c[1])->id.s);
    s->hostname[0] = 0;
    rig_until(&r, rig_seen(&r, 0, 1)->hostname[0] == 0);
    rig_done(&r);
}

Test(cluster, a_handshake_without_an_answer_ends)
{
    struct rig r;
    rig_alone(&r, 1);
    cr_expect_eq(cluster_meet(r.c[0], "10.0.0.9", 7099, 0), CLUSTER_OK);
    cr_expect_eq(cluster_count(r.c[0]), 2);
    rig_run(&r, RIG_TIMEOUT_MS + 200);
    cr_expect_eq(cluster_count(r.c[0]), 1);
    cr_expect_eq(cluster_meet(r.c[0], "not an address", 7099, 0), CLUSTER_BAD_ADDRESS);
    cr_expect_eq(cluster_meet(r.c[0], "10.0.0.9", 60000, 0), CLUSTER_BAD_ADDRESS);
    rig_done(&r);
}

Test(cluster, a_node_that_meets_itself_stays_alone)
{
    struct rig r;
    rig_alone(&r, 1);
    cluster_meet(r.c[0], "10.0.0.1", 7000, 17000);
    rig_run(&r, 1000);
    cr_expect_eq(cluster_count(r.c[0]), 1);
    rig_done(&r);
}

Test(cluster, a_forgotten_node_stays_away_for_a_minute_and_others_forget_it_too)
{
    struct rig r;
    rig_make(&r, 3);
    int extra = rig_add(&r, -1);
    char id[41];
    strcpy(id, cluster_myself(r.c[extra])->id.s);
    r.cut[extra] = true;
    cr_expect_eq(cluster_forget(r.c[0], rig_seen(&r, 0, extra)), CLUSTER_OK);
    rig_run(&r, 10000);
    for (int i = 0; i < 3; i++)
        cr_expect_null(cluster_find(r.c[i], rd_slice_str(id)), "node %d", i);
    cr_expect(cluster_is_forgotten(r.c[1], rd_slice_str(id)));
    cr_expect_not(cluster_is_forgotten(r.c[1], rd_slice_str(cluster_myself(r.c[0])->id.s)));
    rig_run(&r, 60000);
    cr_expect_not(cluster_is_forgotten(r.c[1], rd_slice_str(id)));
    cr_expect_eq(cluster_forget(r.c[0], cluster_myself(r.c[0])), CLUSTER_IS_MYSELF);
    rig_done(&r);
}

Test(cluster, what_is_not_a_message_ends_the_connection)
{
    struct rig r;
    struct cluster_action a;
    rig_alone(&r, 1);
    uint64_t conn = cluster_accepted(r.c[0], "10.0.0.1", "10.0.0.2");
    cluster_received(r.c[0], conn, rd_slice_str("GET / HTTP/1.0\r\n"));
    cr_assert(cluster_next(r.c[0], &a));
    cr_expect_eq(a.kind, CLUSTER_CLOSE);
    cr_expect_eq(a.conn, conn);
    cluster_received(r.c[0], conn, rd_slice_str("more"));
    cr_expect_not(cluster_next(r.c[0], &a));
    rig_done(&r);
}

Test(cluster, another_node_at_an_address_is_not_taken_for_the_old_one)
{
    struct rig r;
    char id[41];
    rig_make(&r, 3);
    strcpy(id, cluster_myself(r.c[2])->id.s);
    cluster_reset(r.c[2], true);
    rig_until(&r, (cluster_find(r.c[0], rd_slice_str(id))->flags & CLUSTER_BUS_NO_ADDRESS) != 0);
    cr_expect_str_eq(cluster_find(r.c[0], rd_slice_str(id))->host, "");
    cr_expect_null(rig_seen(&r, 0, 2));
    rig_done(&r);
}

Test(cluster, a_node_that_moved_is_found_by_its_pings)
{
    struct rig r;
    struct rd_buf bytes = {0};
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    struct cluster_message m = {.type = CLUSTER_MESSAGE_PING,
                                .sender = cluster_myself(r.c[0])->id,
                                .slots = cluster_myself(r.c[0])->slots,
                                .config_epoch = cluster_myself(r.c[0])->epoch,
                                .flags = CLUSTER_BUS_MASTER,
                                .port = 7000,
                                .bus_port = 17000};
    unsigned before = r.seen[replica][CLUSTER_REPLICATE];
    uint64_t conn = cluster_accepted(r.c[replica], "10.0.0.1", "192.0.2.1");
    cr_assert(cluster_message_write(&m, &bytes));
    cluster_received(r.c[replica], conn, rd_buf_slice(&bytes));
    cr_expect_str_eq(rig_seen(&r, replica, 0)->host, "192.0.2.1");
    rig_act(&r);
    cr_expect_eq(r.seen[replica][CLUSTER_REPLICATE], before + 1);
    rd_buf_done(&bytes);
    rig_done(&r);
}

/* ---- failures ---- */

/* It waits for what has changed only if there was a majority that it did not reach. */
Test(cluster, a_first_node_works_as_soon_as_it_has_all_slots)
{
    struct rig r;
    struct cluster_slots slots = {0};
    rig_alone(&r, 1);
    rig_run(&r, 10000);
    cr_expect_not(cluster_is_ok(r.c[0]));
    cluster_slots_add_range(&slots, 0, RD_HASH_SLOTS - 1);
    cr_assert_eq(cluster_add_slots(r.c[0], &slots), CLUSTER_OK);
    cr_expect(cluster_is_ok(r.c[0]));
    rig_done(&r);
}

Test(cluster, the_majority_finds_a_master_failed_and_the_minority_stops)
{
    struct rig r;
    rig_make(&r, 3);
    r.cut[2] = true;
    rig_until(&r, has_failed(&r, 0, 2) && has_failed(&r, 1, 2));
    cr_expect_not(cluster_is_ok(r.c[0]), "its slots have no master");
    cluster_settings(r.c[0])->require_full_coverage = false;
    rig_run(&r, RIG_TIMEOUT_MS + 500);
    cr_expect(cluster_is_ok(r.c[0]));
    cr_expect_not(cluster_is_ok(r.c[2]));
    cr_expect_not(has_failed(&r, 2, 0), "one of three decides nothing");
    cr_expect_eq(rig_seen(&r, 2, 0)->flags & CLUSTER_BUS_MAYBE_FAILED,
                 (unsigned)CLUSTER_BUS_MAYBE_FAILED);
    r.cut[2] = false;
    rig_until(&r, rig_all_ok(&r) && !has_failed(&r, 0, 2));
    rig_done(&r);
}

Test(cluster, reports_of_failures_grow_old)
{
    struct rig r;
    rig_make(&r, 5);
    r.cut[4] = r.cut[3] = r.cut[2] = true;
    rig_run(&r, RIG_TIMEOUT_MS * 2);
    cr_expect_eq(cluster_failure_reports(r.c[0], rig_seen(&r, 0, 4)), 1);
    r.cut[1] = true;
    rig_run(&r, RIG_TIMEOUT_MS * 3);
    cr_expect_eq(cluster_failure_reports(r.c[0], rig_seen(&r, 0, 4)), 0);
    rig_done(&r);
}

Test(cluster, a_replica_takes_the_place_of_its_master)
{
    struct rig r;
    rig_make(&r, 3);
    int a = rig_add(&r, 0), b = rig_add(&r, 0);
    cluster_settings(r.c[a])->allow_replica_migration = false;
    cluster_settings(r.c[b])->allow_replica_migration = false;
    r.offset[a] = 10;
    r.offset[b] = 20; /* it has more of the data, and comes first */
    rig_run(&r, 3000);
    r.cut[0] = true;
    rig_until(&r, is_master(&r, b));
    cr_expect_not(is_master(&r, a));
    rig_until(&r, cluster_myself(r.c[a])->master == rig_seen(&r, a, b));
    cr_expect_eq(r.seen[b][CLUSTER_PROMOTE], 1);
    cr_expect_eq(cluster_last_vote_epoch(r.c[b]), cluster_myself(r.c[b])->epoch,
                 "its shard has voted in the epoch in which it was elected");
    cr_expect_str_eq(cluster_myself(r.c[b])->shard.s, cluster_myself(r.c[0])->id.s);
    rig_until(&r, rig_all_ok(&r));
    r.cut[0] = false;
    rig_until(&r, !is_master(&r, 0));
    cr_expect_eq(cluster_myself(r.c[0])->master, rig_seen(&r, 0, b));
    rig_until(&r, rig_all_ok(&r));
    rig_done(&r);
}

Test(cluster, a_vote_that_is_not_saved_is_not_given)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 3000);
    r.save_fails[1] = true;
    r.cut[0] = true;
    rig_run(&r, 20000);
    cr_expect_not(is_master(&r, replica));
    cr_expect_eq(cluster_stats(r.c[1])->sent[CLUSTER_MESSAGE_AUTH_ACK], 0);
    cr_expect_gt(cluster_last_vote_epoch(r.c[1]), 0);
    r.save_fails[1] = false;
    rig_until(&r, is_master(&r, replica));
    rig_done(&r);
}

Test(cluster, a_promotion_that_is_not_saved_is_not_told)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 3000);
    r.save_fails[replica] = true;
    r.cut[0] = true;
    rig_until(&r, is_master(&r, replica));
    rig_run(&r, 3000);
    cr_expect_not(cluster_is_ok(r.c[replica]), "it takes no writes");
    for (int i = 1; i < 3; i++)
        cr_expect_eq(cluster_owner(r.c[i], 0), rig_seen(&r, i, 0));
    r.save_fails[replica] = false;
    rig_until(&r, cluster_owner(r.c[1], 0) == rig_seen(&r, 1, replica) &&
                      cluster_owner(r.c[2], 0) == rig_seen(&r, 2, replica) &&
                      cluster_is_ok(r.c[replica]));
    rig_done(&r);
}

Test(cluster, a_replica_with_old_data_is_not_promoted)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    const struct cluster_settings *s = cluster_settings(r.c[replica]);
    rig_run(&r, 3000);
    int64_t limit_ms = s->replica_ping_ms + s->node_timeout_ms * (s->replica_validity_factor + 1);
    r.data_age_ms[replica] = limit_ms + 1;
    r.cut[0] = true;
    rig_run(&r, 20000);
    cr_expect_not(is_master(&r, replica));
    r.data_age_ms[replica] = limit_ms;
    rig_until(&r, is_master(&r, replica));
    rig_done(&r);
}

Test(cluster, a_replica_that_shall_not_fail_over_is_not_promoted)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 3000);
    cluster_settings(r.c[replica])->replica_no_failover = true;
    r.cut[0] = true;
    rig_run(&r, 20000);
    cr_expect_not(is_master(&r, replica));
    cluster_settings(r.c[replica])->replica_no_failover = false;
    rig_until(&r, is_master(&r, replica));
    rig_done(&r);
}

Test(cluster, a_replica_moves_to_a_master_without_any)
{
    struct rig r;
    rig_make(&r, 3);
    int a = rig_add(&r, 0), b = rig_add(&r, 0), c = rig_add(&r, 1);
    rig_add(&r, 2);
    rig_run(&r, 3000);
    r.cut[c] = true;
    rig_until(&r, cluster_myself(r.c[a])->master == rig_seen(&r, a, 1) ||
                      cluster_myself(r.c[b])->master == rig_seen(&r, b, 1));
    rig_done(&r);
}

/* ---- failovers that were asked for ---- */

Test(cluster, a_manual_failover_waits_for_the_data)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    r.offset[0] = 100;
    r.offset[replica] = 90;
    rig_run(&r, 3000);
    cr_expect_eq(cluster_failover(r.c[0], CLUSTER_FAILOVER), CLUSTER_NOT_REPLICA);
    cr_expect_eq(cluster_failover(r.c[replica], CLUSTER_FAILOVER), CLUSTER_OK);
    rig_run(&r, 1000);
    cr_expect(cluster_paused(r.c[0]));
    cr_expect_not(is_master(&r, replica));
    r.offset[replica] = 100;
    rig_run(&r, 500);
    cr_expect(is_master(&r, replica));
    cr_expect_not(is_master(&r, 0));
    cr_expect_not(cluster_paused(r.c[0]));
    cr_expect_eq(r.seen[0][CLUSTER_RESUME], 1);
    rig_done(&r);
}

Test(cluster, a_manual_failover_ends_without_the_data)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    r.offset[0] = 100;
    rig_run(&r, 3000);
    cluster_failover(r.c[replica], CLUSTER_FAILOVER);
    rig_run(&r, 6000);
    cr_expect_not(is_master(&r, replica));
    cr_expect_not(cluster_paused(r.c[0]));
    r.cut[0] = true;
    rig_until(&r, has_failed(&r, replica, 0));
    cr_expect_eq(cluster_failover(r.c[replica], CLUSTER_FAILOVER), CLUSTER_MASTER_DOWN);
    rig_done(&r);
}

Test(cluster, force_needs_no_master_and_takeover_no_votes)
{
    struct rig r;
    rig_make(&r, 3);
    int a = rig_add(&r, 0), b = rig_add(&r, 1);
    rig_run(&r, 3000);
    r.cut[0] = true;
    cr_expect_eq(cluster_failover(r.c[a], CLUSTER_FAILOVER_FORCE), CLUSTER_OK);
    rig_run(&r, 300);
    cr_expect(is_master(&r, a));
    r.cut[1] = r.cut[2] = r.cut[a] = true;
    uint64_t epoch = cluster_current_epoch(r.c[b]);
    cr_expect_eq(cluster_failover(r.c[b], CLUSTER_FAILOVER_TAKEOVER), CLUSTER_OK);
    cr_expect(is_master(&r, b));
    cr_expect_eq(cluster_myself(r.c[b])->epoch, epoch + 1);
    rig_act(&r);
    for (int i = 0; i < r.n; i++)
        r.cut[i] = false;
    rig_until(&r, !is_master(&r, 0) && !is_master(&r, 1) && rig_all_ok(&r));
    rig_done(&r);
}

/* ---- slots and epochs ---- */

Test(cluster, a_slot_moves_to_another_master)
{
    struct rig r;
    rig_make(&r, 3);
    cr_expect_eq(cluster_set_importing(r.c[1], 0, rig_seen(&r, 1, 0)), CLUSTER_OK);
    cr_expect_eq(cluster_set_migrating(r.c[0], 0, rig_seen(&r, 0, 1)), CLUSTER_OK);
    cr_expect_eq(cluster_migrating(r.c[0], 0), rig_seen(&r, 0, 1));
    cr_expect_eq(cluster_importing(r.c[1], 0), rig_seen(&r, 1, 0));
    cr_expect_eq(cluster_set_owner(r.c[1], 0, cluster_myself(r.c[1])), CLUSTER_OK);
    rig_act(&r);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(cluster_owner(r.c[i], 0), rig_seen(&r, i, 1));
    cr_expect_eq(cluster_myself(r.c[1])->epoch, 4);
    cr_expect_null(cluster_migrating(r.c[0], 0));
    cr_expect_eq(r.seen[0][CLUSTER_DROP_KEYS], 1);
    rig_done(&r);
}

/* A reshard of thousands of slots would wait for the disk at each step. */
Test(cluster, only_the_new_epoch_of_a_moved_slot_is_synced)
{
    struct rig r;
    rig_make(&r, 3);
    rig_act(&r);
    unsigned saves = r.saves[1], syncs[] = {r.syncs[0], r.syncs[1]};
    cluster_set_importing(r.c[1], 0, rig_seen(&r, 1, 0));
    cluster_set_migrating(r.c[0], 0, rig_seen(&r, 0, 1));
    rig_act(&r);
    cr_expect_eq(r.saves[1], saves + 1);
    cr_expect_eq(r.syncs[1], syncs[1]);
    cluster_set_importing(r.c[1], 1, rig_seen(&r, 1, 0));
    cluster_set_owner(r.c[1], 0, cluster_myself(r.c[1])); /* one save for both */
    cluster_set_owner(r.c[0], 0, rig_seen(&r, 0, 1));
    rig_act(&r);
    cr_expect_eq(r.saves[1], saves + 2);
    cr_expect_eq(r.syncs[1], syncs[1] + 1);
    cr_expect_eq(r.syncs[0], syncs[0] + 1, "it heard of the epoch");
    unsigned before[] = {r.syncs[0], r.syncs[1], r.syncs[2]};
    cluster_set_migrating(r.c[0], 1, rig_seen(&r, 0, 1));
    cluster_set_owner(r.c[1], 1, cluster_myself(r.c[1]));
    rig_act(&r);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(cluster_owner(r.c[i], 1), rig_seen(&r, i, 1));
        cr_expect_eq(r.syncs[i], before[i] + (i == 1), "only the new owner waits");
    }
    rig_done(&r);
}

/* The node has lost power since SETSLOT IMPORTING, which was not synced. If it told others of its
 * slot and lost that as well, each of two masters would take the other for the owner. */
Test(cluster, a_slot_that_is_taken_without_an_import_is_synced)
{
    struct rig r;
    rig_make(&r, 2);
    rig_act(&r);
    unsigned syncs = r.syncs[1];
    cr_expect_eq(cluster_set_owner(r.c[1], 0, cluster_myself(r.c[1])), CLUSTER_OK);
    rig_act(&r);
    cr_expect_eq(r.syncs[1], syncs + 1);
    cr_expect_eq(cluster_set_owner(r.c[1], 0, cluster_myself(r.c[1])), CLUSTER_OK);
    rig_act(&r);
    cr_expect_eq(r.syncs[1], syncs + 1, "it is its own already");
    rig_done(&r);
}

Test(cluster, an_open_slot_follows_the_failover_of_its_owner)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 3000);
    cluster_set_importing(r.c[1], 0, rig_seen(&r, 1, 0));
    r.cut[0] = true;
    rig_until(&r, is_master(&r, replica));
    rig_until(&r, cluster_owner(r.c[1], 0) == rig_seen(&r, 1, replica));
    cr_expect_eq(cluster_importing(r.c[1], 0), rig_seen(&r, 1, replica));
    cluster_set_stable(r.c[1], 0);
    cr_expect_null(cluster_importing(r.c[1], 0));
    rig_done(&r);
}

/* Node 2 is away while slot 0 moves from 0 to 1, and 0 gets another slot in a greater epoch. */
Test(cluster, a_slot_that_its_owner_does_not_claim_is_anyones)
{
    struct rig r;
    rig_make(&r, 3);
    r.cut[2] = true;
    cluster_set_importing(r.c[1], 0, rig_seen(&r, 1, 0));
    cluster_set_owner(r.c[1], 0, cluster_myself(r.c[1]));
    rig_act(&r);
    cluster_set_importing(r.c[0], 10000, rig_seen(&r, 0, 1));
    cluster_set_owner(r.c[0], 10000, cluster_myself(r.c[0]));
    rig_act(&r);
    cr_expect_gt(cluster_myself(r.c[0])->epoch, cluster_myself(r.c[1])->epoch);
    r.cut[1] = true;
    r.cut[2] = false;
    rig_until(&r, rig_seen(&r, 2, 0)->epoch == cluster_myself(r.c[0])->epoch);
    cr_expect_eq(cluster_owner(r.c[2], 0), rig_seen(&r, 2, 0));
    r.cut[1] = false;
    rig_until(&r, cluster_owner(r.c[2], 0) == rig_seen(&r, 2, 1) &&
                      cluster_owner(r.c[2], 10000) == rig_seen(&r, 2, 0));
    rig_done(&r);
}

Test(cluster, commands_that_make_no_sense_say_why)
{
    struct rig r;
    struct cluster_slots slots = {0};
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    struct cluster *c = r.c[0];
    struct cluster_node *other = rig_seen(&r, 0, 1);
    cluster_slots_add(&slots, 5);
    cr_expect_eq(cluster_add_slots(c, &slots), CLUSTER_BUSY);
    cr_expect_eq(cluster_del_slots(c, &slots), CLUSTER_OK);
    cr_expect_eq(cluster_del_slots(c, &slots), CLUSTER_NOT_OWNER);
    cr_expect_eq(cluster_replicate(c, other), CLUSTER_HAS_SLOTS);
    cr_expect_eq(cluster_replicate(c, cluster_myself(c)), CLUSTER_IS_MYSELF);
    cr_expect_eq(cluster_replicate(c, rig_seen(&r, 0, replica)), CLUSTER_NOT_MASTER);
    cr_expect_eq(cluster_set_migrating(c, 16383, other), CLUSTER_NOT_OWNER);
    cr_expect_eq(cluster_set_migrating(c, 0, cluster_myself(c)), CLUSTER_IS_MYSELF);
    cr_expect_eq(cluster_set_importing(c, 0, other), CLUSTER_BUSY);
    cr_expect_eq(cluster_set_owner(c, 0, rig_seen(&r, 0, replica)), CLUSTER_NOT_MASTER);
    cr_expect_eq(cluster_set_epoch(c, 9), CLUSTER_BUSY);
    cr_expect_eq(cluster_forget(r.c[replica], rig_seen(&r, replica, 0)), CLUSTER_IS_MASTER);
    cr_expect_eq(cluster_bump_epoch(c), CLUSTER_OK);
    cr_expect_eq(cluster_bump_epoch(c), CLUSTER_SAME_EPOCH);
    rig_done(&r);
}

Test(cluster, masters_with_one_epoch_get_different_ones)
{
    struct rig r;
    rig_alone(&r, 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(cluster_set_epoch(r.c[i], 7), CLUSTER_OK);
    cluster_meet(r.c[0], "10.0.0.1", 7001, 17001);
    cluster_meet(r.c[0], "10.0.0.1", 7002, 17002);
    rig_run(&r, 10000);
    uint64_t a = cluster_myself(r.c[0])->epoch, b = cluster_myself(r.c[1])->epoch;
    uint64_t c = cluster_myself(r.c[2])->epoch;
    cr_expect(a != b && b != c && a != c);
    rig_done(&r);
}

Test(cluster, a_reset_node_is_new)
{
    struct rig r;
    char id[41];
    rig_make(&r, 3);
    strcpy(id, cluster_myself(r.c[0])->id.s);
    cluster_reset(r.c[0], false);
    cr_expect_str_eq(cluster_myself(r.c[0])->id.s, id);
    cr_expect_eq(cluster_count(r.c[0]), 1);
    cr_expect_eq(cluster_myself(r.c[0])->n_slots, 0);
    cr_expect_gt(cluster_current_epoch(r.c[0]), 0);
    cluster_reset(r.c[0], true);
    cr_expect_str_neq(cluster_myself(r.c[0])->id.s, id);
    cr_expect_eq(cluster_current_epoch(r.c[0]), 0);
    rig_done(&r);
}

/* ---- messages for clients ---- */

Test(cluster, messages_reach_all_nodes_and_sharded_ones_the_shard)
{
    struct rig r;
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 1000);
    cluster_publish(r.c[0], rd_slice_str("news"), rd_slice_str("hello"), false);
    rig_act(&r);
    for (int i = 1; i < r.n; i++)
        cr_expect_eq(r.seen[i][CLUSTER_PUBLISH], 1);
    cr_expect_str_eq(r.text, "news hello");
    cluster_publish(r.c[0], rd_slice_str("shard"), rd_slice_str("x"), true);
    rig_act(&r);
    cr_expect_eq(r.seen[replica][CLUSTER_PUBLISH], 2);
    cr_expect_eq(r.seen[1][CLUSTER_PUBLISH], 1);
    rig_done(&r);
}

Test(cluster, a_message_to_many_nodes_is_in_memory_once)
{
    struct rig r;
    struct cluster_action a;
    const uint8_t *first = NULL;
    unsigned n = 0;
    rig_make(&r, 4);
    cluster_publish(r.c[0], rd_slice_str("news"), rd_slice_str("hello"), false);
    while (cluster_next(r.c[0], &a)) {
        cr_assert_eq(a.kind, CLUSTER_SEND);
        first = n++ == 0 ? a.bytes.ptr : first;
        cr_expect_eq(a.bytes.ptr, first);
    }
    cr_expect_eq(n, 3);
    rig_done(&r);
}

Test(cluster, a_message_of_a_module_is_handed_over_if_the_sender_is_known)
{
    struct rig r;
    struct rd_buf bytes = {0};
    rig_make(&r, 3);
    struct cluster_message m = {.type = CLUSTER_MESSAGE_MODULE,
                                .sender = cluster_myself(r.c[1])->id,
                                .payload = rd_slice_str("payload")};
    uint64_t conn = cluster_accepted(r.c[0], "10.0.0.1", "10.0.0.1");
    cr_assert(cluster_message_write(&m, &bytes));
    memset(m.sender.s, 'e', 40);
    cr_assert(cluster_message_write(&m, &bytes));
    cluster_received(r.c[0], conn, rd_buf_slice(&bytes));
    rig_act(&r);
    cr_expect_eq(r.seen[0][CLUSTER_MODULE], 1);
    cr_expect_str_eq(r.text, " payload");
    rd_buf_done(&bytes);
    rig_done(&r);
}

/* Bytes arrive in pieces. Returns the most memory that they took. */
static size_t hear(struct rig *r, uint64_t conn, struct rd_slice bytes)
{
    enum { PIECE = 4000 };
    size_t most = 0;
    for (size_t at = 0; at < bytes.len; at += PIECE) {
        size_t len = bytes.len - at < PIECE ? bytes.len - at : PIECE;
        cluster_received(r->c[0], conn, rd_slice(bytes.ptr + at, len));
        size_t now = cluster_input_memory(r->c[0]);
        most = now > most ? now : most;
        rig_act(r);
    }
    return most;
}

static void put_published(struct rd_buf *to, const char *sender, struct rd_slice payload)
{
    struct cluster_message m = {
        .type = CLUSTER_MESSAGE_PUBLISH, .channel = rd_slice_str("news"), .payload = payload};
    memcpy(m.sender.s, sender, sizeof m.sender.s);
    cr_assert(cluster_message_write(&m, to));
}

Test(cluster, a_long_message_of_a_stranger_is_not_kept)
{
    static const char stranger[] = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
    static uint8_t payload[1 << 20];
    struct rig r;
    struct rd_buf bytes = {0};
    rig_make(&r, 2);
    uint64_t conn = cluster_accepted(r.c[0], "10.0.0.1", "10.0.0.2");
    uint64_t refused = cluster_stats(r.c[0])->refused;
    put_published(&bytes, stranger, rd_slice(payload, sizeof payload));
    cr_expect_lt(hear(&r, conn, rd_buf_slice(&bytes)), 32768);
    cr_expect_eq(cluster_stats(r.c[0])->refused, refused + 1);
    rd_buf_reset(&bytes); /* the next message of this connection is read */
    put_published(&bytes, cluster_myself(r.c[1])->id.s, rd_slice_str("hello"));
    hear(&r, conn, rd_buf_slice(&bytes));
    cr_expect_eq(r.seen[0][CLUSTER_PUBLISH], 1);
    cr_expect_str_eq(r.text, "news hello");
    rd_buf_done(&bytes);
    rig_done(&r);
}

Test(cluster, a_long_message_takes_the_memory_of_what_arrived_of_it)
{
    static uint8_t payload[1 << 20];
    struct rig r;
    struct rd_buf bytes = {0};
    rig_make(&r, 2);
    uint64_t conn = cluster_accepted(r.c[0], "10.0.0.1", "10.0.0.2");
    size_t before = cluster_input_memory(r.c[0]);
    put_published(&bytes, cluster_myself(r.c[1])->id.s, rd_slice(payload, sizeof payload));
    size_t most = hear(&r, conn, rd_buf_slice(&bytes));
    cr_expect_gt(most, sizeof payload / 2);
    cr_expect_lt(most, 3 * sizeof payload);
    cr_expect_eq(r.seen[0][CLUSTER_PUBLISH], 1);
    cr_expect_eq(cluster_input_memory(r.c[0]), before, "memory of the message is kept");
    rd_put_be32(bytes.ptr + 4, CLUSTER_MESSAGE_MAX); /* most of which never comes */
    cr_expect_lt(hear(&r, conn, rd_slice(bytes.ptr, 20000)), before + 65536);
    rd_buf_done(&bytes);
    rig_done(&r);
}

Test(cluster, a_ping_is_no_longer_than_its_entries)
{
    struct rig r;
    struct rd_buf bytes = {0};
    rig_make(&r, 2);
    struct cluster_message m = {.type = CLUSTER_MESSAGE_PING, .sender = cluster_myself(r.c[1])->id};
    uint64_t conn = cluster_accepted(r.c[0], "10.0.0.1", "10.0.0.2");
    uint64_t refused = cluster_stats(r.c[0])->refused;
    cr_assert(cluster_message_write(&m, &bytes));
    rd_put_be32(bytes.ptr + 4, CLUSTER_MESSAGE_MAX);
    hear(&r, conn, rd_buf_slice(&bytes));
    cr_expect_eq(cluster_stats(r.c[0])->refused, refused + 1);
    rd_buf_done(&bytes);
    rig_done(&r);
}

/* ---- nodes.conf ---- */

Test(cluster, what_is_saved_is_read_again)
{
    struct rig r;
    struct rd_buf text = {0}, again = {0};
    struct rd_err err = {0};
    rig_make(&r, 3);
    int replica = rig_add(&r, 0);
    rig_run(&r, 2000);
    strcpy(cluster_settings(r.c[1])->human_name, "one");
    rig_run(&r, 5000);
    cluster_set_importing(r.c[1], 0, rig_seen(&r, 1, 0));
    for (int i = 0; i < r.n; i++) {
        struct cluster_opts opts = {0};
        struct cluster *c = cluster_new(&opts);
        text.len = again.len = 0;
        cr_assert(cluster_write(r.c[i], &text));
        cr_assert(cluster_load(c, rd_buf_slice(&text), r.now_ms, &err), "%s", err.text);
        cr_expect_eq(cluster_count(c), 4);
        cr_expect_str_eq(cluster_myself(c)->id.s, cluster_myself(r.c[i])->id.s);
        cr_expect_str_eq(cluster_myself(c)->shard.s, cluster_myself(r.c[i])->shard.s);
        cr_expect_eq(cluster_myself(c)->n_slots, cluster_myself(r.c[i])->n_slots);
        cr_expect_eq(cluster_current_epoch(c), cluster_current_epoch(r.c[i]));
        cr_expect_eq(cluster_myself(c)->master != NULL, i == replica);
        cr_expect_eq(cluster_importing(c, 0) != NULL, i == 1);
        cluster_free(c);
    }
    rd_buf_done(&text);
    rd_buf_done(&again);
    rig_done(&r);
}

Test(cluster, a_damaged_file_is_refused)
{
    struct cluster_opts opts = {0};
    struct cluster *c = cluster_new(&opts);
    struct rd_err err = {0};
    cr_expect_not(cluster_load(c, rd_slice_str("vars currentEpoch 1 lastVoteEpoch 0\n"), 1, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    cluster_free(c);
}

static uint64_t random_number(void *ctx)
{
    return chance_next(ctx);
}

static bool handles_all(struct cluster *c)
{
    struct cluster_action a;
    while (cluster_next(c, &a)) {
        if (a.kind == CLUSTER_CONNECT)
            cluster_connected(c, a.conn, "10.0.0.1");
        if (cluster_no_memory(c))
            return false;
    }
    return true;
}

/* False: memory failed, and the node said so. */
static bool lives(struct cluster *c)
{
    struct rd_buf text = {0};
    cluster_start(c, 1000);
    if (cluster_no_memory(c))
        return false;
    cr_expect_eq(cluster_meet(c, "10.0.0.2", 7001, 17001), CLUSTER_OK);
    uint64_t conn = cluster_accepted(c, "10.0.0.1", "10.0.0.2");
    if (cluster_no_memory(c))
        return false;
    cluster_received(c, conn, rd_slice_str("RCmb"));
    cluster_tick(c, 1100);
    bool ok = !cluster_no_memory(c) && handles_all(c) && cluster_write(c, &text);
    rd_buf_done(&text);
    return ok;
}

Test(cluster, failed_allocations_are_noticed)
{
    for (size_t n = 1;; n++) {
        uint64_t chance = 7;
        const struct cluster_opts opts = {.ctx = &chance, .random = random_number};
        alloc_fault_begin(n);
        struct cluster *c = cluster_new(&opts);
        bool ok = c != NULL && lives(c);
        cluster_free(c);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        cr_assert_neq(ok, result.failed, "allocation %zu", n);
        if (!result.failed)
            break;
    }
}
