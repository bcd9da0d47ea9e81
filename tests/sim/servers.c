#include "tests/sim/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/digest.h"
#include "tests/sim/faults.h"
#include "tests/sim/servers_impl.h"

enum {
    SECOND_US = 1000000,
    BEGIN_S = 1750000000,
    PLACES = 1 << 16,
    HEALS_S = 120 /* that a group may take when nothing fails any more */
};

/* ---- two servers at one place of one history have one data set ---- */

static struct place {
    bool used;
    struct repl_replid id;
    uint64_t offset;
    int host;
    uint8_t digest[ENGINE_DIGEST];
} * places;

/* NULL: the table is full, or it is one of those that are left out, because a digest takes time. */
static struct place *place_of(const struct repl_replid *id, uint64_t offset)
{
    uint64_t at = offset * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)id->hex[0] << 40;
    if (at >> 61 != 0)
        return NULL;
    for (size_t i = 0; i < 64; i++) {
        struct place *p = &places[((at >> 20) + i) % PLACES];
        if (!p->used || (p->offset == offset && strcmp(p->id.hex, id->hex) == 0))
            return p;
    }
    return NULL;
}

static void compare_place(int host)
{
    struct place now = {.used = true, .host = host};
    if (!host_place(host, &now.id, &now.offset))
        return;
    struct place *p = place_of(&now.id, now.offset);
    if (p == NULL || (p->used && p->host == host && !sim_one_of(8)))
        return;
    host_digest(host, now.digest);
    if (!p->used) {
        *p = now;
        return;
    }
    sim.sums->places += p->host != host;
    if (memcmp(p->digest, now.digest, ENGINE_DIGEST) != 0) {
        sim_say("hosts %d and %d differ at %s:%llu", p->host, host, now.id.hex,
                (unsigned long long)now.offset);
        clients_save(p->host); /* for `redoubt diff` */
        clients_save(host);
        sim_fail("two servers at one place of one history have different data");
    }
}

/* ---- faults ---- */

static int any_host(void)
{
    return (int)sim_below((uint64_t)sim.n_hosts);
}

/* A host that is up. */
static int any_up(void)
{
    for (int i = 0, host = any_host(); i < sim.n_hosts; i++, host = (host + 1) % sim.n_hosts)
        if (sim.hosts[host].srv != NULL)
            return host;
    return NOBODY;
}

static void kill_one(void *run)
{
    (void)run;
    int host = any_up();
    if (host == NOBODY)
        return;
    sim_say("kill %d", host);
    host_kill(host, sim_between(SECOND_US / 20, 8 * SECOND_US));
}

static void kill_at_disk(void *run)
{
    (void)run;
    int host = any_up();
    if (host != NOBODY)
        sim.hosts[host].dies_in = 1 + (unsigned)sim_below(40);
}

static void stop_one(void *run)
{
    (void)run;
    int host = any_up();
    if (host != NOBODY)
        host_order(host, sim_one_of(2) ? "SHUTDOWN SAVE" : "SHUTDOWN");
}

static void cut_two(void *run)
{
    (void)run;
    int a = any_host(), b = sim_one_of(4) ? NOBODY : any_host();
    int64_t us = sim_one_of(3) ? sim_between(SECOND_US, 30 * SECOND_US)
                               : sim_between(SECOND_US / 10, 3 * SECOND_US);
    sim_say("cut %d and %d for %.1f s", a, b, (double)us / SECOND_US);
    sim.sums->cuts++;
    sim_net_cut(a, b, sim.now_us + us);
}

static void reset_two(void *run)
{
    (void)run;
    int a = any_host(), b = sim_one_of(4) ? NOBODY : any_host();
    sim_say("connections of %d and %d are lost", a, b);
    sim.sums->resets++;
    sim_net_reset(a, b);
}

static void slow_down(void *run)
{
    (void)run;
    sim_net_slow(sim_one_of(2) ? 200 : sim_between(1000, 200000));
}

static void fill_disk(void *run)
{
    (void)run;
    int host = any_host();
    int64_t us = sim_between(SECOND_US / 100, 3 * SECOND_US);
    sim_say("the disk of %d is full for %.2f s", host, (double)us / SECOND_US);
    sim.sums->disks_full++;
    sim.hosts[host].disk_full_until_us = sim.now_us + us;
}

static void give_order(void *run)
{
    static const char *const orders[] = {
        "BGSAVE SCHEDULE",
        "BGREWRITEAOF",
        "SAVE",
        "DEBUG RELOAD",
        "CLIENT KILL TYPE replica",
        "CLIENT KILL TYPE master",
        "CLIENT KILL TYPE normal",
        "CONFIG SET repl-backlog-size 20kb",
        "CONFIG SET repl-diskless-sync yes",
        "CONFIG SET repl-diskless-sync no",
        "CONFIG SET repl-diskless-load swapdb",
        "CONFIG SET repl-diskless-load disabled",
        "CLIENT PAUSE 500 WRITE",
        "DEBUG CHANGE-REPL-ID",
        "FAILOVER ABORT",
        "SCRIPT FLUSH",
    };
    (void)run;
    int host = any_up();
    if (host != NOBODY)
        host_order(host, "%s", orders[sim_below(sizeof orders / sizeof *orders)]);
}

/* An order to follow; a host that is down starts with it. */
static void follow(int host, int master)
{
    struct sim_host *h = &sim.hosts[host];
    if (host == master || h->follows == master)
        return;
    if (h->srv == NULL)
        h->follows = master;
    else if (master == NOBODY)
        host_order(host, "REPLICAOF NO ONE");
    else
        host_order(host, "REPLICAOF 127.0.0.1 %d", host_port(master));
}

/* What an operator does when the master is gone. */
static void promote_one(void *run)
{
    (void)run;
    int host = any_up();
    if (host == NOBODY || host == host_leader())
        return;
    sim_say("promote %d", host);
    sim.sums->promotions++;
    clients_allow_loss();
    follow(host, NOBODY);
    for (int i = 0; i < sim.n_hosts; i++)
        follow(i, host);
}

static void fail_over(void *run)
{
    (void)run;
    int leader = host_leader(), to = any_up();
    if (leader == NOBODY || to == leader)
        return;
    sim.sums->failovers++;
    host_order(leader, "FAILOVER TO 127.0.0.1 %d TIMEOUT 2000", host_port(to));
}

/* A replica of a replica. */
static void chain(void *run)
{
    (void)run;
    int host = any_host(), to = any_host();
    if (host != to && host != host_leader() && sim.hosts[to].follows != host)
        follow(host, to);
}

static const struct fault faults[] = {{6, kill_one},  {4, kill_at_disk}, {3, stop_one},
                                      {8, cut_two},   {6, reset_two},    {3, slow_down},
                                      {2, fill_disk}, {8, give_order},   {1, promote_one},
                                      {2, fail_over}, {2, chain}};

/* Without what may lose acknowledged writes. */
static const struct fault safe_faults[] = {{4, kill_one},   {8, kill_at_disk}, {3, stop_one},
                                           {8, cut_two},    {6, reset_two},    {3, slow_down},
                                           {8, give_order}, {2, fail_over},    {2, chain}};

/* ---- time ---- */

static void run_host(int host)
{
    struct sim_host *h = &sim.hosts[host];
    if (host_next(host) > sim.now_us)
        return;
    if (h->srv == NULL) {
        host_start(host);
        return;
    }
    host_run(host);
    if (h->srv != NULL)
        compare_place(host);
}

/* Goes to the next moment at which something happens, and lets it happen. */
static void step(int64_t until_us)
{
    int64_t next = sim_sooner(until_us, clients_next());
    for (int i = 0; i < sim.n_hosts; i++)
        next = sim_sooner(next, host_next(i));
    sim.now_us = next > sim.now_us ? next : sim.now_us + 1;
    clients_run();
    for (int i = 0, first = any_host(); i < sim.n_hosts; i++)
        run_host((first + i) % sim.n_hosts);
}

static void run_until(int64_t until_us)
{
    while (sim.now_us < until_us && sim.failure == NULL)
        step(until_us);
}

/* ---- the end ---- */

/* Whether a replica says that it has all that its master has. After DEBUG CHANGE-REPL-ID it knows
 * the history by another id. */
static bool is_in_sync(int host, int leader)
{
    struct repl_replid id;
    uint64_t offset, its_offset;
    return host_place(leader, &id, &offset) && host_link_is_up(host) &&
           host_place(host, &id, &its_offset) && its_offset == offset;
}

static bool all_in_sync(int leader)
{
    for (int i = 0; i < sim.n_hosts; i++)
        if (i != leader && !is_in_sync(i, leader))
            return false;
    return true;
}

/* One of them leads and all others follow it directly, in the end. */
static int settle_roles(void)
{
    int leader = host_leader();
    if (leader == NOBODY) {
        clients_allow_loss();
        leader = any_host();
        follow(leader, NOBODY);
    }
    for (int i = 0; i < sim.n_hosts; i++)
        if (i != leader && sim.hosts[i].follows == NOBODY)
            clients_allow_loss();
    for (int i = 0; i < sim.n_hosts; i++)
        follow(i, leader);
    return leader;
}

static void stop_faults(void)
{
    sim_say("nothing fails any more");
    sim_net_heal();
    clients_stop();
    for (int i = 0; i < sim.n_hosts; i++) {
        sim.hosts[i].dies_in = NEVER_DIES;
        sim.hosts[i].disk_full_until_us = 0;
    }
    run_until(sim.now_us + 20 * SECOND_US); /* all are up, and a FAILOVER has ended */
}

static void check_end(void)
{
    uint8_t digest[ENGINE_DIGEST], other[ENGINE_DIGEST];
    stop_faults();
    int leader = settle_roles();
    int64_t until_us = sim.now_us + (int64_t)HEALS_S * SECOND_US;
    while (sim.failure == NULL && !all_in_sync(leader) && sim.now_us < until_us)
        step(until_us);
    if (sim.failure == NULL && !all_in_sync(leader))
        sim_fail("the replicas did not reach their master");
    if (sim.failure != NULL)
        return;
    host_digest(leader, digest);
    for (int i = 0; i < sim.n_hosts; i++) {
        host_digest(i, other);
        if (memcmp(digest, other, sizeof digest) != 0)
            sim_fail("a replica in sync has other data");
    }
    for (int i = 0; i < sim.n_hosts; i++)
        clients_check(i);
}

/* ---- a run ---- */

static void begin(uint64_t seed, struct sim_servers *sums, bool traced, const char *folder)
{
    sim = (struct sim){.now_us = (int64_t)BEGIN_S * SECOND_US,
                       .random = seed,
                       .traced = traced,
                       .sums = sums,
                       .running = NOBODY};
    sim.safe = sim_one_of(2);
    sim.n_hosts = 2 + (int)sim_below(HOSTS_MAX - 1);
    srandom((unsigned)seed);
    places = rd_calloc(PLACES, sizeof *places);
    sim_net_begin();
    clients_begin();
    uint64_t logs = sim.safe ? 1 : sim_below(3); /* none, `always`, `everysec` */
    for (int i = 0; i < sim.n_hosts; i++) {
        struct sim_host *h = &sim.hosts[i];
        *h = (struct sim_host){.follows = i == 0 ? NOBODY : 0,
                               .has_log = logs != 0,
                               .always = logs == 1,
                               .transfer_fd = -1};
        h->start_us = sim.now_us + (i == 0 ? 0 : sim_between(0, 3 * SECOND_US));
        snprintf(h->folder, sizeof h->folder, "%s/%d", folder, i);
        if (mkdir(h->folder, 0700) != 0)
            abort();
    }
}

static void end(void)
{
    for (int i = 0; i < sim.n_hosts; i++) {
        if (sim.hosts[i].srv != NULL)
            host_done(i);
    }
    clients_end();
    sim_net_end();
    rd_free(places);
}

static void run_seed(uint64_t seed, struct sim_servers *sums, bool traced, const char *folder)
{
    begin(seed, sums, traced, folder);
    bool calm = sim_one_of(10);
    const struct fault *all = sim.safe ? safe_faults : faults;
    size_t n = sim.safe ? sizeof safe_faults / sizeof *safe_faults : sizeof faults / sizeof *faults;
    int64_t end_us = sim.now_us + sim_between(5 * SECOND_US, 40 * SECOND_US);
    run_until(sim.now_us + 2 * SECOND_US);
    while (sim.now_us < end_us && sim.failure == NULL) {
        if (!calm)
            faults_make_one(all, n, &sim.random, NULL);
        run_until(sim.now_us + sim_between(SECOND_US / 100, 3 * SECOND_US));
    }
    check_end();
    sums->runs++;
    end();
}

/* ---- each seed has a process of its own: servers that were killed leave their memory ---- */

struct answer {
    struct sim_servers sums;
    char failure[200]; /* empty: none */
};

static void add(struct sim_servers *to, const struct sim_servers *sums)
{
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)sums;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
}

_Noreturn static void run_child(uint64_t seed, bool traced, const char *folder, int answer_to)
{
    struct answer a = {.failure = ""};
    run_seed(seed, &a.sums, traced, folder);
    snprintf(a.failure, sizeof a.failure, "%s", sim.failure != NULL ? sim.failure : "");
    fflush(stdout);
    bool ok = write(answer_to, &a, sizeof a) == sizeof a;
    _exit(ok ? 0 : 1);
}

static const char *run(uint64_t seed, struct sim_servers *sums, bool traced)
{
    static struct answer a;
    char folder[] = "/tmp/redoubt-sim-XXXXXX", command[64];
    int fds[2], status = 0;
    if (mkdtemp(folder) == NULL || pipe(fds) != 0)
        return "no folder";
    fflush(stdout);
    sim.running = NOBODY;
    int pid = fork();
    if (pid == 0)
        run_child(seed, traced, folder, fds[1]);
    close(fds[1]);
    bool whole = pid > 0 && read(fds[0], &a, sizeof a) == sizeof a;
    close(fds[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (traced) {
        printf("# files: %s\n", folder);
    } else {
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        if (system(command) != 0)
            return "the folder cannot be removed";
    }
    if (!whole)
        return "the process of the simulation crashed";
    add(sums, &a.sums);
    return a.failure[0] != '\0' ? a.failure : NULL;
}

const char *sim_servers_run(uint64_t seed, struct sim_servers *sums)
{
    return run(seed, sums, false);
}

const char *sim_servers_trace(uint64_t seed, struct sim_servers *sums)
{
    return run(seed, sums, true);
}
