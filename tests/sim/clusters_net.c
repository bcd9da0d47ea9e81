/* Connections and time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/clusters.h"
#include "tests/support/chance.h"

uint64_t sim_chance(struct sim_cluster *r, uint64_t below)
{
    return chance_below(&r->random, below);
}

enum { DELAY_MS = 8, SLOW_MS = 300 };
#define GONE UINT64_MAX

/* ---- time ---- */

void sim_at(struct sim_cluster *r, int64_t ms, enum sim_what what, int node, size_t conn,
            struct rd_slice bytes)
{
    const struct timeline_event ev = {.ms = ms,
                                      .what = (int)what,
                                      .who = node,
                                      .conn = conn,
                                      .use = conn != SIZE_MAX ? r->conns[conn].use : 0};
    timeline_put(&r->timeline, &ev, bytes);
}

/* ---- connections ---- */

bool sim_reach(const struct sim_cluster *r, int a, int b)
{
    return r->nodes[a].group == r->nodes[b].group;
}

static int64_t later(struct sim_cluster *r, int64_t *last_ms)
{
    int64_t ms = r->now_ms + 1 + (int64_t)sim_chance(r, DELAY_MS);
    if (sim_chance(r, 40) == 0)
        ms += (int64_t)sim_chance(r, SLOW_MS);
    *last_ms = ms > *last_ms ? ms : *last_ms;
    return *last_ms;
}

static struct sim_conn *find(struct sim_cluster *r, int node, uint64_t number)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        struct sim_conn *conn = &r->conns[i];
        if (conn->at_from != 0 && ((conn->from == node && conn->at_from == number) ||
                                   (conn->to == node && conn->at_to == number)))
            return conn;
    }
    return NULL;
}

static struct sim_conn *free_conn(struct sim_cluster *r)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        if (r->conns[i].at_from == 0)
            return &r->conns[i];
    }
    r->conns = rd_realloc(r->conns, (r->n_conns + 1) * sizeof *r->conns);
    r->conns[r->n_conns] = (struct sim_conn){.at_from = 0};
    return &r->conns[r->n_conns++];
}

static size_t index_of(const struct sim_cluster *r, const struct sim_conn *conn)
{
    return (size_t)(conn - r->conns);
}

/* Nodes are at 10.0.0.1 and so on. */
static int node_at(const char *host)
{
    int node = 0;
    return sscanf(host, "10.0.0.%d", &node) == 1 ? node - 1 : -1;
}

void sim_open(struct sim_cluster *r, int node, const struct cluster_action *a)
{
    struct sim_conn *conn = free_conn(r);
    int to = node_at(a->host);
    if (to < 0 || to >= r->n) {
        sim_fail(r, "a connection to an address without a node");
        return;
    }
    *conn = (struct sim_conn){.from = node, .to = to, .at_from = a->conn, .use = conn->use + 1};
    sim_at(r, later(r, &conn->there_ms), SIM_OPEN, -1, index_of(r, conn), rd_slice(NULL, 0));
}

/* An end of it is closed; it is free when both are. */
static void leave(struct sim_conn *conn, bool at_from)
{
    if (at_from)
        conn->at_from = GONE;
    else
        conn->at_to = GONE;
    if (conn->at_from == GONE && (conn->at_to == GONE || conn->at_to == 0)) {
        conn->at_from = 0;
        conn->use++;
    }
}

static void tell(struct sim_cluster *r, struct sim_conn *conn, bool at_from)
{
    enum sim_what what = at_from ? SIM_GONE_BACK : SIM_GONE_THERE;
    int64_t *last_ms = at_from ? &conn->back_ms : &conn->there_ms;
    sim_at(r, later(r, last_ms), what, -1, index_of(r, conn), rd_slice(NULL, 0));
}

/* The other end hears of it, unless it is cut off: then it finds out by itself. */
static void close_end(struct sim_cluster *r, struct sim_conn *conn, bool at_from)
{
    if (!sim_reach(r, conn->from, conn->to))
        conn->stuck = true;
    else if (conn->at_to != 0)
        tell(r, conn, !at_from);
    leave(conn, at_from);
}

void sim_close(struct sim_cluster *r, int node, uint64_t number)
{
    struct sim_conn *conn = find(r, node, number);
    if (conn != NULL)
        close_end(r, conn, conn->from == node && conn->at_from == number);
}

static bool is_there(uint64_t number)
{
    return number != 0 && number != GONE;
}

void sim_cut(struct sim_cluster *r, int node)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        struct sim_conn *conn = &r->conns[i];
        if (conn->from == node && is_there(conn->at_from))
            close_end(r, conn, true);
        else if (conn->to == node && is_there(conn->at_to))
            close_end(r, conn, false);
    }
}

/* The systems at both ends find out that these do not work any more. */
void sim_reset_stuck(struct sim_cluster *r)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        struct sim_conn *conn = &r->conns[i];
        if (!conn->stuck || conn->at_from == 0)
            continue;
        tell(r, conn, true);
        tell(r, conn, false);
    }
}

void sim_send(struct sim_cluster *r, int node, const struct cluster_action *a)
{
    struct sim_conn *conn = find(r, node, a->conn);
    if (conn == NULL)
        return;
    bool there = conn->from == node && conn->at_from == a->conn;
    if (!sim_reach(r, conn->from, conn->to))
        conn->stuck = true;
    if (conn->stuck)
        return;
    if (r->loss != 0 && sim_chance(r, r->loss) == 0) {
        r->sums->losses++;
        tell(r, conn, true);
        tell(r, conn, false);
        return;
    }
    sim_at(r, later(r, there ? &conn->there_ms : &conn->back_ms), there ? SIM_THERE : SIM_BACK, -1,
           index_of(r, conn), a->bytes);
}

/* ---- events ---- */

static const char *ip_of(int node, char *ret, size_t size)
{
    snprintf(ret, size, "10.0.0.%d", node + 1);
    return ret;
}

static void on_open(struct sim_cluster *r, size_t i)
{
    struct sim_conn *conn = &r->conns[i];
    struct cluster *c = r->nodes[conn->to].cluster;
    char own[32], peer[32];
    if (!sim_reach(r, conn->from, conn->to)) {
        conn->stuck = true; /* it hears nothing */
        return;
    }
    if (c == NULL) {
        tell(r, conn, true);
        return;
    }
    sim_node_clock(r, conn->to);
    conn->at_to =
        cluster_accepted(c, ip_of(conn->to, own, sizeof own), ip_of(conn->from, peer, sizeof peer));
    sim_at(r, later(r, &conn->back_ms), SIM_OPENED, -1, i, rd_slice(NULL, 0));
    sim_node_act(r, conn->to);
}

static void on_bytes(struct sim_cluster *r, size_t i, int node, uint64_t number,
                     const struct timeline_event *ev)
{
    struct cluster *c = r->nodes[node].cluster;
    char own[32];
    if (c == NULL || r->conns[i].stuck)
        return;
    sim_node_clock(r, node);
    if (ev->what == SIM_OPENED)
        cluster_connected(c, number, ip_of(node, own, sizeof own));
    else
        cluster_received(c, number, rd_slice(ev->bytes, ev->len));
    sim_node_act(r, node);
}

static void on_gone(struct sim_cluster *r, size_t i, int node, uint64_t number)
{
    struct cluster *c = r->nodes[node].cluster;
    leave(&r->conns[i], node == r->conns[i].from);
    if (c == NULL)
        return;
    sim_node_clock(r, node);
    cluster_closed(c, number);
    sim_node_act(r, node);
}

static void on_conn(struct sim_cluster *r, const struct timeline_event *ev)
{
    const struct sim_conn conn = r->conns[ev->conn];
    if (conn.use != ev->use)
        return;
    bool there = ev->what == SIM_OPEN || ev->what == SIM_THERE || ev->what == SIM_GONE_THERE;
    int node = there ? conn.to : conn.from;
    if (sim_is_stalled(r, node)) {
        sim_at(r, r->nodes[node].stalled_until_ms, ev->what, -1, ev->conn,
               rd_slice(ev->bytes, ev->len));
        return;
    }
    if (ev->what == SIM_OPEN)
        on_open(r, ev->conn);
    else if (ev->what == SIM_GONE_THERE || ev->what == SIM_GONE_BACK)
        on_gone(r, ev->conn, node, there ? conn.at_to : conn.at_from);
    else
        on_bytes(r, ev->conn, node, there ? conn.at_to : conn.at_from, ev);
}

static void run(struct sim_cluster *r, const struct timeline_event *ev)
{
    switch (ev->what) {
    case SIM_TICK:
        sim_node_tick(r, ev->who);
        break;
    case SIM_CRON:
        sim_data_cron(r);
        sim_at(r, r->now_ms + SIM_CRON_MS, SIM_CRON, -1, SIZE_MAX, rd_slice(NULL, 0));
        break;
    case SIM_START:
        sim_node_start(r, ev->who);
        break;
    default:
        on_conn(r, ev);
    }
}

void sim_until(struct sim_cluster *r, int64_t ms)
{
    struct timeline_event ev;
    while (r->failure == NULL && timeline_take(&r->timeline, ms, &ev)) {
        r->now_ms = ev.ms > r->now_ms ? ev.ms : r->now_ms;
        run(r, &ev);
        timeline_event_done(&ev);
    }
    r->now_ms = ms;
}

void sim_net_free(struct sim_cluster *r)
{
    timeline_done(&r->timeline);
    rd_free(r->conns);
}
