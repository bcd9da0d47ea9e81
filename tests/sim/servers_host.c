/* Starting, running and ending servers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/digest.h"
#include "server/loop/log.h"
#include "server/loop/net.h"
#include "server/durable/replication/replication_impl.h"
#include "server/settings/item.h"
#include "tests/sim/servers_impl.h"

enum { SECOND_US = 1000000, WORDS_MAX = 4 };

int host_port(int host)
{
    return FIRST_PORT + host;
}

static void set(struct settings *s, const char *name, const char *value)
{
    struct settings_reading reading = {.at_start = true};
    char text[64], *words[WORDS_MAX], *rest = NULL;
    size_t n = 0;
    snprintf(text, sizeof text, "%s", value);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && n < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    if (!settings_item_set(s, settings_item_find(name), n, words, &reading))
        sim_fail("a setting was refused");
}

static const char *one_of(const char *a, const char *b)
{
    return sim_one_of(2) ? a : b;
}

static void set_up(int host)
{
    struct sim_host *h = &sim.hosts[host];
    struct settings *s = &h->srv->loop.settings;
    char text[64];
    settings_init(s);
    set(s, "bind", "127.0.0.1");
    snprintf(text, sizeof text, "%d", host_port(host));
    set(s, "port", text);
    set(s, "logfile", "log");
    if (sim.traced)
        set(s, "loglevel", "debug");
    else
        s->loglevel = SETTINGS_LOG_NOTHING;
    set(s, "enable-debug-command", "yes");
    set(s, "appendonly", h->has_log ? "yes" : "no");
    set(s, "appendfsync", h->always ? "always" : "everysec");
    set(s, "aof-use-rdb-preamble", one_of("yes", "no"));
    set(s, "auto-aof-rewrite-min-size", one_of("4kb", "64mb"));
    set(s, "repl-diskless-sync", one_of("yes", "no"));
    set(s, "repl-diskless-sync-delay", one_of("0", "2"));
    set(s, "repl-diskless-load", one_of("disabled", "swapdb"));
    set(s, "repl-backlog-size", one_of("16kb", "1mb"));
    set(s, "repl-backlog-ttl", one_of("3600", "5"));
    set(s, "stop-writes-on-bgsave-error", one_of("yes", "no"));
    set(s, "repl-timeout", "10");
    set(s, "repl-ping-replica-period", one_of("1", "5"));
    set(s, "save", one_of("5 1", "3600 1"));
    if (h->follows != NOBODY) {
        snprintf(text, sizeof text, "127.0.0.1 %d", host_port(h->follows));
        set(s, "replicaof", text);
    }
    log_setup(s);
}

/* What the role is now, for the next start, as CONFIG REWRITE would keep it. */
static void note_role(struct sim_host *h)
{
    const struct settings *s = &h->srv->loop.settings;
    h->follows = s->replicaof_host == NULL ? NOBODY : (int)s->replicaof_port - FIRST_PORT;
}

void host_done(int host)
{
    struct sim_host *h = &sim.hosts[host];
    const struct replication *r = h->srv->durable.replication;
    sim.sums->full_syncs += r != NULL ? r->full_syncs : 0;
    sim.sums->partial_syncs += r != NULL ? r->partial_syncs : 0;
    sim_end_children(host);
    sim_close_files(host);
    sim_background_drop(host);
    sim_net_drop(host);
    sim_loop_forget(h->srv->loop.uv);
    h->srv = NULL; /* its memory goes with the process that runs this seed */
    h->dies_in = NEVER_DIES;
    h->transfer_fd = -1;
}

/* A replica ends when it could not write its log, or a child that saves failed. */
static bool is_allowed(const struct sim_host *h)
{
    return strstr(sim.panic, "unable to write command to disk") != NULL && h->disk_failed;
}

static void has_ended(int host, enum sim_end how)
{
    struct sim_host *h = &sim.hosts[host];
    sim.running = NOBODY;
    sim_say("host %d ended: %s", host,
            how == SIM_PANICKED ? sim.panic
            : how == SIM_EXITED ? "exit"
                                : "killed");
    sim.sums->stops += how != SIM_KILLED;
    if (how == SIM_PANICKED && !is_allowed(h))
        sim_fail("a server panicked");
    note_role(h);
    if (!(h->has_log && h->always) && h->follows == NOBODY)
        clients_allow_loss(); /* with everysec, a reply may come before the log is written */
    host_done(host);
    h->start_us = sim.now_us + sim_between(SECOND_US / 10, 5 * SECOND_US);
}

static void enter(int host)
{
    sim.running = host;
    if (chdir(sim.hosts[host].folder) != 0)
        abort();
}

void host_start(int host)
{
    struct sim_host *h = &sim.hosts[host];
    enter(host);
    h->srv = rd_calloc(1, sizeof *h->srv);
    h->transfer_fd = -1;
    sim_say("host %d starts, following %d", host, h->follows);
    int how = setjmp(sim.ended);
    if (how != SIM_ALIVE) {
        has_ended(host, (enum sim_end)how);
        return;
    }
    set_up(host);
    server_init(h->srv);
    if (!server_start(h->srv)) {
        if (h->disk_full_until_us <= sim.now_us)
            sim_fail("a server did not start");
        has_ended(host, SIM_EXITED);
    }
    sim.running = NOBODY;
}

void host_run(int host)
{
    struct sim_host *h = &sim.hosts[host];
    enter(host);
    int how = setjmp(sim.ended);
    if (how != SIM_ALIVE) {
        has_ended(host, (enum sim_end)how);
        return;
    }
    server_turn(h->srv);
    loop_events(&h->srv->loop, UV_RUN_NOWAIT);
    server_turn(h->srv);
    note_role(h);
    sim.running = NOBODY;
    sim.now_us += sim_between(5, 60);
}

void host_kill(int host, int64_t down_us)
{
    sim.sums->kills++;
    has_ended(host, SIM_KILLED);
    sim.hosts[host].start_us = sim.now_us + down_us;
}

int64_t host_next(int host)
{
    const struct sim_host *h = &sim.hosts[host];
    return h->srv == NULL ? h->start_us : sim_loop_next(h->srv->loop.uv, host);
}

static bool leads(int host)
{
    const struct sim_host *h = &sim.hosts[host];
    return h->srv != NULL && h->srv->sessions.state == SESSIONS_RUNNING &&
           !replication_is_replica(&h->srv->durable);
}

int host_leader(void)
{
    for (int i = 0; i < sim.n_hosts; i++)
        if (leads(i))
            return i;
    return NOBODY;
}

/* Without a backlog, writes of a master are not counted. */
bool host_place(int host, struct repl_replid *ret_id, uint64_t *ret_offset)
{
    const struct sim_host *h = &sim.hosts[host];
    if (h->srv == NULL || h->srv->sessions.state != SESSIONS_RUNNING)
        return false;
    const struct replication *r = h->srv->durable.replication;
    if (r->link == NULL ? r->master->backlog == NULL : !r->link->has_place)
        return false;
    *ret_id = r->master->id;
    *ret_offset = r->master->offset;
    return true;
}

void host_digest(int host, uint8_t ret[ENGINE_DIGEST])
{
    engine_digest(sim.hosts[host].srv->sessions.engine, ret);
}

bool host_link_is_up(int host)
{
    const struct sim_host *h = &sim.hosts[host];
    bool up;
    int64_t age_ms;
    if (h->srv == NULL || !replication_is_replica(&h->srv->durable))
        return false;
    replication_link_state(&h->srv->durable, &up, &age_ms);
    return up;
}

void host_order(int host, const char *fmt, ...)
{
    char line[200];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line - 2, fmt, args);
    va_end(args);
    sim_say("to host %d: %s", host, line);
    memcpy(line + len, "\r\n", 2);
    int fd = sim_net_connect(host);
    if (fd < 0)
        return;
    sim_net_send(fd, line, (size_t)len + 2);
    sim_net_close(fd);
}
