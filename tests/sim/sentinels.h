/* sentinels.h - Sentinels, masters and replicas on a virtual network and clocks.
 *
 *     struct sim_sentinels sums = {0};
 *     const char *failure = sim_sentinels_run(seed, &sums);   // NULL: passed
 *
 * sentinels_net.c has the hosts, their connections and time; sentinels_server.c what a server
 * answers; sentinels.c what happens in a run, and what must hold.
 */
#ifndef TESTS_SIM_SENTINELS_H
#define TESTS_SIM_SENTINELS_H

#include "sentinel/sentinel.h"
#include "tests/sim/timeline.h"

enum {
    SIM_SERVERS_MAX = 6,
    SIM_SENTINELS_MAX = 7,
    SIM_HOSTS_MAX = SIM_SERVERS_MAX + SIM_SENTINELS_MAX,
    SIM_TEXT_MAX = 8192
};

/* Over all seeds. */
struct sim_sentinels {
    uint64_t runs, kills, failovers, elections, votes, crashes, saves_failed, tilts, partitions,
        losses, choices, calm;
};

struct sim_server {
    bool is_master;
    int master; /* host that it follows; -1: none */
    bool link_up;
    int64_t link_down_ms; /* since when */
    uint64_t offset;
    int priority;
    unsigned starts; /* in its run id */
};

/* What a Sentinel was told by a server, as messages arrived. */
struct sim_known {
    bool up;
    int64_t pong_ms, info_ms;
    int priority;
    uint64_t offset;
    int64_t link_down_s;
};

struct sim_elected {
    uint64_t epoch;
    int host;
};

struct sim_process {
    struct sentinel *sentinel; /* NULL: not running */
    char *file;                /* its configuration, as it is on disk */
    int64_t clock_ms;          /* what its clock shows when the simulation begins */
    int64_t stalled_until_ms;
    unsigned starts;
    struct sim_known known[SIM_SERVERS_MAX];
};

struct sim_host {
    bool alive;
    int group; /* hosts of one group reach each other */
    struct sim_server server;
    struct sim_process process;
};

struct sim_conn {
    uint64_t number; /* of the Sentinel's side; 0: free */
    unsigned use;    /* so that a late message does not reach a later user of this place */
    int from, to;
    bool pubsub, up, stuck, subscribed;
    int64_t sent_ms, returned_ms; /* messages of one direction stay in order */
};

struct sim_run {
    uint64_t random;
    int64_t now_ms;
    int n_servers, n_sentinels;
    struct sim_host hosts[SIM_HOSTS_MAX]; /* servers first */
    struct sim_conn *conns;
    size_t n_conns;
    struct timeline timeline;
    unsigned loss;  /* one message of so many ends its connection; 0: none */
    unsigned crash; /* one save of so many ends the process; 0: none */
    unsigned save_fails;
    int64_t down_after_ms, failover_timeout_ms, tilt_ms, info_ms;
    struct sim_elected elected[256];
    size_t n_elected;
    uint64_t switches; /* masters that a leader has replaced */
    const char *failure;
    struct sim_sentinels *sums;
    void (*trace)(const struct sim_run *r, int host, const struct sentinel_action *action);
};

enum sim_what {
    SIM_TICK,    /* of a Sentinel */
    SIM_END,     /* of a Sentinel that has just voted */
    SIM_START,   /* of a Sentinel that ended by itself */
    SIM_CRON,    /* of all servers */
    SIM_CONNECT, /* arrives at the server */
    SIM_COMMAND, /* arrives at the server */
    SIM_BACK     /* arrives at the Sentinel */
};

/* ---- sentinels_net.c ---- */

uint64_t sim_chance(struct sim_run *r, uint64_t below);
void sim_at(struct sim_run *r, int64_t ms, enum sim_what what, int host, size_t conn,
            const char *text);
/* Runs everything until then, or until a failure. */
void sim_until(struct sim_run *r, int64_t ms);
bool sim_reach(const struct sim_run *r, int a, int b);
void sim_conn_open(struct sim_run *r, int from, const struct sentinel_action *action);
void sim_conn_close(struct sim_run *r, int from, uint64_t number);
void sim_conn_send(struct sim_run *r, int from, const struct sentinel_action *action);
/* A text for the Sentinel at the other end; its first byte is the type of the reply, '!' for a
 * message, '^' for a connection that is ready, or '0' for its end. */
void sim_back(struct sim_run *r, size_t conn, const char *text);
/* The connections of a host that ends; except: not this one (SIZE_MAX: none). */
void sim_cut(struct sim_run *r, int host, size_t except);
int sim_host_of(const struct sim_run *r, const char *ip);
void sim_ip_of(const struct sim_run *r, int host, char ip[SENTINEL_IP_MAX + 1]);
void sim_net_free(struct sim_run *r);

/* ---- sentinels_server.c ---- */

/* A command arrived at a server. The words are separated by '\n'. */
void sim_server_command(struct sim_run *r, size_t conn, const char *text);
void sim_servers_cron(struct sim_run *r);
void sim_server_start(struct sim_run *r, int host);

/* ---- sentinels_process.c ---- */

void sim_process_tick(struct sim_run *r, int host);
void sim_process_restart(struct sim_run *r, int host);
void sim_process_kill(struct sim_run *r, int host);
void sim_process_command(struct sim_run *r, size_t conn, const char *text);
void sim_process_back(struct sim_run *r, size_t conn, const char *text);

/* ---- sentinels.c ---- */

const char *sim_sentinels_run(uint64_t seed, struct sim_sentinels *sums);
/* The same; trace is called for each event that a Sentinel publishes. */
const char *sim_sentinels_trace(uint64_t seed, struct sim_sentinels *sums,
                                void (*trace)(const struct sim_run *r, int host,
                                              const struct sentinel_action *action));

#endif
