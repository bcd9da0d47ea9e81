/* servers_impl.h - private to servers*.c.
 *
 * The functions of the system have no context, so the state of the simulation is global.
 */
#ifndef TESTS_SIM_SERVERS_IMPL_H
#define TESTS_SIM_SERVERS_IMPL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "server/durable/replication/replication_impl.h"
#include "server/surface/server.h"
#include "tests/sim/servers.h"
#include "tests/support/chance.h"

enum { HOSTS_MAX = 4, NOBODY = -1, FIRST_PORT = 7001, NEVER_DIES = 0 };

#define SIM_NEVER INT64_MAX

/* How a process of a server ended. */
enum sim_end { SIM_ALIVE, SIM_EXITED, SIM_KILLED, SIM_PANICKED };

struct sim_host {
    struct server *srv; /* NULL: it is down */
    char folder[64];
    int follows;          /* the host that it was told to follow; NOBODY: it leads */
    int64_t start_us;     /* when it is started again, if it is down */
    bool has_log, always; /* appendonly, and appendfsync always */
    /* Operations on files until it is killed; NEVER_DIES: it is not. */
    unsigned dies_in;
    int64_t disk_full_until_us;
    bool disk_failed; /* a write, or a child of it was killed */
    int transfer_fd;  /* its end of the connection to the child of a diskless transfer; -1: none */
};

struct sim_child {
    int pid, host;
    bool transfers;
    int64_t due_us; /* when its end is reported */
};

struct sim {
    int64_t now_us; /* since 1970 */
    uint64_t random;
    bool traced;
    bool safe; /* nothing that was acknowledged may be lost */
    struct sim_servers *sums;
    const char *failure; /* the first */

    int n_hosts;
    struct sim_host hosts[HOSTS_MAX];
    int running;   /* whose code runs; NOBODY: that of the simulation */
    jmp_buf ended; /* where it goes when its process ends */
    char panic[160];
    bool in_child;
    unsigned child_dies_in;

    struct sim_child children[64];
    size_t n_children;
    bool next_transfers; /* the next child gets a connection */
};

extern struct sim sim;

uint64_t sim_below(uint64_t n);
/* One of `n` times. */
bool sim_one_of(uint64_t n);
/* From, up to: microseconds. */
int64_t sim_between(int64_t from, int64_t to);
static inline int64_t sim_sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void sim_fail(const char *why);
void sim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- servers_os.c ---- */

void sim_end_children(int host);
void sim_close_files(int host);
/* Whether an end is to be reported to this host now, and when the next one is. */
bool sim_child_due(int host);
int64_t sim_child_next(int host);
int64_t sim_background_next(int host);
void sim_background_done(int host);
void sim_background_drop(int host);

/* ---- servers_net.c ---- */

enum { SIM_FD = 1 << 20 }; /* descriptors of the simulation begin here */

static inline bool sim_is_socket(int fd)
{
    return fd >= SIM_FD;
}

void sim_net_begin(void);
void sim_net_end(void);
/* What a loop would be told of a descriptor: UV_READABLE, UV_WRITABLE; or negative: it failed. */
int sim_net_events(int fd);
/* When that may change; SIM_NEVER: not by time alone. */
int64_t sim_net_next(int fd);
/* All sockets of a process that has ended. */
void sim_net_drop(int host);
/* Nothing passes between two hosts, or a host and the clients (NOBODY), until then. */
void sim_net_cut(int a, int b, int64_t until_us);
/* Connections between them are lost. */
void sim_net_reset(int a, int b);
void sim_net_slow(int64_t latency_us);
void sim_net_heal(void);

/* A connection of a client: -1 if the host is down. */
int sim_net_connect(int host);
ssize_t sim_net_recv(int fd, void *dst, size_t size);
ssize_t sim_net_send(int fd, const void *src, size_t len);
void sim_net_close(int fd);

/* ---- servers_loop.c ---- */

/* When the loop has something to do. */
int64_t sim_loop_next(const uv_loop_t *uv, int host);
void sim_loop_forget(const uv_loop_t *uv);

/* ---- servers_host.c ---- */

int host_port(int host);
void host_start(int host);
/* Lets it work once: one turn and its events. */
void host_run(int host);
void host_kill(int host, int64_t down_us);
/* Its process is gone. */
void host_done(int host);
int64_t host_next(int host);
/* A host that is up and leads; NOBODY: there is none. */
int host_leader(void);
/* The place of its data in a history: false if it has none now. */
bool host_place(int host, struct repl_replid *ret_id, uint64_t *ret_offset);
void host_digest(int host, uint8_t ret[20]);
/* Whether it is a replica that is connected to its master. */
bool host_link_is_up(int host);
/* Sends a command, whose reply nobody waits for. */
void host_order(int host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- servers_clients.c ---- */

void clients_begin(void);
void clients_end(void);
int64_t clients_next(void);
void clients_run(void);
void clients_stop(void);
/* Acknowledged writes may be lost from now on. */
void clients_allow_loss(void);
/* Compares what a host has with what was written. */
void clients_check(int host);
/* The data set becomes dump.rdb of its folder. */
void clients_save(int host);

#endif
