/* What happens in a run, and what must be true at its end. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/faults.h"
#include "tests/sim/sentinels_process.h"

enum {
    CHAOS_MS = 100000,
    HEAL_MS = 240000,
    CALM_KILLS = 3,
    FIRST_MS = 8000, /* until everyone knows everyone, */
    MEET_MS = 60000, /* at the latest */
};

/* ---- setting up ---- */

static int first_sentinel(const struct sim_run *r)
{
    return r->n_servers;
}

static int n_hosts(const struct sim_run *r)
{
    return r->n_servers + r->n_sentinels;
}

static void make_servers(struct sim_run *r)
{
    for (int i = 0; i < r->n_servers; i++) {
        struct sim_server *s = &r->hosts[i].server;
        s->is_master = i == 0;
        s->master = i == 0 ? -1 : 0;
        s->priority = sim_chance(r, 8) == 0 ? 0 : 90 + 10 * (int)sim_chance(r, 3);
        sim_server_start(r, i);
    }
    sim_at(r, 1, SIM_CRON, -1, SIZE_MAX, NULL);
}

static void make_sentinels(struct sim_run *r)
{
    int quorum = 1 + (int)sim_chance(r, (uint64_t)r->n_sentinels);
    for (int i = first_sentinel(r); i < n_hosts(r); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "sentinel monitor m 10.0.0.1 6379 %d\n"
                 "sentinel down-after-milliseconds m %lld\n"
                 "sentinel failover-timeout m %lld\n"
                 "sentinel parallel-syncs m %d\n",
                 quorum, (long long)r->down_after_ms, (long long)r->failover_timeout_ms,
                 1 + (int)sim_chance(r, 2));
        r->hosts[i].process.file = rd_alloc(strlen(text) + 1);
        strcpy(r->hosts[i].process.file, text);
        r->hosts[i].process.clock_ms = 1700000000000 + (int64_t)sim_chance(r, 100000);
        sim_process_start(r, i);
    }
}

static void make(struct sim_run *r, uint64_t seed, struct sim_sentinels *sums)
{
    r->random = seed * 1000003 + 17;
    r->now_ms = 1;
    r->sums = sums;
    r->n_servers = 1 + (int)sim_chance(r, SIM_SERVERS_MAX);
    r->n_sentinels = 3 + (int)sim_chance(r, SIM_SENTINELS_MAX - 2);
    r->down_after_ms = 1000 + (int64_t)sim_chance(r, 2000);
    r->failover_timeout_ms = 4000 + (int64_t)sim_chance(r, 8000);
    r->tilt_ms = sim_chance(r, 2) == 0 ? 30000 : 3000;
    r->info_ms = sim_chance(r, 2) == 0 ? 10000 : 3000;
    make_servers(r);
    make_sentinels(r);
}

static void drop(struct sim_run *r)
{
    for (int i = first_sentinel(r); i < n_hosts(r); i++) {
        sentinel_free(r->hosts[i].process.sentinel);
        rd_free(r->hosts[i].process.file);
    }
    sim_net_free(r);
}

/* ---- faults ---- */

static void kill_host(struct sim_run *r, int host)
{
    if (!r->hosts[host].alive)
        return;
    r->sums->kills++;
    if (host >= r->n_servers) {
        sim_process_kill(r, host);
        return;
    }
    r->hosts[host].alive = false;
    if (sim_chance(r, 2) == 0) /* else the whole machine is gone, and nobody is told */
        sim_cut(r, host, SIZE_MAX - 1);
}

static void start_host(struct sim_run *r, int host)
{
    if (r->hosts[host].alive)
        return;
    sim_cut(r, host, SIZE_MAX - 1); /* it knows nothing of old connections */
    if (host >= r->n_servers)
        sim_process_start(r, host);
    else
        sim_server_start(r, host);
}

static int master_host(const struct sim_run *r)
{
    for (int i = 0; i < r->n_servers; i++) {
        if (r->hosts[i].alive && r->hosts[i].server.is_master)
            return i;
    }
    return 0;
}

static int any_host(struct sim_run *r)
{
    return (int)sim_chance(r, (uint64_t)n_hosts(r));
}

static void kill_master(void *run)
{
    kill_host(run, master_host(run));
}

static void kill_any(void *run)
{
    kill_host(run, any_host(run));
}

static void start_any(void *run)
{
    start_host(run, any_host(run));
}

static void start_all(void *run)
{
    for (int i = 0; i < n_hosts(run); i++)
        start_host(run, i);
}

static void partition(void *run)
{
    struct sim_run *r = run;
    int groups = 2 + (int)sim_chance(r, 2);
    r->sums->partitions++;
    for (int i = 0; i < n_hosts(r); i++)
        r->hosts[i].group = (int)sim_chance(r, (uint64_t)groups);
}

static void heal(void *run)
{
    struct sim_run *r = run;
    for (int i = 0; i < n_hosts(r); i++)
        r->hosts[i].group = 0;
}

static void stall(void *run)
{
    struct sim_run *r = run;
    int host = first_sentinel(r) + (int)sim_chance(r, (uint64_t)r->n_sentinels);
    r->hosts[host].process.stalled_until_ms = r->now_ms + (int64_t)sim_chance(r, 6000);
}

static void set_clock(void *run)
{
    struct sim_run *r = run;
    int host = first_sentinel(r) + (int)sim_chance(r, (uint64_t)r->n_sentinels);
    r->hosts[host].process.clock_ms += (int64_t)sim_chance(r, 120000) - 60000;
}

static const struct fault faults[] = {{2, kill_master}, {1, kill_any}, {3, start_any},
                                      {1, partition},   {2, heal},     {1, stall},
                                      {1, set_clock},   {1, start_all}};

static void chaos(struct sim_run *r)
{
    static const unsigned rates[] = {0, 3000, 300, 50};
    r->loss = rates[sim_chance(r, 4)];
    r->crash = sim_chance(r, 2) == 0 ? 0 : 3 + (unsigned)sim_chance(r, 6);
    r->save_fails = sim_chance(r, 3) == 0 ? 6 : 0;
    while (r->failure == NULL && r->now_ms < CHAOS_MS) {
        faults_make_one(faults, sizeof faults / sizeof *faults, &r->random, r);
        sim_until(r, r->now_ms + 200 + (int64_t)sim_chance(r, 6000));
    }
    r->loss = r->crash = r->save_fails = 0;
    heal(r);
    start_all(r);
}

/* ---- what must be true ---- */

static void fail(struct sim_run *r, const char *why)
{
    if (r->failure == NULL)
        r->failure = why;
}

static int believed(struct sim_run *r, int host)
{
    struct sentinel *s = r->hosts[host].process.sentinel;
    const char *ip;
    int port;
    if (s == NULL)
        return -1;
    sentinel_address(s, sentinel_at(s, 0), &ip, &port);
    return sim_host_of(r, ip);
}

static void check_agreement(struct sim_run *r)
{
    int master = believed(r, first_sentinel(r));
    if (master < 0 || !r->hosts[master].server.is_master)
        fail(r, "the master of the Sentinels is not a master");
    for (int i = first_sentinel(r); i < n_hosts(r); i++) {
        if (believed(r, i) != master)
            fail(r, "the Sentinels disagree about the master");
    }
    for (int i = 0; i < r->n_servers; i++) {
        if (i != master && (r->hosts[i].server.is_master || r->hosts[i].server.master != master))
            fail(r, "a server does not follow the master");
    }
}

static void check_known(struct sim_run *r)
{
    for (int i = first_sentinel(r); i < n_hosts(r) && r->failure == NULL; i++) {
        struct sentinel *s = r->hosts[i].process.sentinel;
        const struct sentinel_instance *m = sentinel_at(s, 0);
        if (sentinel_count_of(m, SENTINEL_SENTINELS) != (size_t)r->n_sentinels - 1)
            fail(r, "a Sentinel does not know all others");
    }
}

/* ---- runs ---- */

/* A replica that no Sentinel has ever seen would stay a replica of a former master. */
static bool knows_all(const struct sim_run *r)
{
    size_t most = 0;
    for (int i = first_sentinel(r); i < n_hosts(r); i++) {
        struct sentinel *s = r->hosts[i].process.sentinel;
        size_t n = sentinel_count_of(sentinel_at(s, 0), SENTINEL_REPLICAS);
        most = n > most ? n : most;
    }
    return most == (size_t)r->n_servers - 1;
}

static int able_replicas(const struct sim_run *r)
{
    int n = 0;
    for (int i = 0; i < r->n_servers; i++)
        n += r->hosts[i].alive && !r->hosts[i].server.is_master && r->hosts[i].server.priority != 0;
    return n;
}

/* Nothing else fails: each kill leads to exactly one failover. */
static void calm(struct sim_run *r)
{
    r->sums->calm++;
    for (int i = 0; i < CALM_KILLS && r->failure == NULL; i++) {
        uint64_t before = r->switches;
        int able = able_replicas(r), master = master_host(r);
        kill_host(r, master);
        sim_until(r, r->now_ms + 30000 + r->failover_timeout_ms * 3);
        start_host(r, master);
        if (r->switches - before != (able > 0 ? 1U : 0U))
            fail(r, able > 0 ? "not exactly one failover" : "a failover without a replica");
        sim_until(r, r->now_ms + 60000);
    }
}

const char *sim_sentinels_trace(uint64_t seed, struct sim_sentinels *sums,
                                void (*trace)(const struct sim_run *r, int host,
                                              const struct sentinel_action *action))
{
    static struct sim_run run;
    run = (struct sim_run){.trace = trace};
    sums->runs++;
    make(&run, seed, sums);
    sim_until(&run, FIRST_MS + run.info_ms);
    while (!knows_all(&run) && run.now_ms < MEET_MS)
        sim_until(&run, run.now_ms + run.info_ms);
    if (sim_chance(&run, 4) == 0)
        calm(&run);
    else
        chaos(&run);
    sim_until(&run, run.now_ms + HEAL_MS);
    if (run.failure == NULL) {
        check_agreement(&run);
        check_known(&run);
    }
    drop(&run);
    return run.failure;
}

const char *sim_sentinels_run(uint64_t seed, struct sim_sentinels *sums)
{
    return sim_sentinels_trace(seed, sums, NULL);
}
