/* Hosts, connections and time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/sentinels.h"
#include "tests/support/chance.h"

uint64_t sim_chance(struct sim_run *r, uint64_t below)
{
    return chance_below(&r->random, below);
}

/* ---- time ---- */

void sim_at(struct sim_run *r, int64_t ms, enum sim_what what, int host, size_t conn,
            const char *text)
{
    const struct timeline_event ev = {.ms = ms,
                                      .what = (int)what,
                                      .who = host,
                                      .conn = conn,
                                      .use = conn != SIZE_MAX ? r->conns[conn].use : 0};
    timeline_put(&r->timeline, &ev, rd_slice(text, text != NULL ? strlen(text) + 1 : 0));
}

/* ---- connections ---- */

bool sim_reach(const struct sim_run *r, int a, int b)
{
    return r->hosts[a].alive && r->hosts[b].alive && r->hosts[a].group == r->hosts[b].group;
}

static int64_t latency(struct sim_run *r)
{
    return 1 + (int64_t)sim_chance(r, sim_chance(r, 50) == 0 ? 300 : 15);
}

void sim_ip_of(const struct sim_run *r, int host, char ip[SENTINEL_IP_MAX + 1])
{
    bool server = host < r->n_servers;
    snprintf(ip, SENTINEL_IP_MAX + 1, "10.0.%d.%d", server ? 0 : 1,
             1 + (server ? host : host - r->n_servers));
}

int sim_host_of(const struct sim_run *r, const char *ip)
{
    int kind, number;
    if (sscanf(ip, "10.0.%d.%d", &kind, &number) != 2)
        return -1;
    return kind == 0 ? number - 1 : r->n_servers + number - 1;
}

static size_t place(struct sim_run *r)
{
    size_t i = 0;
    while (i < r->n_conns && r->conns[i].number != 0)
        i++;
    if (i == r->n_conns) {
        r->conns = rd_realloc(r->conns, ++r->n_conns * sizeof *r->conns);
        r->conns[i] = (struct sim_conn){0};
    }
    return i;
}

static size_t find(const struct sim_run *r, int from, uint64_t number)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        if (r->conns[i].number == number && r->conns[i].from == from)
            return i;
    }
    return SIZE_MAX;
}

void sim_conn_open(struct sim_run *r, int from, const struct sentinel_action *action)
{
    size_t i = place(r);
    r->conns[i] = (struct sim_conn){.number = action->conn,
                                    .use = r->conns[i].use,
                                    .from = from,
                                    .to = sim_host_of(r, action->host),
                                    .pubsub = action->pubsub};
    sim_at(r, r->now_ms + latency(r), SIM_CONNECT, from, i, NULL);
}

static void forget(struct sim_conn *c)
{
    c->number = 0;
    c->use++;
}

void sim_conn_close(struct sim_run *r, int from, uint64_t number)
{
    size_t i = find(r, from, number);
    if (i != SIZE_MAX)
        forget(&r->conns[i]);
}

/* Bytes are lost without a notice between hosts that do not reach each other. */
static bool passes(struct sim_run *r, size_t i)
{
    struct sim_conn *c = &r->conns[i];
    if (!c->stuck && r->loss != 0 && sim_chance(r, r->loss) == 0) {
        r->sums->losses++;
        c->stuck = true;
        if (sim_chance(r, 2) == 0)
            sim_at(r, r->now_ms + latency(r), SIM_BACK, c->from, i, "0");
    }
    c->stuck |= r->hosts[c->to].alive && !sim_reach(r, c->from, c->to);
    return !c->stuck;
}

static int64_t in_order(struct sim_run *r, int64_t *last_ms)
{
    int64_t at_ms = r->now_ms + latency(r);
    if (at_ms < *last_ms)
        at_ms = *last_ms;
    *last_ms = at_ms;
    return at_ms;
}

void sim_conn_send(struct sim_run *r, int from, const struct sentinel_action *action)
{
    char text[SIM_TEXT_MAX] = "";
    size_t len = 0, i = find(r, from, action->conn);
    for (size_t k = 0; k < action->argc; k++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", k > 0 ? "\n" : "",
                                (int)action->argv[k].len, (const char *)action->argv[k].ptr);
    if (i == SIZE_MAX || !passes(r, i))
        return;
    sim_at(r, in_order(r, &r->conns[i].sent_ms), SIM_COMMAND, from, i, text);
}

void sim_back(struct sim_run *r, size_t conn, const char *text)
{
    if (r->conns[conn].number != 0 && passes(r, conn))
        sim_at(r, in_order(r, &r->conns[conn].returned_ms), SIM_BACK, r->conns[conn].from, conn,
               text);
}

void sim_cut(struct sim_run *r, int host, size_t except)
{
    for (size_t i = 0; i < r->n_conns; i++) {
        struct sim_conn *c = &r->conns[i];
        if (c->number == 0 || i == except)
            continue;
        if (c->from == host && except == SIZE_MAX)
            forget(c);
        else if (c->to == host)
            sim_at(r, in_order(r, &c->returned_ms), SIM_BACK, c->from, i, "0");
    }
}

static void on_connect(struct sim_run *r, size_t i)
{
    struct sim_conn *c = &r->conns[i];
    if (!r->hosts[c->to].alive)
        sim_at(r, r->now_ms + latency(r), SIM_BACK, c->from, i, "0");
    else if (sim_reach(r, c->from, c->to))
        sim_back(r, i, "^");
}

static void on_command(struct sim_run *r, size_t i, const char *text)
{
    int to = r->conns[i].to;
    if (!r->hosts[to].alive)
        return;
    if (to < r->n_servers)
        sim_server_command(r, i, text);
    else
        sim_process_command(r, i, text);
}

static void on_back(struct sim_run *r, size_t i, const char *text)
{
    sim_process_back(r, i, text);
    if (text[0] == '0')
        forget(&r->conns[i]);
}

static void run_event(struct sim_run *r, const struct timeline_event *ev)
{
    if (ev->conn != SIZE_MAX && r->conns[ev->conn].use != ev->use)
        return;
    if (ev->what == SIM_TICK)
        sim_process_tick(r, ev->who);
    else if (ev->what == SIM_END)
        sim_process_kill(r, ev->who);
    else if (ev->what == SIM_START)
        sim_process_restart(r, ev->who);
    else if (ev->what == SIM_CRON)
        sim_servers_cron(r);
    else if (ev->what == SIM_CONNECT)
        on_connect(r, ev->conn);
    else if (ev->what == SIM_COMMAND)
        on_command(r, ev->conn, (const char *)ev->bytes);
    else
        on_back(r, ev->conn, (const char *)ev->bytes);
}

void sim_until(struct sim_run *r, int64_t ms)
{
    struct timeline_event ev;
    while (r->failure == NULL && timeline_take(&r->timeline, ms, &ev)) {
        r->now_ms = ev.ms;
        run_event(r, &ev);
        timeline_event_done(&ev);
    }
    r->now_ms = ms;
}

void sim_net_free(struct sim_run *r)
{
    timeline_done(&r->timeline);
    rd_free(r->conns);
}
