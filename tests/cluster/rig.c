#include "tests/cluster/rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/chance.h"

/* ---- making ---- */

static uint64_t random_number(void *ctx)
{
    struct rig *r = ctx;
    return chance_next(&r->random);
}

static int start(struct rig *r)
{
    struct cluster_opts opts = {.ctx = r, .random = random_number};
    int i = r->n++;
    r->c[i] = cluster_new(&opts);
    cr_assert_not_null(r->c[i]);
    struct cluster_settings *s = cluster_settings(r->c[i]);
    s->node_timeout_ms = RIG_TIMEOUT_MS;
    s->port = (uint16_t)(7000 + i);
    s->bus_port = (uint16_t)(17000 + i);
    cluster_start(r->c[i], r->now_ms);
    return i;
}

void rig_alone(struct rig *r, int n)
{
    *r = (struct rig){.now_ms = 1700000000000, .random = 7};
    for (int i = 0; i < n; i++)
        start(r);
    rig_act(r);
}

static bool all_know(struct rig *r)
{
    for (int i = 0; i < r->n; i++) {
        if (cluster_count(r->c[i]) != (size_t)r->n)
            return false;
        for (int k = 0; k < r->n; k++) {
            if (rig_seen(r, i, k) == NULL)
                return false;
        }
    }
    return true;
}

void rig_make(struct rig *r, int n)
{
    rig_alone(r, n);
    for (int i = 0; i < n; i++) {
        struct cluster_slots slots = {0};
        unsigned share = RD_HASH_SLOTS / (unsigned)n;
        unsigned first = (unsigned)i * share;
        cluster_slots_add_range(&slots, first, i == n - 1 ? RD_HASH_SLOTS - 1 : first + share - 1);
        cr_assert_eq(cluster_add_slots(r->c[i], &slots), CLUSTER_OK);
        cr_assert_eq(cluster_set_epoch(r->c[i], (uint64_t)i + 1), CLUSTER_OK);
        if (i > 0)
            cluster_meet(r->c[0], "10.0.0.1", 7000 + (unsigned)i, 17000 + (unsigned)i);
    }
    rig_act(r);
    rig_until(r, all_know(r) && rig_all_ok(r));
}

int rig_add(struct rig *r, int master)
{
    int i = start(r);
    rig_act(r);
    cluster_meet(r->c[0], "10.0.0.1", 7000 + (unsigned)i, 17000 + (unsigned)i);
    rig_until(r, all_know(r));
    if (master >= 0) {
        cr_assert_eq(cluster_replicate(r->c[i], rig_seen(r, i, master)), CLUSTER_OK);
        rig_act(r);
        rig_until(r, rig_seen(r, master, i)->master != NULL);
    }
    return i;
}

void rig_done(struct rig *r)
{
    for (int i = 0; i < r->n; i++)
        cluster_free(r->c[i]);
}

/* ---- connections ---- */

static struct rig_conn *find(struct rig *r, int node, uint64_t number)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        struct rig_conn *conn = &r->conns[i];
        if (conn->open && ((conn->from == node && conn->at_from == number) ||
                           (conn->to == node && conn->at_to == number)))
            return conn;
    }
    return NULL;
}

static void open_conn(struct rig *r, int node, const struct cluster_action *a)
{
    int to = (int)a->port - 17000;
    if (r->cut[node])
        return;
    if (to < 0 || to >= r->n || r->cut[to]) {
        cluster_closed(r->c[node], a->conn);
        return;
    }
    cr_assert_lt(r->n_conns, RIG_CONNS_MAX);
    struct rig_conn *conn = &r->conns[r->n_conns++];
    *conn = (struct rig_conn){.from = node, .to = to, .at_from = a->conn, .open = true};
    conn->at_to = cluster_accepted(r->c[to], "10.0.0.1", "10.0.0.1");
    cluster_connected(r->c[node], a->conn, "10.0.0.1");
}

static void close_conn(struct rig *r, int node, uint64_t number)
{
    struct rig_conn *conn = find(r, node, number);
    if (conn == NULL)
        return;
    conn->open = false;
    if (conn->from == node && conn->at_from == number)
        cluster_closed(r->c[conn->to], conn->at_to);
    else
        cluster_closed(r->c[conn->from], conn->at_from);
}

static void send_bytes(struct rig *r, int node, const struct cluster_action *a)
{
    struct rig_conn *conn = find(r, node, a->conn);
    if (conn == NULL || r->cut[conn->from] || r->cut[conn->to])
        return;
    if (conn->from == node && conn->at_from == a->conn)
        cluster_received(r->c[conn->to], conn->at_to, a->bytes);
    else
        cluster_received(r->c[conn->from], conn->at_from, a->bytes);
}

/* ---- running ---- */

static void act(struct rig *r, int node, const struct cluster_action *a)
{
    r->seen[node][a->kind]++;
    if (a->kind == CLUSTER_LOG && getenv("RIG_TRACE") != NULL)
        printf("%lld node %d: %s\n", (long long)(r->now_ms - 1700000000000), node, a->text);
    if (a->kind == CLUSTER_CONNECT)
        open_conn(r, node, a);
    else if (a->kind == CLUSTER_CLOSE)
        close_conn(r, node, a->conn);
    else if (a->kind == CLUSTER_SEND)
        send_bytes(r, node, a);
    else if (a->kind == CLUSTER_SAVE) {
        r->saves[node]++;
        r->syncs[node] += a->sync;
        cluster_saved(r->c[node], !r->save_fails[node]);
    } else if (a->kind == CLUSTER_PUBLISH || a->kind == CLUSTER_MODULE)
        snprintf(r->text, sizeof r->text, "%.*s %.*s", (int)a->channel.len,
                 (const char *)a->channel.ptr, (int)a->bytes.len, (const char *)a->bytes.ptr);
}

void rig_act(struct rig *r)
{
    struct cluster_action a;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < r->n; i++) {
            while (cluster_next(r->c[i], &a)) {
                act(r, i, &a);
                more = true;
            }
        }
    }
}

void rig_run(struct rig *r, int64_t ms)
{
    for (int64_t end_ms = r->now_ms + ms; r->now_ms < end_ms;) {
        r->now_ms += 100;
        for (int i = 0; i < r->n; i++) {
            const struct cluster_replication state = {
                .offset = r->offset[i], .link_up = true, .data_age_ms = r->data_age_ms[i]};
            cluster_clock(r->c[i], r->now_ms);
            cluster_set_replication(r->c[i], &state);
        }
        for (int i = 0; i < r->n; i++) {
            cluster_tick(r->c[i], r->now_ms);
            rig_act(r);
        }
    }
}

struct cluster_node *rig_seen(struct rig *r, int by, int of)
{
    return cluster_find(r->c[by], rd_slice_str(cluster_myself(r->c[of])->id.s));
}

bool rig_all_ok(const struct rig *r)
{
    for (int i = 0; i < r->n; i++) {
        if (!r->cut[i] && !cluster_is_ok(r->c[i]))
            return false;
    }
    return true;
}
